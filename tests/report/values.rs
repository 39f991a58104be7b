//! A case counts as measured only if the value that its metric needs is there and can be true.

use std::path::Path;

use railgauge::{
    analysis::{
        journal::{self, Journal, Try},
        results::{State, results},
        row::Reading,
        rows::rows,
        verdict::{Status, Verdicts, verdicts},
    },
    run::event::Sample,
};
use railgauge_wire::terms::Metric;

use crate::support::Scenario;

fn small() -> Scenario {
    Scenario { sizes: vec![4096, 65536], repeats: 1, ..Scenario::healthy(4, 1) }
}

fn journal() -> Journal {
    journal::parse(small().jsonl().as_bytes(), Path::new("records.jsonl")).unwrap()
}

fn judge(journal: &Journal) -> (Verdicts, Vec<State>) {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results, &|_, _| None);
    let states = results.iter().map(|result| result.state).collect();
    (verdicts(journal, &results, &rows, Vec::new()), states)
}

/// Changes the samples of one test, and gives back what became of its cases.
fn changed(test: &str, change: impl Fn(&mut Sample)) -> (Verdicts, Vec<State>) {
    let mut journal = journal();
    for test in &mut journal.plan.tests {
        test.expect.clear();
    }
    let of_test: Vec<u64> = journal.cases.iter().filter(|case| case.test == test).map(|case| case.id).collect();
    assert!(!of_test.is_empty(), "{test} has no case");
    for Try { case, result, .. } in &mut journal.tries {
        if of_test.contains(case) {
            change(result.as_mut().unwrap());
        }
    }
    let (verdicts, states) = judge(&journal);
    let states = of_test.iter().map(|case| states[*case as usize]).collect();
    (verdicts, states)
}

/// Names of a bandwidth test and of a latency test of the scenario.
fn tests() -> [String; 2] {
    let journal = journal();
    let named = |latency: bool| {
        let has = |test: &&railgauge::plan::model::Test| {
            (railgauge::plan::headline(test.aim, test.op) == Metric::LatencyP50) == latency
        };
        journal.plan.tests.iter().find(has).unwrap().name.clone()
    };
    [named(false), named(true)]
}

fn never_passes(test: &str, state: State, change: impl Fn(&mut Sample)) {
    let (verdicts, states) = changed(test, change);
    assert!(states.iter().all(|found| *found == state), "{test}: {states:?} is not {state:?} throughout");
    assert_eq!((verdicts.status, verdicts.exit_code), (Status::Inconclusive, 3), "{}", verdicts.sentence);
    let own = verdicts.verdicts.iter().find(|verdict| verdict.test == test).unwrap();
    assert_eq!(own.status, Status::Inconclusive, "{}", own.reason);
    assert_eq!(verdicts.troubles.len(), states.len());
    assert!(verdicts.troubles.iter().all(|trouble| !trouble.error.is_empty()));
}

#[test]
fn a_bandwidth_without_length_operations_or_bytes_is_no_value() {
    let [bandwidth, _] = tests();
    let changes: [fn(&mut Sample); 4] = [
        |sample| sample.initiator.elapsed = 0,
        |sample| sample.initiator.operations = 0,
        |sample| sample.initiator.bytes = 0,
        |sample| (sample.initiator.bytes, sample.initiator.operations, sample.initiator.elapsed) = (0, 0, 0),
    ];
    for change in changes {
        never_passes(&bandwidth, State::NoValue, change);
    }
}

#[test]
fn a_latency_case_without_latency_or_samples_is_no_value() {
    let [_, latency] = tests();
    never_passes(&latency, State::NoValue, |sample| sample.initiator.latency = None);
    never_passes(&latency, State::NoValue, |sample| {
        sample.initiator.latency.as_mut().unwrap().samples = 0;
    });
}

#[test]
fn percentiles_out_of_order_and_times_of_zero_are_impossible() {
    let [_, latency] = tests();
    never_passes(&latency, State::Impossible, |sample| {
        let latency = sample.initiator.latency.as_mut().unwrap();
        latency.p99 = latency.p50 - 1;
    });
    never_passes(&latency, State::Impossible, |sample| {
        sample.initiator.latency.as_mut().unwrap().p50 = 0;
    });
    never_passes(&latency, State::Impossible, |sample| {
        let latency = sample.initiator.latency.as_mut().unwrap();
        latency.max = latency.p999 - 1;
    });
    never_passes(&latency, State::Impossible, |sample| {
        let latency = sample.initiator.latency.as_mut().unwrap();
        latency.mean = latency.max as f64 * 2.0;
    });
}

#[test]
fn a_bandwidth_above_the_links_rate_is_impossible() {
    let [bandwidth, _] = tests();
    // The scenario's links run at 200 Gb/s.
    never_passes(&bandwidth, State::Impossible, |sample| sample.initiator.elapsed /= 40);
}

#[test]
fn operations_bytes_and_verified_bytes_fit_the_message_size() {
    let [bandwidth, latency] = tests();
    never_passes(&bandwidth, State::Impossible, |sample| sample.initiator.operations *= 3);
    never_passes(&bandwidth, State::Impossible, |sample| sample.checked.verified = 1 << 40);
    never_passes(&latency, State::Impossible, |sample| sample.checked.verified = 1 << 40);
    never_passes(&latency, State::Unverified, |sample| sample.checked.verified = 1);
}

#[test]
fn a_window_longer_than_the_controller_waited_is_impossible() {
    let [bandwidth, latency] = tests();
    for test in [bandwidth, latency] {
        never_passes(&test, State::Impossible, |sample| {
            sample.waited = Some(3_000_000_000);
            sample.initiator.elapsed = 1 << 40;
        });
    }
}

#[test]
fn what_is_missing_or_impossible_is_no_reading_for_compare_and_trend() {
    for change in [(|sample: &mut Sample| sample.initiator.elapsed = 0) as fn(&mut Sample), |sample| {
        sample.initiator.elapsed /= 40
    }] {
        let mut journal = journal();
        let [bandwidth, _] = tests();
        let of_test: Vec<u64> = journal.cases.iter().filter(|c| c.test == bandwidth).map(|c| c.id).collect();
        for Try { case, result, .. } in &mut journal.tries {
            if of_test.contains(case) {
                change(result.as_mut().unwrap());
            }
        }
        let results = results(&journal).unwrap();
        let rows = rows(&journal, &results, &|_, _| None);
        for row in rows.iter().filter(|row| row.test == bandwidth) {
            assert!(row.error.is_some(), "{row:?}");
            assert!(Reading::from(row).value.is_err(), "{row:?}");
        }
    }
}

#[test]
fn one_missing_value_among_many_is_named_and_the_rest_keeps_its_state() {
    let mut journal = journal();
    let first = journal.tries[0].case;
    journal.tries[0].result.as_mut().unwrap().initiator.operations = 0;
    let (verdicts, states) = judge(&journal);
    assert_eq!(verdicts.exit_code, 3);
    assert_eq!(verdicts.cases.no_value, 1);
    assert_eq!(verdicts.cases.measured, states.len() - 1);
    assert_eq!(verdicts.troubles.iter().map(|trouble| trouble.case).collect::<Vec<_>>(), [first]);
}

#[test]
fn a_bandwidth_over_tcp_is_what_the_responder_counted() {
    let changes: [fn(&mut Sample); 2] =
        [|sample| sample.responder = None, |sample| sample.responder.as_mut().unwrap().operations = 0];
    for change in changes {
        never_passes("tcp-baseline", State::NoValue, change);
    }
}

#[test]
fn a_clock_that_counted_nothing_is_no_time() {
    let mut journal = journal();
    journal.tries.iter_mut().for_each(|one| one.result.as_mut().unwrap().initiator.cpu = 0);
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results, &|_, _| None);
    let times: Vec<_> = rows.iter().filter(|row| row.metric == Metric::CpuTimePerGib).collect();
    assert!(!times.is_empty() && times.iter().all(|row| row.value.is_none()), "{times:?}");
}
