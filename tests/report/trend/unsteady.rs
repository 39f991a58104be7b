//! Half the rate on some nights or in one of many runs, and noise that hides half the rate.

use railgauge_analysis::{
    history::Run,
    trend::{Options, Rule, Series, State, Watched, day},
};

use super::nights::{cluster, night, one_link, run, watch, worse};
use crate::support::Dice;

/// A link that is good for so many nights, then at half rate on the nights that are named, counted from then; then good.
fn flickering(seed: u64, good: u32, nights: u32, low: impl Fn(u32) -> bool) -> Vec<Run> {
    one_link(seed, good + nights, |n| Some(if n >= good && low(n - good) { 195.0 } else { 390.0 }))
}

#[test]
fn half_the_rate_on_every_second_night_fails_however_good_the_last_one_was() {
    for (good, nights) in [(10, 16), (40, 16), (40, 40), (90, 24)] {
        let found = watch(flickering(3, good, nights, |n| n % 2 == 0 && n + 1 < nights), &Options::default());
        assert_eq!(found.exit_code, 1, "{good} good nights and {nights}: {}", found.sentence);
        let series = found.series.iter().find(|series| !series.alerts.is_empty()).unwrap();
        let open = series.alerts.iter().find(|alert| alert.rule == Rule::Intermittent).unwrap();
        assert_eq!((open.state, open.since.as_str()), (State::Open, night(good.into()).as_str()), "{}", open.reason);
        assert!((open.percent + 50.0).abs() < 3.0 && open.reason.contains("with good nights between them"));
    }
}

#[test]
fn half_the_rate_on_half_of_the_nights_in_any_order_fails() {
    for seed in 0..4 {
        let mut dice = Dice(1000 + seed);
        let low: Vec<bool> = (0..23).map(|_| dice.normal() < 0.0).chain([false]).collect();
        let found = watch(flickering(seed, 45, 24, |n| low[n as usize]), &Options::default());
        assert_eq!(found.exit_code, 1, "{low:?}: {}", found.sentence);
    }
}

#[test]
fn a_few_low_nights_that_come_and_go_are_no_pass() {
    let found = watch(flickering(5, 50, 7, |n| [0, 2, 5].contains(&n)), &Options::default());
    assert_eq!((found.exit_code, found.suspicious, found.repeats), (3, 1, 0), "{}", found.sentence);
    let why = found.series.iter().find_map(|series| series.suspicion.as_ref()).unwrap();
    assert_eq!((why.nights, why.since.clone()), ((3, 7), night(50)), "{}", why.reason);
    // Two dips in weeks are what healthy series have, too.
    let found = watch(flickering(5, 50, 20, |n| n == 2 || n == 12), &Options::default());
    assert_eq!((found.exit_code, found.suspicious), (0, 0), "{}", found.sentence);
}

#[test]
fn what_was_intermittent_is_over_after_enough_good_nights_or_an_epoch() {
    // The states of the alerts of the link, and how it is watched.
    let link = |nights: u32, options: &Options| {
        let bad = |n: u32| n < 20 && n.is_multiple_of(2);
        let found = watch(flickering(7, 40, nights, bad), options);
        let is = |series: &&Series| series.alerts.iter().any(|alert| alert.rule == Rule::Intermittent);
        let series = found.series.iter().find(is).unwrap();
        (series.alerts.iter().map(|alert| alert.state).collect::<Vec<State>>(), series.state, found.exit_code)
    };
    let (states, _, code) = link(24, &Options::default());
    assert!(states.contains(&State::Open) && code == 1, "{states:?}");
    let (states, watched, _) = link(40, &Options::default());
    assert!(!states.contains(&State::Open) && states.contains(&State::WentAway), "{states:?}");
    assert_eq!(watched, Watched::Fully);
    let epochs = vec![(day(&night(61)).unwrap(), "new cable".to_owned())];
    let (states, watched, _) = link(30, &Options { epochs, ..Options::default() });
    assert!(!states.contains(&State::Open) && states.contains(&State::Accepted), "{states:?}");
    assert_eq!(watched, Watched::Weakly);
}

#[test]
fn a_level_that_changed_is_not_intermittent() {
    for level in [195.0, 360.0, 368.0] {
        let found = watch(one_link(9, 100, |n| Some(if n >= 60 { level } else { 390.0 })), &Options::default());
        assert_eq!(found.exit_code, 1, "{}", found.sentence);
        let rules: Vec<Rule> = found.series.iter().flat_map(|series| &series.alerts).map(|alert| alert.rule).collect();
        assert!(!rules.contains(&Rule::Intermittent), "{level}: {rules:?}");
    }
}

#[test]
fn half_the_rate_on_half_of_the_nights_from_the_first_one_on_stands_out_among_its_like() {
    for first in [0, 1] {
        let found = watch(flickering(11, 0, 25, |n| n % 2 == first && n != 24), &Options::default());
        assert_eq!(found.exit_code, 1, "{}", found.sentence);
        assert_eq!(worse(&found).rule, Rule::Intermittent, "{}", worse(&found).reason);
        assert!((worse(&found).percent + 50.0).abs() < 3.0, "{}", worse(&found).reason);
    }
}

#[test]
fn half_the_rate_in_the_newest_run_of_the_last_night_asks_for_a_repeat() {
    for runs in [2, 3, 4, 6] {
        let (of, mut dice) = (cluster(4), Dice(60 + u64::from(runs)));
        let all = (0..30).flat_map(|night| (0..runs).map(move |again| (night, again)));
        let level = |night, again, at| if (night, again + 1, at) == (29, runs, 0) { 195.0 } else { 390.0 };
        let all = all.map(|(night, again)| run(&of, night, again, &mut dice, |at| Some(level(night, again, at))));
        let found = watch(all.collect::<Vec<Run>>(), &Options::default());
        assert_eq!((found.exit_code, found.repeats), (3, 1), "{runs} runs: {}", found.sentence);
    }
}

#[test]
fn noise_that_hides_half_the_rate_is_too_noisy_to_tell_and_that_of_a_virtual_machine_is_not() {
    for (noise, nights, code) in [(0.1, 40, 0), (0.06, 15, 0), (0.35, 60, 3), (0.5, 20, 3), (1.0, 200, 3)] {
        let mut runs = one_link(14, nights, |_| Some(390.0));
        let mut dice = Dice(15);
        runs.iter_mut().flat_map(|run| &mut run.readings).for_each(|reading| {
            reading.value = reading.value.clone().map(|value| value * (noise * dice.normal()).exp());
        });
        let found = watch(runs, &Options::default());
        assert_eq!(found.exit_code, code, "noise of {noise}: {}", found.sentence);
        let noisy = found.series.iter().filter(|series| series.state == Watched::TooNoisy).count();
        assert_eq!(noisy, found.too_noisy);
        assert!(if code == 3 { noisy * 10 > found.series.len() * 8 } else { noisy == 0 }, "{noise}: {noisy} too noisy");
        assert_eq!(found.sentence.contains("too noisy to judge"), code == 3, "{}", found.sentence);
    }
}
