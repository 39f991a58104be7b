//! Low nights that come and go, by hand.

use crate::generators::Noise;
use railgauge_stats::changepoint::{
    AlertEnd, Kind, Mark, Night, Rules, Watch, intermittent, low_among, upper_spread, watch,
};

/// `.` is a good night, `-` one between, `x` a low one.
fn marks(text: &str) -> Vec<Mark> {
    let mark = |c| match c {
        'x' => Mark::Low,
        '-' => Mark::Between,
        _ => Mark::Good,
    };
    text.chars().map(mark).collect()
}

fn after(good: usize, text: &str) -> Vec<Mark> {
    marks(&(".".repeat(good) + text))
}

#[test]
fn spells_of_low_nights_are_counted() {
    let found = intermittent(&after(40, "x.x.x.x.x.")).unwrap();
    assert_eq!((found.since, found.nights, found.sure), (40, (5, 10), true));
    // Three of ten nights would be chance in 9 of 10,000, four in 3 of 100,000 cases: not sure yet.
    for text in ["x..x....x.", "x.x..x..x."] {
        assert!(intermittent(&after(40, text)).is_some_and(|found| !found.sure), "{text}");
    }
    assert_eq!(intermittent(&after(40, "x........x")), None, "two dips");
    assert_eq!(intermittent(&after(40, "x...........x..........x..........x")), None, "four dips in 35 nights");
    // One spell is a change, however long, and whatever lies between its nights.
    assert_eq!(intermittent(&after(40, "xxxxxxxxxxxx")), None);
    assert_eq!(intermittent(&after(40, "xx-x--xxx-xx..")), None);
    // Two spells are weak, and each counts for three nights.
    assert!(intermittent(&after(40, "xxxxxxxx...xxxxxxxx..")).is_some_and(|found| !found.sure));
    assert!(intermittent(&after(40, "xxxx..xxxx..xxxx..")).is_some_and(|found| found.sure));
}

#[test]
fn what_dipped_before_may_dip_and_good_nights_end_it() {
    let dips = ".........x".repeat(20);
    assert_eq!(intermittent(&marks(&(dips + "x.x..x...."))), None, "a tenth of the nights before were low");
    let half = "x.".repeat(40);
    assert!(intermittent(&marks(&half)).is_some_and(|found| found.sure), "half of the nights excuse nothing");
    // A good night is about half as likely with half of the nights low: nine are one in 427.
    let half = |since: &str| intermittent(&after(40, &("x.".repeat(12) + since)));
    assert!(half(".......").is_some());
    assert_eq!(half("........"), None);
}

#[test]
fn a_dip_delays_the_end_and_begins_nothing_anew() {
    let half = |since: &str| intermittent(&after(40, &("x.".repeat(12) + since)));
    // Thirteen good nights with a dip among them, where nine are enough without one.
    assert!(half(".....x.......").is_none() && half(".......x.....").is_none());
    // But two of twelve are no dips.
    assert!(half("....x....x....").is_some());
    // A share that only fell is not over: one night in five, and of these a quarter more nights.
    assert!(intermittent(&after(40, &"x....".repeat(6))).is_some());
}

/// Nights of a link: `.` at its level, `x` at half of it, `?` without a value, `!` with a value and a run without one.
fn nights(text: &str) -> Vec<Night> {
    let mut noise = Noise::new(9);
    let night = |(day, what): (usize, char)| {
        let value = 6.0 + 0.01 * noise.normal() - if what == 'x' { 0.69 } else { 0.0 };
        let runs = if what == '?' { Vec::new() } else { vec![value] };
        Night { day: day as i64, runs, lost: usize::from("?!".contains(what)), epoch: 0 }
    };
    text.chars().enumerate().map(night).collect()
}

#[test]
fn nights_without_a_value_come_and_go_as_low_ones_do() {
    let told = |text: &str| watch(&nights(text), &Rules::default()).unwrap();
    let good = ".".repeat(30);
    for (bad, lost) in [("?.", 8), ("!.", 8), ("?.x.", 4)] {
        let found = told(&format!("{good}{}", bad.repeat(16 / bad.len())));
        let alert = &found.alerts[0];
        assert_eq!((alert.kind, alert.end, alert.since), (Kind::Intermittent, AlertEnd::Open, 30), "{bad}");
        assert_eq!((alert.nights, alert.lost), ((8, 15), lost), "{bad}");
        if bad == "?.x." {
            assert!((alert.effect + 0.69).abs() < 0.05, "{}", alert.effect);
        } else {
            assert_eq!(alert.effect, f64::NEG_INFINITY, "{bad}");
        }
    }
    let few = told(&format!("{good}?.?..?.")).suspicious.unwrap();
    assert_eq!((few.since, few.nights, few.lost), (30, (3, 7), 3));
    // From its first night on, and over after good nights.
    assert!(told(&"?.".repeat(8)).alerts.iter().any(|alert| alert.end == AlertEnd::Open));
    let over = told(&format!("{}{good}", "?.".repeat(8)));
    assert_eq!(over.alerts.iter().map(|alert| alert.end).collect::<Vec<_>>(), [AlertEnd::WentAway(15)]);
    // One spell is a failure that was mended; one or two nights are chance; and a level is made of values alone.
    for text in ["??????????.", ".?........?.........", "..?"] {
        let found = told(&format!("{good}{text}"));
        assert!(found.alerts.is_empty() && found.suspicious.is_none() && !found.blind, "{text}");
    }
    assert_eq!(told(&format!("{good}??????????.")).history, 31);
    assert!(watch(&nights("????"), &Rules::default()).is_err(), "no value at all");
    let nothing = [Night { day: 0, runs: Vec::new(), lost: 0, epoch: 0 }];
    assert!(watch(&[&nothing[..], &nights(".")].concat(), &Rules::default()).is_err());
}

#[test]
fn an_epoch_that_begins_without_a_value_accepts() {
    let mut all = nights(&format!("{}{}?.............", ".".repeat(30), "?.".repeat(8)));
    all.iter_mut().skip(46).for_each(|night| night.epoch = 1);
    for end in [47, 48, 60] {
        let found = watch(&all[..end], &Rules::default()).unwrap();
        assert_eq!(found.alerts.iter().map(|alert| alert.end).collect::<Vec<_>>(), [AlertEnd::Accepted(46)], "{end}");
        assert_eq!(found.history, if end == 47 { 38 } else { end - 47 });
    }
}

#[test]
fn a_run_far_off_asks_for_a_repeat_until_three_runs_after_it_are_not() {
    for (runs, low, asks) in
        [(2, 0, true), (2, 1, true), (3, 0, true), (3, 1, true), (4, 0, false), (4, 1, true), (6, 2, false)]
    {
        let mut noise = Noise::new(40 + runs as u64);
        let mut all: Vec<Night> = (0..30)
            .map(|day| Night { day, runs: (0..runs).map(|_| 6.0 + 0.01 * noise.normal()).collect(), lost: 0, epoch: 0 })
            .collect();
        all[29].runs[low] -= 0.69;
        let repeat = watch(&all, &Rules::default()).unwrap().repeat;
        assert_eq!(repeat.is_some(), asks, "run {low} of {runs}: {repeat:?}");
    }
}

fn watched(values: &[f64]) -> Watch {
    let nights: Vec<Night> =
        (0..).zip(values).map(|(day, value)| Night { day, runs: vec![6.0 + value], lost: 0, epoch: 0 }).collect();
    watch(&nights, &Rules::default()).unwrap()
}

#[test]
fn an_intermittent_series_is_one_alert_that_ends() {
    let mut noise = Noise::new(5);
    let mut values: Vec<f64> = (0..100).map(|_| 0.01 * noise.normal()).collect();
    (50..70).step_by(2).for_each(|at| values[at] -= 0.69);
    let of = |found: &Watch| {
        found.alerts.iter().filter(|alert| alert.kind == Kind::Intermittent).cloned().collect::<Vec<_>>()
    };
    let during = of(&watched(&values[..70]));
    assert_eq!((during.len(), during[0].since, during[0].nights, during[0].end), (1, 50, (10, 19), AlertEnd::Open));
    assert!((during[0].effect + 0.69).abs() < 0.02);
    // What else was raised meanwhile is over with it.
    for nights in [85, 90, 100] {
        let found = watched(&values[..nights]);
        assert_eq!(of(&found)[0].end, AlertEnd::WentAway(69));
        assert!(found.alerts.iter().all(|alert| alert.end != AlertEnd::Open), "{:?}", found.alerts);
        assert!(!found.blind);
    }
}

#[test]
fn links_are_compared_night_by_night() {
    let night = |low: f64| [(low, 0.01), (0.01, 0.01), (0.0, 0.01), (-0.01, 0.01), (0.02, 0.01)];
    let marks = |night: &[(f64, f64)]| low_among(night, 0.01).map(|all| all.iter().map(|(mark, _)| *mark).collect());
    let rest = [Mark::Good; 4];
    for (low, mark) in [(-0.69, Mark::Low), (-0.08, Mark::Between), (-0.03, Mark::Good), (0.69, Mark::Good)] {
        assert_eq!(marks(&night(low)), Some([&[mark], &rest[..]].concat()), "{low}");
    }
    // A link whose own nights spread as far is not judged by its peers.
    assert_eq!(marks(&[&[(-0.69, 0.2)], &night(0.0)[1..]].concat()), Some([&[Mark::Between], &rest[..]].concat()));
    assert_eq!(low_among(&night(-0.69)[..4], 0.01), None);
    let mut noise = Noise::new(6);
    let mut values: Vec<f64> = (0..1000).map(|_| 0.1 * noise.normal()).collect();
    assert!((upper_spread(&values).unwrap() - 0.1).abs() < 0.01);
    (0..500).for_each(|at| values[at] -= 5.0);
    assert!(upper_spread(&values).unwrap() < 0.2, "low nights do not hide themselves");
}

#[test]
fn noise_that_hides_half_the_rate_is_known() {
    let mut noise = Noise::new(7);
    let mut blind = |sigma: f64, nights: usize| {
        (0..100).filter(|_| watched(&(0..nights).map(|_| sigma * noise.normal()).collect::<Vec<_>>()).blind).count()
    };
    for nights in [14, 40, 120] {
        let (quiet, machine, loud) = (blind(0.01, nights), blind(0.1, nights), blind(0.35, nights));
        println!("{nights} nights: called blind at 1, 10 and 35 % noise: {quiet}, {machine}, {loud} of 100");
        assert!(quiet == 0 && machine == 0 && loud >= 90, "{nights} nights: {quiet}, {machine}, {loud}");
    }
    assert_eq!(blind(1.0, 6), 0, "six nights are too young to say even that");
}
