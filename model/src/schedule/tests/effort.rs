//! Time and bytes, worked by hand.

use std::time::Duration;

use railgauge_wire::{Bytes, GigabitsPerSecond, Metric, Nanoseconds, Op, TestMetric, Transport, Window};

use super::{plan, scheduled};
use crate::{
    plan::model::{Expectation, Limit, Pattern, Rails, Test},
    schedule::{Cell, Cost, PerByte, Seen, Time, Volume},
};

/// Time of a case and volume of a link of a test of 2 × 3 cells (1 and 4 queue pairs; 64, 4096, 65536 bytes).
fn effort(change: impl FnOnce(&mut Test)) -> (Time, Volume) {
    let mut plan = plan(Pattern::Tournament, Rails::Aligned, &[1; 4], 0);
    change(&mut plan.tests[0]);
    let test = &plan.tests[0];
    (Time::of_case(test), Volume::of_link(test, &scheduled(&plan).cells[0]))
}

/// One and four queue pairs of all three sizes.
const ONCE: u128 = 5 * (64 + 4096 + 65536);

#[test]
fn a_window_of_a_duration_is_bounded_by_the_rate() {
    let (time, volume) = effort(|test| {
        test.window = Window::Duration(Nanoseconds::from_secs(2));
        test.warm_up = Duration::from_millis(500);
        test.repeats = 3;
    });
    assert_eq!(time, Time { at_least: Duration::from_millis(2520), at_most: Some(Duration::from_millis(2520)) });
    assert_eq!(volume, Volume { counted: 3 * 2 * ONCE, flowing: 3 * 6 * 2_500_000_000 });
    assert!(!volume.is_exact());
    assert_eq!(volume.at_most(None), None);
    // 45 s of 8 Gb/s are 45 GB.
    assert_eq!(volume.at_most(Some(GigabitsPerSecond(8.0))), Some(45_000_000_000 + 6 * ONCE));
}

/// 200 Mb/s are 25 bytes in a microsecond; six messages of 4 MiB are 1.007 s.
#[test]
fn large_messages_take_the_time_of_their_link_which_rounds_show() {
    let mut plan = plan(Pattern::Tournament, Rails::Aligned, &[1; 4], 0);
    plan.tests[0].window = Window::Duration(Nanoseconds::from_millis(500));
    plan.tests[0].verify = true;
    let test = &plan.tests[0];
    let large = Cell { size: Bytes(1 << 20), qps: 4, ..scheduled(&plan).cells[0][0].clone() };
    let cost = Cost::of(test, [&large]);
    let slow = PerByte::of(&plan, test, Some(GigabitsPerSecond(0.2))).unwrap();
    let messages = cost.at(Some(slow)).at_least - cost.at(Some(PerByte::default())).at_least;
    assert_eq!(messages.as_millis(), 1006);
    // Over TCP four streams of 1 MiB in buffers and a message, twice, and two messages: 12 MiB.
    let mut tcp = test.clone();
    tcp.transport = Transport::Tcp;
    let cost = Cost::of(&tcp, [&Cell { size: Bytes(256 << 10), ..large.clone() }]);
    assert_eq!((cost.at(Some(slow)).at_least - cost.at(Some(PerByte::default())).at_least).as_millis(), 503);
    let cost = Cost::of(test, [&large]);
    let mut seen = Seen::default();
    assert_eq!(seen.pace(), None);
    seen.add(cost, cost.at(Some(slow)).at_least);
    let learnt = cost.at(seen.pace()).at_least;
    assert!(learnt.abs_diff(cost.at(Some(slow)).at_least) < Duration::from_millis(1), "{learnt:?}");
    // Faster than planned is not a pace, and a demanded rate is one.
    let mut fast = Seen::default();
    fast.add(cost, Duration::ZERO);
    assert_eq!(fast.pace(), Some(PerByte::default()));
    plan.preflight.wanted.link_rate_gbps = Some(GigabitsPerSecond(0.2));
    assert_eq!(PerByte::of(&plan, &plan.tests[0], None), Some(slow));
    plan.preflight.wanted.link_rate_gbps = None;
    assert_eq!(PerByte::of(&plan, &plan.tests[0], None), None);
    // Without a rate there is no upper bound, unless nothing is left to measure.
    assert_eq!(cost.at(None), Time { at_most: None, ..cost.at(Some(PerByte::default())) });
    assert_eq!(Cost::default().at(None), Time::default());
    let limit = Expectation {
        metric: Metric::Bandwidth,
        limit: Limit::AtLeast(0.2),
        written: None,
        sizes: None,
        rails: Vec::new(),
        group: None,
        source: None,
        line: 1,
    };
    plan.tests[0].expect.push(limit);
    assert_eq!(PerByte::of(&plan, &plan.tests[0], None), Some(slow));
    assert!(plan.takes(Time::default(), None).starts_with("about"));
}

/// A round of a server with two H200 took 2.4 s with copies of 512 MiB, 1.6 s with copies in GPU memory, 3.4 s with the latency of 2 GiB,
/// and 4.7 s with three sizes of NCCL.
#[test]
fn tests_of_one_server_take_as_long_as_they_did() {
    let mut plan = plan(Pattern::Tournament, Rails::Aligned, &[1; 4], 0);
    let cell = scheduled(&plan).cells[0][0].clone();
    let test = &mut plan.tests[0];
    test.window = Window::Duration(Nanoseconds::from_secs(1));
    (test.warm_up, test.verify) = (Duration::from_millis(200), true);
    for (transport, op, size, cells, took) in [
        (Transport::Gpu, Op::HostToGpu, 512 << 20, 1, 2.4),
        (Transport::Gpu, Op::GpuCopy, 512 << 20, 1, 1.6),
        (Transport::Cpu, Op::MemoryRead, 2 << 30, 1, 3.4),
        (Transport::Nccl, Op::AllReduce, 128 << 20, 3, 4.7),
    ] {
        (plan.tests[0].transport, plan.tests[0].op) = (transport, op);
        let cells = vec![Cell { op, transport, size: Bytes(size), ..cell.clone() }; cells];
        let said = Cost::of(&plan.tests[0], &cells).at(Some(PerByte::default())).longest().as_secs_f64();
        assert!((said / took - 1.0).abs() < 0.15, "{op:?}: {said} s, {took} s");
        assert!(plan.takes(Time::default(), None).starts_with("about"), "{op:?} loads no link of unknown rate");
    }
}

#[test]
fn iterations_are_exact_without_a_warm_up() {
    let iterations = |test: &mut Test| test.window = Window::Iterations(1000);
    let (time, volume) = effort(iterations);
    assert_eq!(time, Time { at_least: Duration::from_millis(20), at_most: None });
    assert_eq!(volume.at_most(None), Some(1002 * ONCE));
    let (_, unverified) = effort(|test| {
        iterations(test);
        test.verify = false;
        test.bidirectional = true;
    });
    assert_eq!(unverified.at_most(None), Some(2000 * ONCE));
    let ping_pong = |op| {
        move |test: &mut Test| {
            iterations(test);
            test.metric = TestMetric::Latency;
            test.op = op;
        }
    };
    assert_eq!(effort(ping_pong(Op::Write)).1.at_most(None), Some(2002 * ONCE));
    assert_eq!(effort(ping_pong(Op::Read)).1.at_most(None), Some(1002 * ONCE));
    // Atomics have one size, 8 bytes, whatever the plan lists: one and four queue pairs of it.
    assert_eq!(effort(ping_pong(Op::AtomicFadd)).1.at_most(None), Some(1002 * 5 * 8));
    let (_, warm) = effort(|test| {
        iterations(test);
        test.warm_up = Duration::from_secs(1);
    });
    assert_eq!(warm.at_most(None), None);
    assert_eq!(warm.at_most(Some(GigabitsPerSecond(8.0))), Some(1002 * ONCE + 6_000_000_000));
}

#[test]
fn adaptive_windows_have_a_range() {
    let (mut time, volume) = effort(|test| {
        test.window =
            Window::Adaptive { relative: 0.01, at_least: Nanoseconds::from_secs(1), at_most: Nanoseconds::from_secs(5) }
    });
    assert_eq!(time, Time { at_least: Duration::from_millis(1020), at_most: Some(Duration::from_millis(5020)) });
    assert_eq!(volume.flowing, 6 * 5_000_000_000);
    time += Time { at_least: Duration::from_secs(1), at_most: None };
    assert_eq!(time.times(2), Time { at_least: Duration::from_millis(4040), at_most: None });
    // A clock that would overflow stays at its end.
    assert_eq!(time.times(u64::MAX).at_least, Duration::from_nanos(u64::MAX));
    let (_, absurd) = effort(|test| {
        test.window = Window::Iterations(u64::MAX);
        test.sizes = vec![Bytes::MAX];
        test.repeats = 1000;
    });
    assert_eq!(absurd.counted, u128::MAX);
}
