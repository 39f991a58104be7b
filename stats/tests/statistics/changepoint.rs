//! Nightly series that we generate: false alerts a year, and the night a change is found.
//!
//! The figures of docs/methods.md are printed by
//! `cargo test -p railgauge-stats --test statistics changepoint -- --nocapture`.

use crate::generators::{Noise, on_cpu};
use railgauge_stats::{
    Refusal,
    changepoint::{Alert, AlertEnd, Kind, Member, Night, Rules, last_night, stand_out, together, watch},
};

/// Never used while the rules were made; development used 1 to 9 and 141421356.
const FRESH: u64 = 662_607_015;

/// Noise of standard deviation 1 around 0, without change.
fn quiet(kind: &str, n: usize, noise: &mut Noise) -> Vec<f64> {
    let mut last = noise.normal();
    (0..n)
        .map(|_| match kind {
            "normal" => noise.normal(),
            "heavy tails" => noise.t3(),
            "dips" => {
                let dip = if noise.chance(0.02) { 4.0 + 6.0 * noise.uniform() } else { 0.0 };
                noise.normal() - dip
            }
            _ => {
                let r = if kind.ends_with(".6") { 0.6_f64 } else { 0.3 };
                last = r * last + (1.0 - r * r).sqrt() * noise.normal();
                last
            }
        })
        .collect()
}

/// Four kinds that the target is about, and a harder one.
const KINDS: [&str; 5] = ["normal", "heavy tails", "dips", "autocorrelated .3", "autocorrelated .6"];
/// Standard deviation of a night: 1 % of the value.
const SIGMA: f64 = 0.01;
/// Nights before the first that is judged.
const HISTORY: usize = 65;

fn nights(values: &[f64]) -> Vec<Night> {
    let night = |(day, v): (i64, &f64)| Night { day, runs: vec![6.0 + SIGMA * v], lost: 0, epoch: 0 };
    (0..).zip(values).map(night).collect()
}

fn alerts(nights: &[Night], rules: &Rules) -> Vec<Alert> {
    watch(nights, rules).unwrap().alerts
}

/// The first night, counted from 1, on which a drop from night `start` on is reported.
fn found(alerts: &[Alert], start: usize) -> Option<i64> {
    alerts.iter().find(|a| a.effect < 0.0 && a.raised >= start as i64).map(|a| a.raised - start as i64 + 1)
}

/// Everything beyond `least` counts, so that the smallest effect does not hide false alerts.
const RULES: Rules = Rules { least: 0.0 };

/// The short form of `bench/judgement --only trend`.
#[test]
#[ignore = "slow: a simulation"]
fn few_false_alerts_and_steps_found_within_eight_nights() {
    println!(
        "noise | false alerts a series-year | step of 2, 3, 5 sigma found by night 8 (median night) after 65 nights, after 130"
    );
    let mut noise = Noise::new(FRESH);
    for kind in KINDS {
        let (series, length) = (200, HISTORY + 200);
        let mut raised = 0;
        for _ in 0..series {
            let values = quiet(kind, length, &mut noise);
            raised += alerts(&nights(&values), &RULES).iter().filter(|a| a.raised >= HISTORY as i64).count();
        }
        let years = (series * (length - HISTORY)) as f64 / 365.0;
        let rate = raised as f64 / years;
        let trials = 160;
        let mut steps = |history: usize| {
            [2.0, 3.0, 5.0].map(|sigma| {
                let first = |noise: &mut Noise| {
                    let mut values = quiet(kind, history + 25, noise);
                    values[history..].iter_mut().for_each(|v| *v -= sigma);
                    found(&alerts(&nights(&values), &RULES), history).unwrap_or(99)
                };
                let mut by: Vec<i64> = (0..trials).map(|_| first(&mut noise)).collect();
                by.sort_unstable();
                (by.iter().filter(|&&night| night <= 8).count() as f64 / trials as f64, by[trials / 2])
            })
        };
        let (short, long) = (steps(HISTORY), steps(2 * HISTORY));
        println!("{kind} | {rate:.3} ({raised} in {years:.0} years) | {short:?} {long:?}");
        if kind.ends_with(".6") {
            // Printed and not promised: such a series wanders by more than a step within a week.
            continue;
        }
        assert!(rate <= 0.2, "{kind}: {rate} false alerts a year");
        assert!(short[1].0 >= 0.95 && long[1].0 >= 0.95, "{kind}: 3 sigma");
        assert!(short[2].0 >= 0.95 && long[2].0 >= 0.95, "{kind}: 5 sigma");
    }
}

#[test]
fn a_change_is_reported_once_placed_and_measured() {
    let mut noise = Noise::new(FRESH + 2);
    let (mut once, mut placed, mut held, trials) = (0, 0, 0, 200);
    for _ in 0..trials {
        let mut values = quiet("normal", 165, &mut noise);
        values[100..].iter_mut().for_each(|v| *v -= 4.0);
        let all = alerts(&nights(&values), &Rules::default());
        once += usize::from(all.len() == 1 && all[0].end == AlertEnd::Open);
        if let Some(alert) = all.iter().find(|a| a.raised >= 100) {
            placed += usize::from((alert.since - 100).abs() <= 1);
            held += usize::from(alert.interval.is_none_or(|i| i.holds(-4.0 * SIGMA)));
        }
    }
    println!(
        "4 sigma: reported exactly once {once}, placed within a night {placed}, interval holds {held}, of {trials}"
    );
    assert!(once >= trials * 95 / 100 && placed >= trials * 95 / 100 && held >= trials * 85 / 100);
}

#[test]
fn what_went_away_says_so() {
    let mut noise = Noise::new(FRESH + 3);
    let (mut went, mut right, trials) = (0, 0, 200);
    for _ in 0..trials {
        let mut values = quiet("normal", 140, &mut noise);
        values[80..100].iter_mut().for_each(|v| *v -= 4.0);
        let state = watch(&nights(&values), &Rules::default()).unwrap();
        if let [Alert { end: AlertEnd::WentAway(day), .. }] = &state.alerts[..] {
            went += 1;
            right += usize::from((day - 100).abs() <= 2);
        }
        // The history of the old level is taken up again.
        assert!(state.alerts.len() != 1 || state.alerts[0].end == AlertEnd::Open || state.history >= 80);
    }
    println!("20 bad nights: one alert that went away {went}, on the right day {right}, of {trials}");
    assert!(went >= trials * 95 / 100 && right >= trials * 90 / 100);
}

#[test]
fn declared_epochs_and_missing_nights_are_normal_life() {
    let mut noise = Noise::new(FRESH + 4);
    let (mut at_epoch, mut with_gaps, trials) = (0, 0, 200);
    for _ in 0..trials {
        let mut values = quiet("normal", 200, &mut noise);
        values[100..].iter_mut().for_each(|v| *v -= 4.0);
        let mut all = nights(&values);
        all[100..].iter_mut().for_each(|night| night.epoch = 7);
        at_epoch += alerts(&all, &Rules::default()).len();
        // A third of the nights is missing; a step is still found within eight results.
        let gaps: Vec<Night> = nights(&values).into_iter().filter(|_| !noise.chance(0.33)).collect();
        let eighth = gaps.iter().filter(|night| night.day >= 100).nth(7).unwrap().day;
        with_gaps += usize::from(alerts(&gaps, &Rules::default()).iter().any(|a| (100..=eighth).contains(&a.raised)));
    }
    println!(
        "declared change: {at_epoch} alerts in {trials} series; with a third of nights missing found by the eighth {with_gaps}"
    );
    assert!(at_epoch <= trials / 10 && with_gaps >= trials * 95 / 100);
    let short = watch(&nights(&[0.0, 1.0, 2.0]), &Rules::default()).unwrap();
    assert_eq!((short.alerts.len(), short.history), (0, 3));
    let mut backwards = nights(&[0.0, 1.0]);
    backwards.reverse();
    assert!(watch(&backwards, &Rules::default()).is_err());
    assert_eq!(watch(&nights(&[0.0, f64::NAN]), &Rules::default()), Err(Refusal::NotFinite { at: 1 }));
}

/// Nights of a wave of 1 %, with what is added to each.
fn wave(n: usize, added: impl Fn(usize) -> f64) -> Vec<Night> {
    let values: Vec<f64> = (0..n).map(|at| (at as f64 * 2.4).sin() + added(at) / SIGMA).collect();
    nights(&values)
}

#[test]
fn a_step_is_placed_on_its_night() {
    for start in [2, 3, 7, 20, 39, 130] {
        for drop in [-0.69, 0.69] {
            let [alert] = &alerts(&wave(start + 3, |at| if at >= start { drop } else { 0.0 }), &Rules::default())[..]
            else {
                panic!("no single alert of a step at {start}");
            };
            assert_eq!(
                (alert.kind, alert.since, alert.effect > 0.0),
                (Kind::Step, start as i64, drop > 0.0),
                "{alert:?}"
            );
        }
    }
    // Two steps are two alerts, and a constant has none.
    let two = alerts(
        &wave(120, |at| {
            if at < 50 {
                0.0
            } else if at < 90 {
                -0.2
            } else {
                -0.5
            }
        }),
        &Rules::default(),
    );
    assert_eq!(two.iter().map(|alert| alert.since).collect::<Vec<_>>(), [50, 90]);
    assert!(alerts(&nights(&[1.0; 80]), &Rules::default()).is_empty());
}

#[test]
fn a_few_wild_nights_change_nothing() {
    let wild: [&[usize]; 6] = [&[0], &[19], &[30, 31], &[10, 40], &[56, 58], &[58, 59]];
    for at_half in wild {
        let all = wave(60, |at| if at_half.contains(&at) { -0.69 } else { 0.0 });
        assert!(alerts(&all, &Rules::default()).is_empty(), "{at_half:?}");
    }
    // A dip on either side hides no step.
    let spoilt = |at: usize| if at >= 8 { -0.07 } else { 0.0 } + if [3, 12].contains(&at) { -0.3 } else { 0.0 };
    assert!(alerts(&wave(16, spoilt), &Rules::default()).iter().any(|alert| alert.since == 8));
}

#[test]
fn a_drift_is_one_alert() {
    let mut noise = Noise::new(FRESH + 1);
    let trials = 100;
    for good in [0, 60] {
        let (mut early, mut once) = (0, 0);
        for _ in 0..trials {
            let lost = |at: i32| 0.1 * f64::from((at - good).max(0));
            let values: Vec<f64> = (0..180 + good).map(|at| noise.normal() - lost(at)).collect();
            let all = alerts(&nights(&values), &Rules::default());
            let worse: Vec<&Alert> = all.iter().filter(|alert| alert.effect < 0.0).collect();
            early += usize::from(worse.first().is_some_and(|alert| alert.raised < i64::from(good) + 80));
            once += usize::from(worse.len() == 1 && worse[0].kind == Kind::Drift && worse[0].end == AlertEnd::Open);
        }
        println!("-0.1 % a night from night {good} on: reported before -8 % {early}, by one alert {once}, of {trials}");
        assert!(early == trials && once >= trials * 95 / 100, "{early} {once}");
    }
}

#[test]
fn a_last_night_far_below_asks_for_a_repeat() {
    let before: Vec<f64> = (0..40).map(|i| 0.01 * (f64::from(i) * 2.4).sin()).collect();
    for n in [2, 5, 19, 20, 40] {
        assert!(last_night(&before[..n], -0.69, 0.01).is_some_and(|r| r.z < -6.0), "{n}");
        assert_eq!(last_night(&before[..n], -0.02, 0.01), None);
        assert_eq!(last_night(&before[..n], 0.69, 0.01), None, "better is no reason to doubt");
    }
    assert_eq!(last_night(&before[..1], -0.69, 0.01), None);
}

#[test]
fn who_was_bad_from_the_first_night_on_stands_out() {
    let mut levels: Vec<f64> = (0..12).map(|i| 0.01 * (f64::from(i) * 2.4).sin()).collect();
    levels[4] = -0.69;
    let out = stand_out(&levels, 0.01);
    assert_eq!(out.iter().filter(|out| out.is_some()).count(), 1);
    assert!((out[4].unwrap().effect + 0.69).abs() < 0.02);
    // Better is no fault, half of all being low is no outlier, and four say nothing of each other.
    assert!(stand_out(&levels.iter().map(|v| -v).collect::<Vec<_>>(), 0.01).iter().all(Option::is_none));
    let halves: Vec<f64> = (0..12).map(|i| if i % 2 == 0 { -0.69 } else { 0.01 * f64::from(i) }).collect();
    assert!(stand_out(&halves, 0.01).iter().all(Option::is_none));
    assert!(stand_out(&levels[3..7], 0.01).iter().all(Option::is_none));
}

/// Levels in standard deviations, each with its nights; the drop at the first bound is open or not at the end.
#[test]
fn only_the_level_before_ends_a_change_for_the_worse() {
    let stories: [(&[(usize, f64)], bool); 6] = [
        (&[(100, 0.0), (30, -69.0), (5, -95.0), (25, -69.0)], true),
        (&[(40, 0.0), (30, -69.0), (30, -59.0)], true),
        (&[(40, 0.0), (30, -11.0), (20, -26.0), (30, -11.0)], true),
        (&[(40, 0.0), (30, -11.0), (60, -4.0)], true),
        (&[(40, 0.0), (30, -69.0), (20, 0.0)], false),
        (&[(8, 0.0), (6, -69.0), (6, -95.0), (20, 0.0)], false),
    ];
    let mut noise = Noise::new(FRESH + 8);
    // Noise raises up to 0.1 alerts a series-year before anything changed, and one moves the level that counts as good: these are
    // 15 series-years before the first bound.
    let mut by_chance = 0;
    for (story, open) in stories {
        for _ in 0..20 {
            let levels = story.iter().flat_map(|&(nights, level)| std::iter::repeat_n(level, nights));
            let values: Vec<f64> = levels.map(|level| level + noise.normal()).collect();
            let found = watch(&nights(&values), &Rules::default()).unwrap();
            if found.alerts.iter().any(|a| a.raised < story[0].0 as i64) {
                by_chance += 1;
                continue;
            }
            let first = found.alerts.iter().find(|a| a.effect < 0.0).unwrap();
            assert_eq!(first.end == AlertEnd::Open, open, "{story:?}: {:?}", found.alerts);
            assert!((found.accepted - 6.0).abs() < 0.02, "{story:?}: accepted {}", found.accepted);
        }
    }
    assert!(by_chance <= 2, "{by_chance}");
}

#[test]
fn two_drops_one_of_which_went_away_are_no_drift() {
    let noise = |n: usize, level: f64| wave(n, |_| level).into_iter().map(|night| night.runs[0]).collect::<Vec<f64>>();
    let levels = [(13, 0.0), (57, -0.065), (34, -0.626), (6, -0.055), (33, -0.291)];
    let values: Vec<f64> = levels.iter().flat_map(|&(n, level)| noise(n, level)).collect();
    let series: Vec<Night> =
        (0..).zip(&values).map(|(day, &v)| Night { day, runs: vec![v], lost: 0, epoch: 0 }).collect();
    let found = alerts(&series, &Rules::default());
    assert_eq!((found[0].since, found[0].kind, found[0].end), (13, Kind::Step, AlertEnd::Open), "{found:#?}");
}

#[test]
fn a_dip_hides_no_step_of_a_young_series() {
    let series = [
        (3, [-0.3, 1.6, -0.3, -5.1, -13.4, -3.1, -5.7, -3.8, -6.5, -4.4, -4.8, -5.3, -5.0]),
        (2, [0.2, -0.2, -5.0, -4.9, -11.1, -5.1, -6.4, -3.1, -4.6, -4.8, -6.4, -5.2, -6.3]),
        (3, [1.4, 0.3, -0.8, -5.1, -13.7, -4.5, -4.5, -6.2, -4.1, -4.5, -6.8, -4.4, -5.5]),
    ];
    for (start, values) in series {
        let all = alerts(&nights(&values), &Rules::default());
        assert!(found(&all, start).is_some_and(|night| night <= 10), "{values:?}: {all:#?}");
        assert!(all.iter().any(|alert| (alert.since - start as i64).abs() <= 1), "{all:#?}");
    }
}

#[test]
fn coarse_clocks_hide_nothing() {
    let mut noise = Noise::new(FRESH + 7);
    let mut found = 0;
    for _ in 0..200 {
        // Latencies of 1,861 ns or one more or less, most of them equal, and half as much again from night 60 on.
        let mut night = |i: usize| (if i < 60 { 1861.0 } else { 2792.0 } + (0.6 * noise.normal()).round()).ln();
        let nights: Vec<Night> =
            (0..80).map(|i| Night { day: i as i64, runs: vec![night(i)], lost: 0, epoch: 0 }).collect();
        let raised = alerts(&nights, &Rules::default());
        found += usize::from(raised.len() == 1 && raised[0].since == 60 && raised[0].raised < 68);
    }
    println!("steps of series in whole nanoseconds found at once, and nothing else: {found} of 200");
    assert!(found >= 198, "{found}");
}

#[test]
fn series_that_moved_together_have_one_cause() {
    // 8 leaves of 10 links; label 0 is the cluster, 1 to 8 are the leaves.
    let labels: Vec<Vec<usize>> = (0..80).map(|i| vec![0, 1 + i / 10]).collect();
    let member = |series: usize, day: i64, effect: f64| Member { series, day, effect };
    let leaf: Vec<Member> = (20..29).map(|i| member(i, 50 + i as i64 % 3, -0.1)).collect();
    let found = together(&leaf, &labels);
    assert_eq!((found.len(), found[0].label, found[0].of, found[0].members.len()), (1, 3, 10, 9));
    let all: Vec<Member> = (0..70).map(|i| member(i, 50, -0.1)).collect();
    assert_eq!(together(&all, &labels).iter().map(|s| s.label).collect::<Vec<_>>(), [0]);
    // Two leaves at different times, and one link by itself.
    let mut two = leaf.clone();
    two.extend((40..50).map(|i| member(i, 90, 0.2)));
    two.push(member(79, 50, -0.1));
    let found = together(&two, &labels);
    assert_eq!(found.iter().map(|s| (s.label, s.members.len(), s.day)).collect::<Vec<_>>(), [(5, 10, 90), (3, 9, 51)]);
    // Opposite directions, or weeks apart, are not together.
    let mixed: Vec<Member> = (0..6).map(|i| member(i, i as i64 * 20, if i % 2 == 0 { 0.1 } else { -0.1 })).collect();
    assert!(together(&mixed, &labels).is_empty());
}

/// 500 series of 365 nights, a tenth of which change. `bench/analysis` holds the time of it against its bar.
#[test]
fn changes_in_a_year_of_five_hundred_series_are_found() {
    let mut noise = Noise::new(FRESH + 6);
    let all: Vec<Vec<Night>> = (0..500)
        .map(|i| {
            let mut values = quiet(KINDS[i % 4], 365, &mut noise);
            if i % 10 == 0 {
                values[200..].iter_mut().for_each(|v| *v -= 4.0);
            }
            nights(&values)
        })
        .collect();
    let start = on_cpu();
    let found: Vec<usize> = all.iter().map(|nights| alerts(nights, &Rules::default()).len()).collect();
    println!(
        "365 nights of 500 series: {:.1?} of processor time, {} alerts",
        on_cpu() - start,
        found.iter().sum::<usize>()
    );
    assert!(found.iter().step_by(10).all(|alerts| *alerts > 0), "a change was not found");
}
