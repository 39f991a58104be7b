//! One end's window: its length, and whether its parts add up.

use std::time::Duration;

use railgauge_model::journal::event::Sample;
use railgauge_wire::{Bytes, Measurement, Nanoseconds, NanosecondsF64, TestMetric, Transport, Window, measure::SLICE};

use super::{
    clock::{CLOCK_ALLOWANCE, CLOCK_TOLERANCE},
    link::ANY_PORT,
    outside::outside,
};
use crate::case::{CaseResult, Contradiction};

/// Share of the planned time that a window must last. It ends with its last operation, which may be well before the end of that time.
const ENOUGH: f64 = 0.5;
/// The same for a latency, which continues to the end; over verbs without the pauses between operations.
const ENOUGH_OF_LATENCY: f64 = 0.8;
/// Upper bound for hosts that do not report their threads.
const MOST_THREADS: u32 = 1 << 16;
/// Excess of a responder's window over the timed pass: it starts before the counters are read, and stops after the answer.
const ARMED: NanosecondsF64 = NanosecondsF64(60e9);

/// How much longer than a step the controller waits for an answer.
const ANSWER: Duration = Duration::from_secs(2);
/// The part of a latency's window in none of its times: from its start to the first operation.
const BESIDE: NanosecondsF64 = NanosecondsF64(1e6);

/// `threads` are those of both hosts.
pub(super) fn contradictions(
    result: &CaseResult<'_>,
    sample: &Sample,
    threads: [Option<u32>; 2],
) -> Vec<Contradiction> {
    let measured = &sample.initiator;
    let longest = sample.waited.unwrap_or(measured.elapsed).max(measured.elapsed);
    let longest = NanosecondsF64::from(longest) * CLOCK_TOLERANCE + CLOCK_ALLOWANCE;
    let mut found = Vec::from_iter(length(result, sample));
    found.extend(moved(result, sample));
    found.extend(operations(result, measured));
    found.extend(cpu(result, sample));
    let responder = sample.responder.as_deref().map(|end| (end, threads[1], longest + ARMED));
    for (end, threads, longest) in [Some((measured, threads[0], longest)), responder].into_iter().flatten() {
        if sample.waited.is_some() {
            found.extend(outside("window", (end.elapsed.as_f64(), "ns"), "the pass has", (0.0, longest.0)));
        }
        let threads = threads.filter(|threads| *threads > 0).unwrap_or(MOST_THREADS);
        let most = longest.0 * f64::from(threads);
        found.extend(outside("CPU time", (end.cpu.as_f64(), "ns"), "all threads have", (0.0, most)));
    }
    found
}

/// A window that ended long before the planned time; one far longer, where the controller did not limit its wait, and
/// one longer than that limit.
fn length(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let share = match (result.case.cell.metric, result.case.cell.transport) {
        (TestMetric::Latency, Transport::Tcp) => 1.0,
        (TestMetric::Latency, Transport::Verbs) => ENOUGH_OF_LATENCY,
        _ => ENOUGH,
    };
    let least = match result.test.window {
        Window::Duration(time) | Window::Adaptive { at_least: time, .. } => time.as_f64() * share,
        Window::Iterations(_) => 0.0,
    };
    let unwatched = longest(result).filter(|_| sample.waited.is_none()).map(|wanted| wanted / ENOUGH);
    let most = unwatched.unwrap_or_else(|| limit(result)) * CLOCK_TOLERANCE + CLOCK_ALLOWANCE;
    outside("window", (sample.initiator.elapsed.as_f64(), "ns"), "the plan has", (least, most.0))
}

/// `None` for tests that end by iterations.
fn longest(result: &CaseResult<'_>) -> Option<NanosecondsF64> {
    match result.test.window {
        Window::Duration(time) | Window::Adaptive { at_most: time, .. } => Some(time.into()),
        Window::Iterations(_) => None,
    }
}

fn limit(result: &CaseResult<'_>) -> NanosecondsF64 {
    let test = result.test;
    NanosecondsF64::from(Nanoseconds::from(test.deadline + test.warm_up + ANSWER)) + longest(result).unwrap_or_default()
}

/// More bytes in the whole step than any link carries while the controller waits.
fn moved(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let moved = sample.initiator.moved?;
    let time = sample.waited.map_or_else(|| limit(result), NanosecondsF64::from) * CLOCK_TOLERANCE + CLOCK_ALLOWANCE;
    outside("bytes with the warm-up", (moved.as_f64(), "B"), "links carry meanwhile", (0.0, ANY_PORT / 8.0 * time.0))
}

/// Latency operations whose times do not add up to the window: each starts when the previous one ends.
fn operations(result: &CaseResult<'_>, measured: &Measurement) -> Option<Contradiction> {
    let op = result.case.cell.op;
    // Reads of a memory latency are not timed one by one.
    let latency = measured.latency.as_ref().filter(|_| result.case.cell.metric == TestMetric::Latency)?;
    // For answered messages half of each round trip is reported.
    let trips = if op.pulls() || op.is_atomic() { 1.0 } else { 2.0 };
    let sum = (latency.mean * latency.samples as f64 * trips).0;
    let range = ((sum - BESIDE.0) / CLOCK_TOLERANCE, sum * CLOCK_TOLERANCE + BESIDE.0);
    let reading = (0.0, latency.p50.as_f64() * trips);
    outside("window", (measured.elapsed.as_f64(), "ns"), "its operations take", range).or_else(|| {
        outside("reading of the clock", (latency.timer.as_f64(), "ns"), "an operation with it takes", reading)
    })
}

/// Impossibly little CPU time: over verbs every operation takes at least a nanosecond, over TCP every mebibyte does,
/// and a poller is always busy.
fn cpu(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let measured = &sample.initiator;
    let completion = result.attempt(sample)?.link.as_ref()?.settings.get("completion");
    let polls = completion.is_some_and(|how| how == "poll") && measured.elapsed >= SLICE;
    let least = match result.case.cell.transport {
        _ if measured.cpu.is_zero() => u64::from(polls),
        Transport::Tcp => measured.bytes / Bytes::from_mib(1),
        // Reads of the first cache are faster; their speed has its own check.
        Transport::Cpu => measured.operations / 4,
        _ => measured.operations,
    };
    outside("CPU time", (measured.cpu.as_f64(), "ns"), "its operations take", (least as f64, f64::INFINITY))
}
