use railgauge_model::{
    plan::per_end::PerEnd,
    schedule::{Cell, Port},
};
use railgauge_wire::{Bytes, Checked, Memory, NanosecondsI64, Op, Range, Service, Spent, Stage, TestMetric, Transport};

use super::*;

const MS: Nanoseconds = Nanoseconds::from_millis(1);
/// What the clocks of agents show less than the time since 1970.
const BEHIND: Nanoseconds = Nanoseconds::from_secs(1_000_000_000);

fn shared() -> Shared {
    let offset = NanosecondsI64::try_from(BEHIND).unwrap();
    Shared::with_clocks(&[("a", offset), ("b", offset)])
}

fn case() -> Case {
    let port = |host: &str| Port { host: host.into(), rail: 0 };
    let cell = Cell {
        op: Op::Write,
        metric: TestMetric::Bandwidth,
        transport: Transport::Tcp,
        service: Service::Rc,
        memory: PerEnd::same(Memory::Host),
        size: Bytes(64),
        qps: 1,
        only: None,
        neighbours: None,
        applied: None,
        manner: None,
    };
    Case { id: 7, test: "t".into(), round: 0, flow: Flow::pair(port("a"), port("b")), cell: cell.into() }
}

/// A window of so many slices with these bytes in each, on the agents' clocks.
fn window(started: Nanoseconds, slices: &[u64]) -> Measurement {
    let slices: Vec<Bytes> = slices.iter().copied().map(Bytes).collect();
    Measurement {
        started,
        elapsed: SLICE * slices.len() as u64,
        operations: 1_000,
        bytes: slices.iter().copied().sum(),
        slices: slices.into(),
        ..Measurement::default()
    }
}

fn outcome(at: Nanoseconds, result: Result<Sample, Failure>) -> Outcome {
    let at = jiff::Timestamp::from_nanosecond(BEHIND.saturating_add(at).0.into()).unwrap();
    Outcome { case: 7, repeat: 0, started_at: at.to_string().into(), link: None, link_line: None, result }
}

fn measured(started: Nanoseconds, slices: &[u64]) -> Outcome {
    let sample = Sample {
        initiator: window(started, slices),
        responder: Some(Box::new(window(started, slices))),
        checked: Checked { verified: Bytes(64), ..Checked::default() },
        ..Sample::default()
    };
    outcome(started, Ok(sample))
}

fn failed(at: Nanoseconds) -> Outcome {
    outcome(at, Err(Failure::new(Stage::Measure, Kind::Fabric, "retries exceeded")))
}

fn gather() -> Gather {
    Gather::new(at(Nanoseconds::ZERO), (Nanoseconds::ZERO, MS * 1_000), shared())
}

fn at(agent: Nanoseconds) -> Nanoseconds {
    BEHIND.saturating_add(agent)
}

#[test]
fn what_gpus_tell_in_the_windows_of_a_part_is_told_with_it() {
    let mut gather = gather();
    for watts in [300.0, 500.0] {
        let mut outcome = measured(Nanoseconds::from_secs(1), &[8]);
        let all = Some(Range { min: watts, median: watts, max: watts });
        let seen = GpuSeen { pci: "0000:1b:00.0".into(), readings: 2, watts: all, ..GpuSeen::default() };
        outcome.result.as_mut().unwrap().gpus = GpuDuring::of("b", vec![seen]).into();
        gather.add(&case(), &outcome, None, at(Nanoseconds::from_secs(2)));
    }
    let part = gather.take(at(Nanoseconds::from_secs(3)));
    let [gpu] = part.gpus.as_slice() else { panic!("{:?}", part.gpus) };
    assert_eq!((&*gpu.host, gpu.windows, gpu.unread, gpu.without_xids, gpu.seen.readings), ("b", 2, 0, 2, 4));
    assert_eq!(gpu.seen.watts, Some(Range { min: 300.0, median: 400.0, max: 500.0 }));
    assert!(gather.take(at(Nanoseconds::from_secs(4))).gpus.is_empty());
}

#[test]
fn windows_become_a_part_with_rates_and_sums() {
    let mut gather = gather();
    for (number, bytes) in [125_000_000, 250_000_000, 375_000_000].into_iter().enumerate() {
        let started = MS * 2_000 * number as u64;
        gather.add(&case(), &measured(started, &[bytes / 10; 10]), None, at(started + MS * 1_000));
    }
    let part = gather.take(at(MS * 6_000));
    assert_eq!((part.from, part.until, part.flows.len()), (at(Nanoseconds::ZERO), at(MS * 6_000), 1));
    let flow = &part.flows[0];
    assert_eq!((flow.case, flow.windows, flow.measured, flow.bytes), (7, 3, MS * 3_000, Bytes(750_000_000)));
    let rates = [flow.slowest, flow.median, flow.fastest].map(|rate| rate.unwrap().0);
    assert_eq!(rates, [1.0, 2.0, 3.0]);
    assert_eq!((flow.checked.verified, flow.failed, flow.stalls.len()), (Bytes(192), 0, 0));
    assert!(gather.take(at(MS * 7_000)).flows.is_empty(), "a part without windows has no flow");
}

#[test]
fn a_silence_in_a_window_is_a_stall_at_its_time() {
    let mut gather = gather();
    let slices = [vec![9; 20], vec![0; 12], vec![9; 20]].concat();
    gather.add(&case(), &measured(MS * 500, &slices), None, at(MS * 6_000));
    let stalls = gather.take(at(MS * 6_000)).flows[0].stalls.clone();
    assert_eq!(stalls, [Stall { from: at(MS * 2_500), until: at(MS * 3_700), error: SLICE, ..Stall::default() }]);
}

#[test]
fn failed_windows_are_one_stall_until_the_next_that_is_measured() {
    let mut gather = gather();
    gather.add(&case(), &failed(MS * 1_000), Some(MS * 3_300), at(MS * 5_000));
    gather.add(&case(), &failed(MS * 5_100), None, at(MS * 6_000));
    gather.add(&case(), &measured(MS * 9_000, &[9; 10]), None, at(MS * 10_000));
    let flow = gather.take(at(MS * 11_000)).flows.remove(0);
    assert_eq!(
        flow.stalls,
        [Stall {
            from: at(MS * 3_300),
            until: at(MS * 9_000),
            error: SLICE,
            until_error: Some(Nanoseconds::ZERO),
            failed: true,
            ..Stall::default()
        }]
    );
    assert_eq!((flow.failed, flow.windows), (2, 1));
    assert_eq!(flow.failure.unwrap().cause, "retries exceeded");
}

#[test]
fn without_a_word_of_the_agent_the_begin_is_as_unsure_as_the_window_is_long() {
    let mut gather = gather();
    gather.round(at(MS * 1_000), true);
    gather.add(&case(), &failed(MS * 1_000), None, at(MS * 5_000));
    gather.add(&case(), &measured(MS * 6_000, &[9; 10]), None, at(MS * 7_000));
    let stall = gather.take(at(MS * 8_000)).flows[0].stalls[0];
    assert_eq!((stall.from, stall.until), (at(MS * 1_000), at(MS * 6_000)));
    assert_eq!((stall.error, stall.until_error), (MS * 4_000, Some(Nanoseconds::ZERO)));
}

#[test]
fn a_silence_that_lasts_is_told_in_every_part_without_a_gap() {
    let mut gather = gather();
    gather.add(&case(), &failed(MS * 1_000), Some(MS * 2_000), at(MS * 3_000));
    let first = gather.take(at(MS * 10_000)).flows[0].stalls.clone();
    let second = gather.take(at(MS * 20_000)).flows[0].stalls.clone();
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!((first[0].from, first[0].until), (at(MS * 2_000), at(MS * 10_000)));
    assert_eq!((second[0].from, second[0].until), (at(MS * 10_000), at(MS * 20_000)));
}

#[test]
fn a_pause_while_bytes_are_verified_is_told_as_unsure() {
    let mut gather = gather();
    for (number, verify) in [20, 30, 3_000].into_iter().enumerate() {
        let mut outcome = measured(MS * 4_000 * number as u64, &[9; 10]);
        if let Ok(sample) = &mut outcome.result {
            sample.spent = Some(Spent { verify: MS * verify, ..Spent::default() }.into());
        }
        gather.add(&case(), &outcome, None, at(MS * 4_000 * (number as u64 + 1)));
    }
    let stalls = gather.take(at(MS * 12_000)).flows[0].stalls.clone();
    assert_eq!(stalls.len(), 1);
    assert_eq!(stalls[0].until - stalls[0].from, MS * 2_980);
    assert!(stalls[0].error <= SHORTEST && stalls[0].loose > MS * 2_980 && !stalls[0].failed);
}

#[test]
fn a_pause_while_warming_up_is_one_too() {
    let mut gather = Gather::new(at(Nanoseconds::ZERO), (MS * 500, MS * 1_000), shared());
    for (number, warm_up) in [510, 520, 5_500].into_iter().enumerate() {
        let mut outcome = measured(MS * 8_000 * number as u64, &[9; 10]);
        if let Ok(sample) = &mut outcome.result {
            sample.spent = Some(Spent { warm_up: MS * warm_up, ..Spent::default() }.into());
        }
        gather.add(&case(), &outcome, None, at(MS * 8_000 * (number as u64 + 1)));
    }
    let stalls = gather.take(at(MS * 24_000)).flows[0].stalls.clone();
    assert_eq!(stalls.iter().map(|stall| stall.until - stall.from).collect::<Vec<_>>(), [MS * 4_990]);
}

#[test]
fn a_flow_that_waits_for_its_turn_does_not_stall() {
    let mut gather = gather();
    gather.round(at(MS * 1_000), false);
    gather.add(&case(), &failed(MS * 1_000), Some(MS * 2_000), at(MS * 4_000));
    gather.round(at(MS * 60_000), false);
    gather.add(&case(), &measured(MS * 60_000, &[9; 10]), None, at(MS * 61_000));
    let stalls = gather.take(at(MS * 62_000)).flows[0].stalls.clone();
    assert_eq!(
        stalls.iter().map(|stall| (stall.from, stall.until)).collect::<Vec<_>>(),
        [(at(MS * 2_000), at(MS * 4_000))]
    );
}

#[test]
fn wrong_bytes_are_counted_and_told_before_other_failures() {
    let mut gather = gather();
    gather.add(&case(), &failed(MS * 1_000), None, at(MS * 2_000));
    let wrong = Failure::new(Stage::Verify, Kind::Corruption, "5 of 64 bytes were wrong");
    gather.add(&case(), &outcome(MS * 3_000, Err(wrong)), None, at(MS * 4_000));
    let flow = gather.take(at(MS * 5_000)).flows.remove(0);
    assert_eq!((flow.failed, flow.corrupted, flow.failure.unwrap().kind), (2, 1, Kind::Corruption));
}

#[test]
fn a_word_of_an_agent_that_cannot_be_is_not_taken() {
    let mut gather = gather();
    gather.round(at(MS * 1_000), true);
    gather.add(&case(), &failed(MS * 1_000), Some(MS * 90_000), at(MS * 2_000));
    let stall = gather.take(at(MS * 5_000)).flows[0].stalls[0];
    assert_eq!((stall.from, stall.error), (at(MS * 1_000), MS * 1_000));
}
