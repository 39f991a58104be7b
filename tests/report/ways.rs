//! The latency of writes is taken in two ways, which are never compared with each other: polled in memory, and with immediate
//! data.

use std::path::Path;

use railgauge_analysis::{
    baseline::learn,
    compare::Options,
    history::{METRICS, Run},
    journal::parse,
    results::results,
    rows::rows,
    status::Status,
    trend,
    verdict::verdicts,
};
use railgauge_model::{
    journal::event::Event,
    plan::{
        baseline::wanted,
        model::{Expectation, Limit},
    },
};
use railgauge_wire::{
    link::{WriteLatency, WriteOrder},
    terms::{Metric, TestMetric},
};

use crate::{
    compare::{compare_runs, read, runs, small},
    support::Scenario,
};

const WAYS: [Option<WriteLatency>; 3] = [None, Some(WriteLatency::Poll), Some(WriteLatency::Immediate)];

/// The same run, whose latency of writes was taken this way and came out so many times as long.
fn taken(mut run: Run, way: Option<WriteLatency>, longer: f64) -> Run {
    for test in run.plan.tests.iter_mut().filter(|test| test.metric == TestMetric::Latency) {
        test.knobs.write_latency = way;
    }
    for reading in &mut run.readings {
        if run.cases[reading.case as usize].cell.metric == TestMetric::Latency {
            reading.value = reading.value.clone().map(|value| value * longer);
        }
    }
    run
}

#[test]
fn runs_that_timed_writes_in_other_ways_are_not_compared() {
    let sides = [read(&runs(6, 0, &small(4))), read(&runs(6, 6, &small(4)))];
    let found = |before, after| {
        let taken = |side: usize, way, longer| {
            sides[side].iter().map(|(day, run)| (*day, taken(run.clone(), way, longer))).collect()
        };
        compare_runs(&[taken(0, before, 1.0), taken(1, after, 1.5)], Options::default(), |_, _| 0.0)
    };
    for before in WAYS {
        for after in WAYS {
            let found = found(before, after);
            let of_writes =
                |case: &&railgauge_analysis::compare::Case| found.groups[case.group].name.contains("write-lat");
            let compared = found.cases.iter().filter(of_writes).count();
            if before == after {
                assert!(compared > 0 && found.counts.regressed > 0, "{before:?}: {}", found.sentence);
                continue;
            }
            assert_eq!((compared, found.counts.regressed), (0, 0), "{before:?} and {after:?}: {}", found.sentence);
            assert_ne!(found.status, Status::Pass, "what could not be compared is no pass");
            let told: Vec<_> = found.one_sided.iter().filter(|one| one.name.contains("write-lat")).collect();
            assert!(!told.is_empty());
            assert!(told.iter().all(|one| one.reason.contains("not comparable")), "{:?}", told[0]);
        }
    }
}

#[test]
fn a_trend_begins_anew_where_writes_are_timed_in_another_way() {
    let watch = |way: fn(u32) -> Option<WriteLatency>| {
        let mut collected = trend::History::default();
        for day in 0..40 {
            let scenario =
                Scenario { sizes: vec![1 << 20], repeats: 1, day, seed: day.into(), ..Scenario::healthy(4, 1) };
            let place = tempfile::tempdir().unwrap();
            scenario.write(place.path());
            let mut run = crate::kept::read(place.path(), &METRICS).unwrap();
            run.path = format!("night-{day:03}").into();
            collected.add(taken(run, way(day), if day < 20 { 1.0 } else { 1.5 }));
        }
        trend::trend(collected, &trend::Options::default()).unwrap()
    };
    let same = watch(|_| Some(WriteLatency::Poll));
    assert!(!same.changes.is_empty(), "half as long again is a change: {}", same.sentence);
    let other = watch(|day| Some(if day < 20 { WriteLatency::Poll } else { WriteLatency::Immediate }));
    assert!(other.changes.is_empty(), "{:?}", other.changes);
    let older = watch(|day| (day >= 20).then_some(WriteLatency::Poll));
    assert!(older.changes.is_empty(), "runs of versions that did not say: {:?}", older.changes);
}

#[test]
fn a_baseline_of_one_way_holds_nothing_against_the_other() {
    let scenario = Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) };
    let dir = tempfile::tempdir().unwrap();
    scenario.write(dir.path());
    let run = crate::kept::read(dir.path(), Metric::ALL).unwrap();
    for before in WAYS {
        let baseline = learn(vec![taken(run.clone(), before, 1.0)]).unwrap();
        for now in WAYS {
            let mut journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
            let at = journal.plan.tests.iter().position(|test| test.metric == TestMetric::Latency).unwrap();
            let limit = Limit::WithinPercentOfBaseline(20.0);
            let metric = Metric::LatencyP50;
            let expect = Expectation {
                metric,
                limit,
                written: None,
                sizes: None,
                rails: Vec::new(),
                group: None,
                source: None,
                line: 1,
            };
            let test = &mut journal.plan.tests[at];
            (test.expect, test.knobs.write_latency) = (vec![expect], now);
            let name = test.name.clone();
            journal.plan.baseline = Some(wanted(baseline.clone(), &journal.plan.tests));
            let results = results(&journal).unwrap();
            let all = verdicts(&journal, &results, &rows(&journal, &results), Vec::new());
            let verdict = all.verdicts.into_iter().find(|verdict| verdict.test == name).unwrap();
            let status = if before == now { Status::Pass } else { Status::Inconclusive };
            assert_eq!(verdict.status, status, "{before:?} and {now:?}: {verdict:?}");
        }
    }
}

#[test]
fn a_row_says_how_writes_were_timed_and_whether_order_was_promised() {
    let mut lines = Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) }.lines();
    for line in &mut lines {
        match &mut line.event {
            Event::Started { resolved, .. } => {
                for test in resolved.tests.iter_mut().filter(|test| test.metric == TestMetric::Latency) {
                    test.knobs.write_latency = Some(WriteLatency::Poll);
                }
            }
            Event::Outcome(outcome) => {
                if let Some(link) = &mut outcome.link {
                    link.write_order = Some(WriteOrder::NotPromised);
                }
            }
            _ => {}
        }
    }
    let text = crate::support::text(&lines);
    let journal = parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let of = |test: &'static str| rows.iter().filter(move |row| *row.test == *test).map(|row| &*row.env);
    assert!(of("write-lat").count() > 0);
    assert!(of("write-lat").all(|env| env == "write_latency=poll order=not-promised"));
    assert!(of("write-bw").all(str::is_empty));
}
