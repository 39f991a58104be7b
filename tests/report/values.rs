//! A case counts as measured only if the value that its metric needs is there and can be true.

use std::{path::Path, sync::Arc};

use railgauge_analysis::{
    case::State,
    journal::{self, Journal, Try},
    results::{Mismatch, results},
    row::Reading,
    rows::rows,
    status::Status,
    verdict::{Verdicts, verdicts},
};
use railgauge_model::journal::event::{Case, LinkRecord, Sample};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    measure::{Lane, Latency, Measurement},
    terms::{Metric, Op, Service, Transport},
    unit::{Bytes, GigabitsPerSecond, Nanoseconds, NanosecondsF64},
};

use crate::support::Scenario;

fn small() -> Scenario {
    Scenario { sizes: vec![4096, 65536], repeats: 1, ..Scenario::healthy(4, 1) }
}

fn journal() -> Journal {
    journal::parse(small().jsonl().as_bytes(), Path::new("records.jsonl")).unwrap()
}

fn judge(journal: &Journal) -> (Verdicts, Vec<State>) {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let states = results.iter().map(|result| result.state).collect();
    (verdicts(journal, &results, &rows, Vec::new()), states)
}

/// Changes the tries of one test, and gives back what became of its cases.
fn changed(test: &str, change: impl Fn(&mut Try)) -> (Verdicts, Vec<State>) {
    let mut journal = journal();
    for test in &mut journal.plan.tests {
        test.expect.clear();
    }
    let of_test: Vec<u64> = journal.cases.iter().filter(|case| *case.test == *test).map(|case| case.id).collect();
    assert!(!of_test.is_empty(), "{test} has no case");
    journal.tries.iter_mut().filter(|tried| of_test.contains(&tried.case)).for_each(change);
    let (verdicts, states) = judge(&journal);
    let states = of_test.iter().map(|case| states[*case as usize]).collect();
    (verdicts, states)
}

/// Names of a bandwidth test and of a latency test of the scenario.
fn tests() -> [String; 2] {
    let journal = journal();
    let named = |latency: bool| {
        let has = |test: &&railgauge_model::plan::model::Test| {
            (railgauge_model::plan::headline(test.metric, test.op) == Metric::LatencyP50) == latency
        };
        journal.plan.tests.iter().find(has).unwrap().name.clone()
    };
    [named(false), named(true)]
}

fn never_passes(test: &str, state: State, change: impl Fn(&mut Sample)) {
    try_never_passes(test, state, |tried| change(tried.result.as_mut().unwrap()));
}

fn try_never_passes(test: &str, state: State, change: impl Fn(&mut Try)) {
    let (verdicts, states) = changed(test, change);
    assert!(states.iter().all(|found| *found == state), "{test}: {states:?} is not {state:?} throughout");
    assert_eq!((verdicts.status, verdicts.exit_code), (Status::Inconclusive, 3), "{}", verdicts.sentence);
    let own = verdicts.verdicts.iter().find(|verdict| verdict.test == test).unwrap();
    assert_eq!(own.status, Status::Inconclusive, "{}", own.reason);
    assert_eq!(verdicts.troubles.len(), states.len());
    assert!(verdicts.troubles.iter().all(|trouble| !trouble.against.0.is_empty()));
}

#[test]
fn a_bandwidth_without_length_operations_or_bytes_is_no_value() {
    let [bandwidth, _] = tests();
    let changes: [fn(&mut Sample); 4] = [
        |sample| sample.initiator.elapsed = Nanoseconds::ZERO,
        |sample| sample.initiator.operations = 0,
        |sample| sample.initiator.bytes = Bytes::ZERO,
        |sample| {
            (sample.initiator.bytes, sample.initiator.operations) = (Bytes::ZERO, 0);
            sample.initiator.elapsed = Nanoseconds::ZERO;
        },
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
        latency.p99 = latency.p50 - Nanoseconds(1);
    });
    never_passes(&latency, State::Impossible, |sample| {
        sample.initiator.latency.as_mut().unwrap().p50 = Nanoseconds::ZERO;
    });
    never_passes(&latency, State::Impossible, |sample| {
        let latency = sample.initiator.latency.as_mut().unwrap();
        latency.max = latency.p999 - Nanoseconds(1);
    });
    never_passes(&latency, State::Impossible, |sample| {
        let latency = sample.initiator.latency.as_mut().unwrap();
        latency.mean = NanosecondsF64(latency.max.as_f64() * 2.0);
    });
}

#[test]
fn a_bandwidth_above_the_links_rate_is_impossible() {
    let [bandwidth, _] = tests();
    // The scenario's links run at 200 Gb/s.
    never_passes(&bandwidth, State::Impossible, |sample| sample.initiator.elapsed.0 /= 40);
}

#[test]
fn operations_bytes_and_verified_bytes_fit_the_message_size() {
    let [bandwidth, latency] = tests();
    never_passes(&bandwidth, State::Impossible, |sample| sample.initiator.operations *= 3);
    never_passes(&bandwidth, State::Impossible, |sample| sample.checked.verified = Bytes(1 << 40));
    never_passes(&latency, State::Impossible, |sample| sample.checked.verified = Bytes(1 << 40));
    never_passes(&latency, State::Unverified, |sample| sample.checked.verified = Bytes(1));
}

#[test]
fn a_window_longer_than_the_controller_waited_is_impossible() {
    let [bandwidth, latency] = tests();
    for test in [bandwidth, latency] {
        never_passes(&test, State::Impossible, |sample| {
            sample.waited = Some(Nanoseconds::from_secs(3));
            sample.initiator.elapsed = Nanoseconds(1 << 40);
        });
    }
}

#[test]
fn a_window_far_shorter_than_the_plan_wants_is_impossible() {
    let [bandwidth, latency] = tests();
    never_passes(&latency, State::Impossible, |sample| sample.initiator.elapsed = Nanoseconds(1));
    // Everything of a window of 2 ms in place of 2 s.
    never_passes(&bandwidth, State::Impossible, |sample| {
        let size = sample.initiator.bytes / sample.initiator.operations;
        sample.initiator.elapsed.0 /= 1000;
        sample.initiator.operations /= 1000;
        sample.initiator.bytes = size * sample.initiator.operations;
        (sample.initiator.slices, sample.initiator.lanes) = (Vec::new().into(), Vec::new().into());
    });
}

#[test]
fn a_distribution_that_contradicts_its_histogram_is_impossible() {
    let [_, latency] = tests();
    let changes: [fn(&mut Latency); 9] = [
        |latency| latency.histogram.iter_mut().for_each(|(edge, _)| edge.0 *= 2),
        |latency| latency.histogram.iter_mut().for_each(|(edge, _)| edge.0 /= 2),
        |latency| latency.histogram = vec![(latency.max, latency.samples)],
        |latency| latency.min = Nanoseconds(1),
        |latency| (latency.p50, latency.p90) = (latency.p50 - latency.p50 / 20, latency.p90),
        |latency| latency.p90 = latency.p50,
        |latency| latency.p999 = latency.p99,
        |latency| latency.mean.0 *= 0.9,
        |latency| latency.stdev.0 /= 10.0,
    ];
    for change in changes {
        never_passes(&latency, State::Impossible, |sample| change(sample.initiator.latency.as_mut().unwrap()));
    }
    // More operations than times of them.
    never_passes(&latency, State::Impossible, |sample| {
        sample.initiator.bytes += sample.initiator.bytes / sample.initiator.operations * 3;
        sample.initiator.operations += 3;
    });
}

#[test]
fn parts_that_do_not_come_to_the_whole_are_impossible() {
    let [bandwidth, _] = tests();
    let changes: [fn(&mut Measurement); 7] = [
        |end| end.lanes.iter_mut().for_each(|lane| lane.bytes = Bytes::ZERO),
        |end| end.lanes.iter_mut().for_each(|lane| lane.bytes = Bytes(1 << 61)),
        |end| end.slices.iter_mut().for_each(|slice| *slice = Bytes(1 << 61)),
        |end| end.slices[3] += end.bytes,
        |end| end.slices = vec![end.bytes / 1000; 1000].into(),
        |end| end.moved = Some(end.bytes / 2),
        |end| end.cpu = end.elapsed * 100_000,
    ];
    for change in changes {
        never_passes(&bandwidth, State::Impossible, |sample| change(&mut sample.initiator));
        never_passes("tcp-baseline", State::Impossible, |sample| change(&mut sample.initiator));
    }
    never_passes("tcp-baseline", State::Impossible, |sample| sample.responder.as_mut().unwrap().operations = 1);
}

#[test]
fn a_sample_that_nothing_carried_is_no_value() {
    for test in tests() {
        try_never_passes(&test, State::NoValue, |tried| tried.link = None);
    }
    // Nor is one of which only an earlier try knows what was opened.
    let mut journal = journal();
    let mut second = journal.tries[0].clone();
    (second.link, journal.tries[0].result) = (None, Err(Failure::new(Stage::Measure, Kind::Deadline, "late")));
    journal.tries.push(second);
    assert_eq!(judge(&journal).1[0], State::NoValue);
}

#[test]
fn a_sample_that_began_at_no_time_is_impossible() {
    for time in ["", "yesterday", "2026-13-45T99:00:00Z"] {
        let [bandwidth, _] = tests();
        try_never_passes(&bandwidth, State::Impossible, |tried| tried.started_at = time.into());
    }
}

#[test]
fn a_case_that_is_none_of_its_test_contradicts_the_plan() {
    let changes: [fn(&mut Case); 4] = [
        |case| Arc::make_mut(&mut case.cell).size += Bytes(1),
        |case| Arc::make_mut(&mut case.cell).qps = u32::MAX,
        |case| Arc::make_mut(&mut case.cell).op = Op::Read,
        |case| Arc::make_mut(&mut case.cell).transport = Transport::Tcp,
    ];
    for change in changes {
        let mut journal = journal();
        change(&mut journal.cases[0]);
        assert!(matches!(results(&journal), Err(Mismatch::ForeignCase { case: 0, .. })));
    }
}

#[test]
fn what_is_missing_or_impossible_is_no_reading_for_compare_and_trend() {
    for change in [(|sample: &mut Sample| sample.initiator.elapsed = Nanoseconds::ZERO) as fn(&mut Sample), |sample| {
        sample.initiator.elapsed.0 /= 40
    }] {
        let mut journal = journal();
        let [bandwidth, _] = tests();
        let of_test: Vec<u64> = journal.cases.iter().filter(|c| *c.test == *bandwidth).map(|c| c.id).collect();
        for Try { case, result, .. } in &mut journal.tries {
            if of_test.contains(case) {
                change(result.as_mut().unwrap());
            }
        }
        let results = results(&journal).unwrap();
        let rows = rows(&journal, &results);
        for row in rows.iter().filter(|row| *row.test == bandwidth) {
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
    // Its window starts when the first bytes have arrived: these may be all.
    for elapsed in [0, 1] {
        let (verdicts, states) = changed("tcp-baseline", |one| {
            let responder = one.result.as_mut().unwrap().responder.as_mut().unwrap();
            (responder.elapsed, responder.slices) = (Nanoseconds(elapsed), Default::default());
        });
        assert!(states.iter().all(|state| *state == State::Measured), "{elapsed} ns: {states:?}");
        assert_eq!(verdicts.status, Status::Pass, "{}", verdicts.sentence);
    }
}

#[test]
fn a_clock_that_counted_nothing_is_no_time() {
    let mut journal = journal();
    journal.tries.iter_mut().for_each(|one| one.result.as_mut().unwrap().initiator.cpu = Nanoseconds::ZERO);
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let times: Vec<_> = rows.iter().filter(|row| row.metric == Metric::CpuTimePerGib).collect();
    assert!(!times.is_empty() && times.iter().all(|row| row.value.is_none()), "{times:?}");
}

#[test]
fn a_latency_whose_times_are_not_its_window_is_impossible() {
    let [_, latency] = tests();
    let of = |change: fn(&mut Latency)| move |sample: &mut Sample| change(sample.initiator.latency.as_mut().unwrap());
    never_passes(&latency, State::Impossible, of(|latency| latency.histogram.clear()));
    never_passes(&latency, State::Impossible, of(|latency| latency.timer = Nanoseconds::from_secs(1)));
    never_passes(&latency, State::Impossible, |sample| sample.initiator.elapsed.0 *= 10);
    // Half round trips are told: their sum is half of the window.
    never_passes(&latency, State::Impossible, |sample| sample.initiator.elapsed.0 /= 2);
}

/// Both ends of a sample, `times` as many operations and bytes in the same time.
fn grown(sample: &mut Sample, times: u64) {
    let ends = [Some(&mut sample.initiator), sample.responder.as_deref_mut()].into_iter().flatten();
    for end in ends {
        (end.operations, end.bytes) = (end.operations * times, end.bytes * times);
        end.slices.iter_mut().for_each(|slice| *slice = *slice * times);
        end.lanes.iter_mut().for_each(|lane| lane.bytes = lane.bytes * times);
        end.moved = end.moved.map(|moved| moved * times);
        end.cpu.0 *= 100;
    }
}

#[test]
fn more_than_any_port_carries_is_impossible_where_no_rate_is_known() {
    let [bandwidth, _] = tests();
    for test in [&bandwidth, "tcp-baseline"] {
        try_never_passes(test, State::Impossible, |tried| {
            let mut link = tried.link.as_deref().unwrap().clone();
            (link.rate_gbps, link.software) = (None, true);
            tried.link = Some(link.into());
            grown(tried.result.as_mut().unwrap(), 10_000);
        });
        never_passes(test, State::Impossible, |sample| sample.initiator.moved = Some(Bytes(1 << 61)));
    }
}

#[test]
fn a_window_that_polled_without_cpu_time_is_impossible() {
    let [bandwidth, _] = tests();
    never_passes(&bandwidth, State::Impossible, |sample| sample.initiator.cpu = Nanoseconds::ZERO);
    // Who sleeps until the device speaks may use next to none.
    let (_, states) = changed(&bandwidth, |tried| {
        let mut link = tried.link.as_deref().unwrap().clone();
        link.settings.insert("completion".into(), "events".into());
        tried.link = Some(link.into());
        tried.result.as_mut().unwrap().initiator.cpu = Nanoseconds::ZERO;
    });
    assert!(states.iter().all(|state| *state == State::Measured), "{states:?}");
}

#[test]
fn lanes_are_as_many_as_queue_pairs_or_streams() {
    let [bandwidth, _] = tests();
    for test in [&bandwidth, "tcp-baseline"] {
        never_passes(test, State::Impossible, |sample| {
            let lanes = &mut sample.initiator.lanes;
            let (first, rest) = (lanes[0], lanes[0].bytes / 2);
            lanes[0].bytes = lanes[0].bytes - rest;
            lanes.push(Lane { bytes: rest, ..first });
        });
    }
}

#[test]
fn a_window_far_longer_than_the_plan_wants_is_impossible() {
    let [bandwidth, _] = tests();
    // The plan wants 2 s.
    for (took, waited) in [(5, None), (30, Some(40))] {
        never_passes(&bandwidth, State::Impossible, |sample| {
            (sample.initiator.elapsed, sample.waited) =
                (Nanoseconds::from_secs(took), waited.map(Nanoseconds::from_secs));
        });
    }
}

#[test]
fn half_of_the_verification_is_none() {
    let [bandwidth, latency] = tests();
    for test in [&bandwidth, &latency, "tcp-baseline"] {
        never_passes(test, State::Unverified, |sample| sample.checked.verified = sample.checked.verified / 2);
    }
}

#[test]
fn a_link_that_no_link_is_makes_its_sample_impossible() {
    let [bandwidth, latency] = tests();
    let changes: [fn(&mut LinkRecord); 6] = [
        |link| link.rate_gbps = Some(GigabitsPerSecond(-200.0)),
        |link| link.rate_gbps = Some(GigabitsPerSecond(0.0)),
        |link| link.rate_gbps = Some(GigabitsPerSecond(1e6)),
        |link| link.rate_gbps = Some(GigabitsPerSecond(f64::NAN)),
        |link| link.mtu = 0,
        |link| link.mtu = 4_000_000_000,
    ];
    for change in changes {
        for test in [&bandwidth, &latency] {
            try_never_passes(test, State::Impossible, |tried| {
                let mut link = tried.link.as_deref().unwrap().clone();
                change(&mut link);
                tried.link = Some(link.into());
            });
        }
    }
}

/// Changes the samples of the bandwidth test as sends over verbs, of which the responder counts what arrives.
fn sends(service: Service, change: impl Fn(&mut Sample)) -> Vec<State> {
    let mut journal = journal();
    let [bandwidth, _] = tests();
    let test = journal.plan.tests.iter_mut().find(|test| test.name == bandwidth).unwrap();
    (test.op, test.service) = (Op::Send, service);
    test.expect.clear();
    let mut of_test = Vec::new();
    for case in journal.cases.iter_mut().filter(|case| *case.test == *bandwidth) {
        let cell = Arc::make_mut(&mut case.cell);
        (cell.op, cell.service) = (Op::Send, service);
        of_test.push(case.id);
    }
    for Try { case, result, .. } in journal.tries.iter_mut().filter(|tried| of_test.contains(&tried.case)) {
        let sample = result.as_mut().unwrap();
        let size = journal.cases[*case as usize].cell.size;
        sample.initiator.bytes = size * sample.initiator.operations;
        sample.initiator.moved = Some(sample.initiator.bytes * 5 / 4);
        sample.responder = Some(Box::new(sample.initiator.clone()));
        change(sample);
    }
    let states = judge(&journal).1;
    of_test.iter().map(|case| states[*case as usize]).collect()
}

#[test]
fn what_was_sent_over_verbs_is_held_against_what_the_responder_received() {
    let all = |states: Vec<State>, wanted: State| {
        assert!(states.iter().all(|state| *state == wanted), "{states:?} is not {wanted:?} throughout");
    };
    let responder =
        |change: fn(&mut Measurement)| move |sample: &mut Sample| change(sample.responder.as_mut().unwrap());
    for service in [Service::Rc, Service::Uc, Service::Ud] {
        all(sends(service, |_| {}), State::Measured);
        all(sends(service, |sample| sample.responder = None), State::NoValue);
        all(sends(service, responder(|end| end.operations = 0)), State::NoValue);
        all(sends(service, responder(|end| end.bytes = Bytes::ZERO)), State::NoValue);
        // Bytes that are no messages, and more than was sent.
        all(sends(service, responder(|end| end.bytes = end.bytes / 2)), State::Impossible);
        let more = |end: &mut Measurement| (end.bytes, end.operations) = (end.bytes * 2, end.operations * 2);
        all(sends(service, responder(more)), State::Impossible);
        let fewer = |end: &mut Measurement| {
            let size = end.bytes / end.operations;
            end.operations /= 2;
            end.bytes = size * end.operations;
        };
        // What a reliable service has completed has arrived; of the others the initiator counts what arrived.
        all(sends(service, responder(fewer)), State::Impossible);
    }
}
