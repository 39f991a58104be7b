//! What is said, where numbers and reasons decide the words.

use railgauge_analysis::{
    history::Run,
    trend::{Options, State, Watched, Way},
};
use railgauge_report::text::Screen;
use railgauge_report::trend::view;

use super::nights::{cluster, run, watch};
use crate::support::Dice;

/// One link of two hosts and nothing else.
fn alone(seed: u64, nights: u32, level: impl Fn(u32) -> f64) -> Vec<Run> {
    let (of, mut dice) = (cluster(2), Dice(seed));
    let one = |night| {
        let mut run = run(&of, night, 0, &mut dice, |_| Some(level(night)));
        run.readings.truncate(1);
        run
    };
    (0..nights).map(one).collect()
}

#[test]
fn one_series_is_no_plural() {
    let found = watch(alone(1, 60, |n| if (30..42).contains(&n) { 195.0 } else { 390.0 }), &Options::default());
    assert!(found.sentence.contains("1 of 1 series monitored"), "{}", found.sentence);
    assert!(found.sentence.contains("1 resolved"), "{}", found.sentence);
    let found = watch(alone(2, 10, |_| 390.0), &Options::default());
    let remarks = view(&found).unwrap().remarks.join("\n");
    assert!(remarks.contains("1 series is weakly watched"), "{remarks}");
    let found = watch(alone(3, 3, |_| 390.0), &Options::default());
    assert!(found.sentence.contains("1 is too young"), "{}", found.sentence);
}

#[test]
fn the_noise_of_a_series_that_is_low_now_and_then_is_that_of_all_its_nights() {
    let mut told = 0;
    for (seed, low) in (0..).zip([&[0, 1, 5][..], &[1, 4], &[0, 4, 8], &[2, 3, 8], &[0, 2, 6, 7]]) {
        let found = watch(alone(seed, 11, |n| if low.contains(&n) { 195.0 } else { 390.0 }), &Options::default());
        for series in found.series.iter().filter(|series| series.state == Watched::TooNoisy) {
            told += 1;
            let noise = series.noise_percent.unwrap();
            assert!(noise > 15.0 && series.scale_percent < 5.0, "{noise} and {}", series.scale_percent);
            let doubts = view(&found).unwrap().doubts.rows;
            let why = doubts.iter().find(|row| row[2].contains("too noisy")).unwrap();
            assert!(why[2].contains("although most lie within"), "{}", why[2]);
        }
    }
    assert!(told > 0, "no series was too noisy");
}

#[test]
fn a_partial_recovery_is_told_with_the_level_it_leaves() {
    let level = |night: u32| match night {
        0..40 => 390.0,
        40..60 => 195.0,
        _ => 363.0,
    };
    let found = watch(alone(4, 80, level), &Options::default());
    let worse = found.changes.iter().find(|change| change.way == Way::Worse).unwrap();
    assert!(worse.sentence.contains("% below the level before it now"), "{}", worse.sentence);
    let told = worse.sentence.split("still open, ").nth(1).unwrap();
    let now: f64 = told.split(' ').next().unwrap().parse().unwrap();
    assert!((now - 6.92).abs() < 1.0, "{told}");
    // One that is as it was needs no second number.
    let found = watch(alone(5, 60, |night| if night < 40 { 390.0 } else { 195.0 }), &Options::default());
    assert!(found.changes[0].sentence.ends_with("still open"), "{}", found.changes[0].sentence);
    assert!(found.totals.is_empty());
}

#[test]
fn many_small_changes_are_summed_in_one_line() {
    let found = watch(alone(6, 120, |night| 390.0 * (1.0 - 0.05 * f64::from(night / 24))), &Options::default());
    assert!(found.changes.iter().filter(|change| change.state == State::Open).count() > 2, "{}", found.sentence);
    let [total] = found.totals.as_slice() else { panic!("{:?}", found.totals) };
    assert!((-24.0..-17.0).contains(&total.percent), "{total:?}");
    let text =
        railgauge_report::trend::text::summary(&view(&found).unwrap(), std::path::Path::new("page"), &Screen::PLAIN);
    let line = text.lines().find(|line| line.contains("altogether")).unwrap();
    assert!(line.contains(&total.kind) && line.contains(&total.since), "{line}");
}
