//! Links that fail on some nights, or in one of a night's runs, and runs of a night that are far off.

use railgauge_analysis::{
    history::{Run, RunError},
    row::Untrusted,
    trend::{Alert, History, Options, Rule, State, Trend, trend},
};

use super::nights::{cluster, night, one_link, rotating, run, watch, worse};
use crate::support::Dice;

/// A link with a value on the nights that are named, counted from the given one, before which it always has.
fn failing(seed: u64, good: u32, nights: u32, fails: impl Fn(u32) -> bool) -> Vec<Run> {
    one_link(seed, good + nights, |n| (n < good || !fails(n - good)).then_some(390.0))
}

fn doubted(found: &Trend) -> Option<&Alert> {
    found.series.iter().find_map(|series| series.suspicion.as_ref())
}

#[test]
fn a_link_that_fails_on_half_of_its_nights_fails_however_good_the_last_one_was() {
    for (good, nights) in [(0, 24), (10, 16), (40, 16), (40, 40)] {
        let found = watch(failing(3, good, nights, |n| n % 2 == 0), &Options::default());
        assert_eq!(found.exit_code, 1, "{good} good nights and {nights}: {}", found.sentence);
        let alert = worse(&found);
        assert_eq!(
            (alert.rule, alert.state, alert.since.as_str()),
            (Rule::Intermittent, State::Open, &*night(good.into()))
        );
        // The window of the rule is 40 nights.
        assert_eq!(alert.lost, alert.nights.0);
        assert!(
            alert.reason.starts_with("failed or had no value on ") && !alert.reason.contains("low"),
            "{}",
            alert.reason
        );
        let change = &found.changes[0].sentence;
        assert!(change.contains("bandwidth failed or had no value on some nights"), "{change}");
        serde_json::to_string(&found).unwrap();
    }
}

#[test]
fn failures_and_low_nights_are_one_state() {
    let level = |n: u32| match n {
        40.. if n.is_multiple_of(4) => None,
        40.. if n % 4 == 2 => Some(195.0),
        _ => Some(390.0),
    };
    let found = watch(one_link(4, 60, level), &Options::default());
    let alert = worse(&found);
    assert_eq!((found.exit_code, alert.nights.0, alert.lost), (1, 10, 5), "{}", alert.reason);
    assert!((alert.percent + 50.0).abs() < 3.0 && alert.reason.contains("on 5, failed or had no value on 5 of 19"));
}

#[test]
fn a_few_failures_that_come_and_go_are_no_pass_and_one_that_was_mended_is() {
    let found = watch(failing(5, 50, 7, |n| [0, 2, 5].contains(&n)), &Options::default());
    assert_eq!((found.exit_code, found.suspicious), (3, 1), "{}", found.sentence);
    let why = doubted(&found).unwrap();
    assert_eq!((why.lost, why.nights, why.since.clone()), (3, (3, 7), night(50)), "{}", why.reason);
    for fails in [vec![3], vec![2, 12], (0..15).collect()] {
        let found = watch(failing(5, 50, 20, |n| fails.contains(&n)), &Options::default());
        assert_eq!((found.exit_code, found.suspicious), (0, 0), "{fails:?}: {}", found.sentence);
    }
}

#[test]
fn a_run_without_a_value_is_told_until_three_later_ones_answer() {
    for (runs, lacks, told) in [(2, 0, true), (3, 0, true), (4, 0, false), (4, 1, true)] {
        let (of, mut dice) = (cluster(4), Dice(70));
        let all = (0..20).flat_map(|night| (0..runs).map(move |again| (night, again)));
        let value = |night, again, at| ((night, again, at) != (19, lacks, 0)).then_some(390.0);
        let all = all.map(|(night, again)| run(&of, night, again, &mut dice, |at| value(night, again, at)));
        let found = watch(all.collect::<Vec<Run>>(), &Options::default());
        let is = (found.unanswered, found.exit_code, found.missing.len());
        assert_eq!(is, if told { (1, 3, 0) } else { (0, 0, 0) }, "run {lacks} of {runs}: {}", found.sentence);
        assert_eq!(found.sentence.contains("failed or had no value in a run of the last night"), told);
    }
}

#[test]
fn half_the_rate_in_any_of_three_runs_of_the_last_night_is_no_pass() {
    for hosts in [2, 4] {
        for low in 0..3 {
            let (of, mut dice) = (cluster(hosts), Dice(60 + u64::from(low)));
            let all = (0..30).flat_map(|night| (0..3).map(move |again| (night, again)));
            let level = |night, again, at| if (night, again, at) == (29, low, 0) { 195.0 } else { 390.0 };
            let all = all.map(|(night, again)| run(&of, night, again, &mut dice, |at| Some(level(night, again, at))));
            let found = watch(all.collect::<Vec<Run>>(), &Options::default());
            assert_eq!((found.exit_code, found.repeats), (3, 1), "run {low} of {hosts} hosts: {}", found.sentence);
        }
    }
}

#[test]
fn nights_on_which_a_whole_plan_measures_nothing_are_failures_too() {
    let (of, mut dice) = (cluster(4), Dice(9));
    let mut collected = History::default();
    for night in 0..41 {
        let run = run(&of, night, 0, &mut dice, |_| Some(390.0));
        if night < 20 || night % 2 == 0 {
            collected.add(run);
        } else {
            let why = RunError::Unplanned { path: "records.jsonl".into(), run: Box::new(run) };
            collected.unreadable(std::path::Path::new("night"), &why);
        }
    }
    let found = trend(collected, &Options::default()).unwrap();
    assert_eq!((found.exit_code, found.changes.len()), (1, 1), "{}", found.sentence);
    assert_eq!(found.changes[0].name, "every link");
}

#[test]
fn a_host_whose_pairs_fail_on_half_of_the_nights_fails_though_the_pairs_change() {
    let bad = |night: u32| night >= 16 && night.is_multiple_of(2);
    let mut runs = rotating(33, 1, |_, _| false);
    for (night, run) in (0..).zip(&mut runs).filter(|(night, _)| bad(*night) && *night != 32) {
        let ends =
            |case: &railgauge_model::journal::event::Case| [case.flow.from.host.clone(), case.flow.to.host.clone()];
        for reading in &mut run.readings {
            let case = &run.cases[usize::try_from(reading.case).unwrap()];
            if ends(case).iter().any(|host| &**host == "gpu003") {
                reading.value =
                    Err(Untrusted::Objection { error: format!("gpu003: connect: no route on night {night}") });
            }
        }
    }
    let found = watch(runs, &Options::default());
    assert_eq!(found.exit_code, 1, "{}", found.sentence);
    let change = &found.changes[0];
    assert_eq!((change.name.as_str(), change.state), ("host gpu003", State::Open), "{}", found.sentence);
    assert!(change.members.iter().all(|(at, alert)| found.series[*at].alerts[*alert].lost > 0), "{}", change.sentence);
}
