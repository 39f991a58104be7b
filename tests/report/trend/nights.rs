//! Nights whose values the test says, from runs as they are read to the verdict.

use std::{collections::BTreeSet, fs};

use jiff::Timestamp;
use railgauge_analysis::{
    history::{Run, RunError},
    row::Untrusted,
    status::Status,
    trend::{Component, History, Options, Reported, Rule, State, Trend, Watched, Way, day, trend},
};
use railgauge_model::{journal::event::Event, plan::model::Pattern};
use railgauge_wire::terms::Metric;

use crate::support::{Dice, Scenario, text};

/// First night of all that is made up here.
const FIRST: &str = "2026-11-21T02:00:00Z";

/// A run of some hosts as it is read from its directory; only bandwidth.
pub(super) fn template(scenario: &Scenario) -> Run {
    let place = tempfile::tempdir().unwrap();
    // Writing and reading latencies takes nine tenths of the time.
    let mut lines = scenario.lines();
    let cases = lines.iter().find_map(|line| match &line.event {
        Event::Planned { cases } => Some(cases.clone()),
        _ => None,
    });
    let latencies: BTreeSet<u64> =
        cases.unwrap().iter().filter(|case| &*case.test == "write-lat").map(|case| case.id).collect();
    lines.retain(|line| !matches!(&line.event, Event::Outcome(outcome) if latencies.contains(&outcome.case)));
    fs::write(place.path().join("records.jsonl"), text(&lines)).unwrap();
    let mut run = crate::kept::read(place.path(), &[Metric::Bandwidth]).unwrap();
    run.plan_hash = "first".into();
    run
}

pub(super) fn cluster(hosts: usize) -> Run {
    template(&Scenario { sizes: vec![1 << 20], repeats: 1, ..Scenario::healthy(hosts, 1) })
}

/// The run of a night, `again` hours after its first; `level` is what each reading carries in Gb/s, or none.
pub(super) fn run(of: &Run, night: u32, again: u32, dice: &mut Dice, level: impl Fn(usize) -> Option<f64>) -> Run {
    let first: Timestamp = FIRST.parse().unwrap();
    let mut run = of.clone();
    run.started = first + jiff::SignedDuration::from_hours(i64::from(24 * night + again));
    run.run_id = format!("{night}-{again}");
    for (at, reading) in run.readings.iter_mut().enumerate() {
        let noise = (0.01 * dice.normal()).exp();
        reading.value = level(at).map(|level| level * noise).ok_or(Untrusted::NoValue);
    }
    run
}

pub(super) fn watch(runs: impl IntoIterator<Item = Run>, options: &Options) -> Trend {
    let mut collected = History::default();
    runs.into_iter().for_each(|run| collected.add(run));
    trend(collected, options).unwrap()
}

/// One run a night of four hosts, in which the first link carries what is said by night and all others 390.
pub(super) fn one_link(seed: u64, nights: u32, level: impl Fn(u32) -> Option<f64>) -> Vec<Run> {
    let (of, mut dice) = (cluster(4), Dice(seed));
    (0..nights)
        .map(|night| run(&of, night, 0, &mut dice, |at| if at == 0 { level(night) } else { Some(390.0) }))
        .collect()
}

/// The date of a night.
pub(super) fn night(number: i64) -> String {
    railgauge_analysis::trend::date(day("2026-11-21").unwrap() + number)
}

/// The first change for the worse.
pub(super) fn worse(found: &Trend) -> &railgauge_analysis::trend::Alert {
    let alerts = found.series.iter().flat_map(|series| &series.alerts);
    alerts.filter(|alert| alert.way == Way::Worse).min_by_key(|alert| alert.day).expect("a change for the worse")
}

#[test]
fn a_step_in_a_young_level_is_reported_with_its_night_however_long_ago() {
    for (start, nights) in [(2, 9), (5, 12), (5, 200), (12, 60), (20, 27), (27, 80)] {
        let found = watch(
            one_link(start, nights, |n| Some(if n >= start as u32 { 195.0 } else { 390.0 })),
            &Options::default(),
        );
        assert_eq!(found.exit_code, 1, "from night {start} of {nights}: {}", found.sentence);
        let alert = worse(&found);
        assert_eq!((alert.since.as_str(), alert.state), (night(start as i64).as_str(), State::Open));
        assert!(day(&alert.raised).unwrap() - alert.day < 7, "{}", alert.reason);
    }
}

#[test]
fn a_small_step_in_a_young_level_is_reported_too() {
    for start in [3, 8, 15, 24] {
        let found = watch(
            one_link(start + 40, start as u32 + 10, |n| Some(if n >= start as u32 { 370.5 } else { 390.0 })),
            &Options::default(),
        );
        assert_eq!(found.exit_code, 1, "from night {start}: {}", found.sentence);
        assert!((worse(&found).day - day(&night(start as i64)).unwrap()).abs() <= 1);
    }
}

#[test]
fn new_firmware_makes_no_level_young() {
    for after in [0, 1, 2, 10] {
        let mut runs =
            one_link(after, 100 + after as u32 + 7, |n| Some(if n >= 100 + after as u32 { 195.0 } else { 390.0 }));
        for run in &mut runs[100..] {
            let devices = run.hosts.values_mut().flat_map(|facts| &mut facts.rdma);
            devices.for_each(|device| device.firmware = Some("99.1".into()));
        }
        let found = watch(runs, &Options::default());
        assert_eq!(found.exit_code, 1, "{after} nights after new firmware: {}", found.sentence);
        assert_eq!(worse(&found).since, night(100 + after as i64));
        assert!(!found.epochs.is_empty());
    }
}

#[test]
fn a_step_after_a_declared_epoch_is_reported_and_one_with_it_is_accepted() {
    let epochs = vec![(day(&night(60)).unwrap(), "new switches".to_owned())];
    let options = Options { epochs, ..Options::default() };
    for after in [0, 1, 3, 10] {
        let runs =
            one_link(7 + after, 60 + after as u32 + 7, |n| Some(if n >= 60 + after as u32 { 195.0 } else { 390.0 }));
        let found = watch(runs, &options);
        assert_eq!(found.exit_code, i32::from(after > 0) as u8, "{after} nights after: {}", found.sentence);
    }
}

#[test]
fn a_standing_regression_is_never_over() {
    // Levels in Gb/s, each with its nights.
    let stories: [&[(u32, f64)]; 4] = [
        &[(100, 390.0), (30, 195.0), (5, 150.0), (25, 195.0)],
        &[(40, 390.0), (30, 195.0), (30, 215.0)],
        &[(40, 390.0), (30, 350.0), (20, 300.0), (30, 350.0)],
        &[(12, 390.0), (9, 195.0), (9, 370.0)],
    ];
    for story in stories {
        let total = story.iter().map(|(nights, _)| nights).sum();
        let level = |night: u32| {
            let mut left = night;
            story
                .iter()
                .find(|(nights, _)| {
                    let here = left < *nights;
                    left = left.saturating_sub(*nights);
                    here
                })
                .map(|(_, level)| *level)
        };
        let found = watch(one_link(11, total, level), &Options::default());
        assert_eq!((found.exit_code, worse(&found).state), (1, State::Open), "{story:?}: {}", found.sentence);
        let series = found.series.iter().find(|series| !series.alerts.is_empty()).unwrap();
        assert!((series.accepted / 390.0 - 1.0).abs() < 0.02, "accepted {}", series.accepted);
    }
    let back =
        watch(one_link(12, 160, |n| Some(if (100..130).contains(&n) { 195.0 } else { 390.0 })), &Options::default());
    assert_eq!((back.exit_code, worse(&back).state), (0, State::WentAway), "{}", back.sentence);
    let epochs = vec![(day(&night(60)).unwrap(), "accepted".to_owned())];
    let accepted = watch(
        one_link(13, 90, |n| Some(if n >= 40 { 195.0 } else { 390.0 })),
        &Options { epochs, ..Options::default() },
    );
    assert_eq!((accepted.exit_code, worse(&accepted).state), (0, State::Accepted), "{}", accepted.sentence);
}

#[test]
fn several_runs_a_night_raise_no_alarms() {
    let of = cluster(5);
    for runs in [4, 6, 0] {
        let mut dice = Dice(97 + u64::from(runs));
        let all = (0..150).flat_map(|night| {
            let runs = if runs > 0 { runs } else { 1 + night % 6 };
            (0..runs).map(move |again| (night, again))
        });
        let all: Vec<Run> = all.map(|(night, again)| run(&of, night, again, &mut dice, |_| Some(390.0))).collect();
        let found = watch(all, &Options::default());
        let alerts: usize = found.series.iter().map(|series| series.alerts.len()).sum();
        // Four series-years: one is allowed.
        assert!(found.series_years > 4.0 && alerts <= 1, "{runs} runs a night: {alerts} alerts");
    }
}

#[test]
fn what_is_missing_is_no_pass() {
    let of = cluster(4);
    let mut dice = Dice(5);
    let links = of.readings.len();
    let all: Vec<Run> = (0..60).map(|night| run(&of, night, 0, &mut dice, |_| (night < 52).then_some(390.0))).collect();
    let found = watch(all.clone(), &Options::default());
    assert_eq!((found.exit_code, found.missing.len()), (3, links), "{}", found.sentence);
    assert!(found.missing.iter().all(|missing| missing.nights == 8));
    assert!(found.series.iter().all(|series| series.state == Watched::Missing));
    // One link in the last night alone.
    let one = watch(one_link(6, 60, |night| (night < 59).then_some(390.0)), &Options::default());
    assert_eq!((one.exit_code, one.missing.len(), one.missing[0].nights), (3, 1, 1));
    // Never a value at all.
    let never = watch(one_link(6, 60, |_| None), &Options::default());
    assert_eq!((never.exit_code, never.missing.len(), never.missing[0].last.clone()), (3, 1, None));
    // Runs that came to plan nothing are nights too.
    let mut collected = History::default();
    all[..52].iter().cloned().for_each(|run| collected.add(run));
    for run in &all[52..] {
        let why = RunError::Unplanned { path: "records.jsonl".into(), run: Box::new(run.clone()) };
        collected.unreadable(std::path::Path::new("night"), &why);
    }
    let unplanned = trend(collected, &Options::default()).unwrap();
    assert_eq!((unplanned.exit_code, unplanned.missing.len()), (3, links), "{}", unplanned.sentence);
}

#[test]
fn a_regression_that_went_silent_stands() {
    let level = |night: u32| (night < 60).then_some(if night >= 40 { 195.0 } else { 390.0 });
    let found = watch(one_link(8, 80, level), &Options::default());
    assert_eq!((found.exit_code, worse(&found).state), (1, State::Open), "{}", found.sentence);
    assert_eq!((found.missing.len(), found.missing[0].nights), (1, 20));
}

#[test]
fn another_plan_or_other_hardware_is_not_missing() {
    let mut runs = one_link(9, 80, |_| Some(390.0));
    for run in &mut runs[50..] {
        run.plan_hash = "second".into();
        run.plan.tests.iter_mut().for_each(|test| test.warm_up *= 3);
    }
    let found = watch(runs, &Options::default());
    assert_eq!((found.exit_code, found.missing.len()), (0, 0), "{}", found.sentence);
    assert_eq!(found.series.iter().filter(|series| series.state == Watched::Retired).count(), found.series.len() / 2);
    let mut runs = one_link(9, 80, |_| Some(390.0));
    for run in &mut runs[50..] {
        run.hosts.get_mut("gpu001").unwrap().rdma[0].guid = Some("another NIC".into());
    }
    let found = watch(runs, &Options::default());
    assert_eq!((found.exit_code, found.missing.len()), (0, 0), "{}", found.sentence);
}

#[test]
fn half_the_rate_in_the_last_night_alone_asks_for_a_repeat() {
    for nights in [8, 20, 60] {
        let found = watch(
            one_link(nights.into(), nights, |n| Some(if n + 1 == nights { 195.0 } else { 390.0 })),
            &Options::default(),
        );
        assert_eq!((found.status, found.exit_code, found.repeats), (Status::Inconclusive, 3, 1), "{}", found.sentence);
        let series = found.series.iter().find(|series| series.repeat.is_some()).unwrap();
        assert!(series.repeat.unwrap() < -6.0);
    }
}

#[test]
fn from_seven_nights_on_there_is_a_weaker_answer() {
    let few = watch(one_link(21, 6, |_| Some(390.0)), &Options::default());
    assert_eq!((few.exit_code, few.too_young), (3, few.series.len()));
    let some = watch(one_link(21, 10, |_| Some(390.0)), &Options::default());
    assert_eq!(some.exit_code, 0, "{}", some.sentence);
    for series in &some.series {
        assert_eq!(series.state, Watched::Weakly);
        assert!(series.sees_percent.is_some_and(|sees| (1.0..20.0).contains(&sees)), "{:?}", series.sees_percent);
    }
}

#[test]
fn a_link_that_was_bad_from_its_first_night_stands_out() {
    let found = watch(one_link(31, 40, |_| Some(195.0)), &Options::default());
    let alert = worse(&found);
    assert_eq!(
        (found.exit_code, alert.rule, alert.since.as_str()),
        (1, Rule::Peers, night(0).as_str()),
        "{}",
        found.sentence
    );
    assert!((alert.percent + 50.0).abs() < 2.0);
    // Links that differ by a few percent are normal.
    let (of, mut dice) = (cluster(4), Dice(33));
    let spread: Vec<Run> =
        (0..40).map(|night| run(&of, night, 0, &mut dice, |at| Some(390.0 * (1.0 - 0.004 * at as f64)))).collect();
    assert_eq!(watch(spread, &Options::default()).exit_code, 0);
}

/// Nights of eight hosts in which other pairs are measured each time; from a night on a host carries half.
pub(super) fn rotating(nights: u32, rails: u32, slow: impl Fn(u32, &str) -> bool) -> Vec<Run> {
    let mut dice = Dice(41);
    let made = |night: u32| {
        let scenario = Scenario {
            sizes: vec![1 << 20],
            repeats: 1,
            rotate: Some(u64::from(night)),
            pattern: Some(Pattern::Random(2)),
            ..Scenario::healthy(8, rails)
        };
        let mut of = template(&scenario);
        // Somebody changes the seed, too.
        of.plan.seed = u64::from(night);
        of.plan_hash = format!("file {night}");
        let cases = of.cases.clone();
        run(&of, night, 0, &mut dice, |at| {
            let flow = &cases[usize::try_from(of.readings[at].case).unwrap()].flow;
            let bad = slow(night, &flow.from.host) || slow(night, &flow.to.host);
            Some(if bad { 195.0 } else { 390.0 })
        })
    };
    (0..nights).map(made).collect()
}

#[test]
fn a_plan_that_rotates_is_one_plan_whose_parts_are_watched() {
    let runs = rotating(40, 2, |night, host| night >= 30 && host == "gpu003");
    let pairs = |run: &Run| {
        run.cases
            .iter()
            .filter(|case| &*case.test == "write-bw")
            .map(|case| case.flow.name())
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert!(pairs(&runs[0]).is_disjoint(&pairs(&runs[1])));
    let found = watch(runs, &Options::default());
    let plans: std::collections::BTreeSet<&str> = found.series.iter().map(|series| series.plan.as_str()).collect();
    assert_eq!(plans.len(), 1);
    assert_eq!(found.exit_code, 1, "{}", found.sentence);
    let change = &found.changes[0];
    assert_eq!(
        (change.name.as_str(), change.since.as_str()),
        ("host gpu003", night(30).as_str()),
        "{:?}",
        found.changes
    );
    let parts: Vec<&str> =
        found.series.iter().filter(|series| series.part).map(|series| series.link.as_str()).collect();
    for part in ["every link", "rail 1", "host gpu008", "rail 1 of gpu008"] {
        assert!(parts.contains(&part), "{part} is not among {parts:?}");
    }
    let healthy = watch(rotating(40, 1, |_, _| false), &Options::default());
    assert_eq!((healthy.exit_code, healthy.missing.len()), (0, 0), "{}", healthy.sentence);
}

#[test]
fn a_change_that_a_later_run_ended_is_listed_after_the_open_ones() {
    let (of, mut dice) = (cluster(4), Dice(9));
    let hosts = |at: usize| of.cases[usize::try_from(of.readings[at].case).unwrap()].flow.hosts();
    let apart = |at: &usize| hosts(*at).iter().all(|host| !hosts(0).contains(host));
    let other = (1..of.readings.len()).find(apart).unwrap();
    let mut collected = History::default();
    for number in 0..60 {
        let low = |from: u32| if number < from { 390.0 } else { 195.0 };
        let level = |at: usize| if at == other { low(40) } else { low(if at == 0 { 30 } else { 60 }) };
        collected.add(run(&of, number, 0, &mut dice, |at| Some(level(at))));
    }
    let name = format!("host {}", hosts(other)[0]);
    let component = Component { name, state: "good", since: night(61), measured: night(61) };
    let (directory, sentence) = (String::new(), String::new());
    collected.report(vec![Reported { directory, status: Status::Pass, sentence, components: vec![component] }]);
    let found = trend(collected, &Options::default()).unwrap();
    let states: Vec<State> = found.changes.iter().map(|change| change.state).collect();
    assert_eq!(states, [State::Open, State::WentAway], "{:?}", found.changes);
    assert_eq!(railgauge_report::trend::view(&found).unwrap().open.len(), 1);
}
