//! Low nights that come and go, by hand.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod generators;

use generators::Noise;
use railgauge_stats::changepoint::{
    End, Kind, Mark, Night, Rules, Watch, intermittent, low_among, upper_spread, watch,
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

/// Good nights, and then others.
fn after(good: usize, text: &str) -> Vec<Mark> {
    marks(&(".".repeat(good) + text))
}

#[test]
fn spells_of_low_nights_are_counted() {
    let found = intermittent(&after(40, "x.x.x.x.x.")).unwrap();
    assert_eq!((found.since, found.until, found.nights, found.sure), (40, 48, (5, 10), true));
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
    // Good nights in succession with a chance of one half each: ten are one in 1,024.
    assert!(intermittent(&after(40, &("x.".repeat(12) + "......."))).is_some());
    assert_eq!(intermittent(&after(40, &("x.".repeat(12) + "..........."))), None);
}

fn watched(values: &[f64]) -> Watch {
    let nights: Vec<Night> =
        (0..).zip(values).map(|(day, value)| Night { day, runs: vec![6.0 + value], epoch: 0 }).collect();
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
    assert_eq!((during.len(), during[0].since, during[0].nights, during[0].end), (1, 50, (10, 19), End::Open));
    assert!((during[0].effect + 0.69).abs() < 0.02);
    // What else was raised meanwhile is over with it.
    for nights in [85, 90, 100] {
        let found = watched(&values[..nights]);
        assert_eq!(of(&found)[0].end, End::WentAway(69));
        assert!(found.alerts.iter().all(|alert| alert.end != End::Open), "{:?}", found.alerts);
        assert!(!found.blind);
    }
}

#[test]
fn links_are_held_against_each_other_night_by_night() {
    let night = |low: f64| [(low, 0.01), (0.01, 0.01), (0.0, 0.01), (-0.01, 0.01), (0.02, 0.01)];
    let marks = |night: &[(f64, f64)]| low_among(night, 0.01).map(|all| all.iter().map(|(mark, _)| *mark).collect());
    let rest = [Mark::Good; 4];
    for (low, mark) in [(-0.69, Mark::Low), (-0.08, Mark::Between), (-0.03, Mark::Good), (0.69, Mark::Good)] {
        assert_eq!(marks(&night(low)), Some([&[mark], &rest[..]].concat()), "{low}");
    }
    // A link whose own nights spread as far is not judged by its like's.
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
