//! One end's window: how long it was, and whether its parts come to the whole.

use std::time::Duration;

use railgauge_model::journal::event::Sample;
use railgauge_wire::{
    measure::{Measurement, SLICE},
    step::Window,
    terms::{TestMetric, Transport},
    unit::{Bytes, Nanoseconds, NanosecondsF64},
};

use super::{CLOCK_ALLOWANCE, CLOCK_TOLERANCE, Contradiction, link::ANY_PORT};
use crate::analysis::results::CaseResult;

/// Share of the time that the plan wants which a window must have lasted. It ends with its last operation, which may have
/// been a while before its time was over.
const ENOUGH: f64 = 0.5;
/// Threads of a host that does not say how many it has. None has as many.
const MOST_THREADS: u32 = 1 << 16;
/// By how much the account of a responder may be longer than the pass that is waited for: it is armed before the counters
/// are read, and stopped after the answer.
const ARMED: NanosecondsF64 = NanosecondsF64(60e9);

/// What the controller waits for an answer beside the time of a step.
const ANSWER: Duration = Duration::from_secs(2);
/// What of a latency's window is in none of its times: between the start of the window and that of its first operation.
const BESIDE: NanosecondsF64 = NanosecondsF64(1e6);

/// Everything that is wrong with the windows of a pair; `threads` are those of both hosts.
pub(super) fn contradictions(
    result: &CaseResult<'_>,
    sample: &Sample,
    threads: [Option<u32>; 2],
) -> Vec<Contradiction> {
    let measured = &sample.initiator;
    let longest = sample.waited.unwrap_or(measured.elapsed).max(measured.elapsed);
    let longest = NanosecondsF64::from(longest) * CLOCK_TOLERANCE + CLOCK_ALLOWANCE;
    let mut found = Vec::new();
    found.extend(too_short(result, measured));
    found.extend(too_long(result, sample));
    found.extend(off_lanes(result, measured));
    found.extend(off_moved(result, sample));
    found.extend(off_times(result, measured));
    found.extend(too_little_cpu(result, sample));
    let responder = sample.responder.as_deref().map(|end| (end, threads[1], longest + ARMED));
    for (end, threads, longest) in [Some((measured, threads[0], longest)), responder].into_iter().flatten() {
        found.extend(off_slices(result, end));
        if sample.waited.is_some() && NanosecondsF64::from(end.elapsed) > longest {
            found.push(Contradiction::LongerThanPass { window: end.elapsed, pass: longest });
        }
        let threads = threads.filter(|threads| *threads > 0).unwrap_or(MOST_THREADS);
        if NanosecondsF64::from(end.cpu) > longest * f64::from(threads) {
            found.push(Contradiction::CpuTime { cpu: end.cpu, threads, within: longest });
        }
    }
    found
}

/// A window that ended long before the time of the plan was over.
fn too_short(result: &CaseResult<'_>, measured: &Measurement) -> Option<Contradiction> {
    let wanted = match result.test.window {
        Window::Duration(time) | Window::Adaptive { at_least: time, .. } => time,
        Window::Iterations(_) => return None,
    };
    let enough = NanosecondsF64::from(wanted) * ENOUGH;
    let window = measured.elapsed;
    (NanosecondsF64::from(window) < enough).then_some(Contradiction::TooShort { window, wanted })
}

/// A window far longer than the plan wants, where the controller did not look how long it waited, and one that it would not
/// have waited for.
fn too_long(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let window = sample.initiator.elapsed;
    let wanted = longest(result);
    let unwatched = wanted.filter(|_| sample.waited.is_none()).map(|wanted| wanted / ENOUGH);
    let most = unwatched.unwrap_or_else(|| limit(result)) * CLOCK_TOLERANCE + CLOCK_ALLOWANCE;
    (NanosecondsF64::from(window) > most).then_some(Contradiction::TooLong { window, most })
}

/// The longest window that the plan wants; tests that end by iterations have none.
fn longest(result: &CaseResult<'_>) -> Option<NanosecondsF64> {
    match result.test.window {
        Window::Duration(time) | Window::Adaptive { at_most: time, .. } => Some(time.into()),
        Window::Iterations(_) => None,
    }
}

/// How long the controller waits for a timed pass, whatever it comes to.
fn limit(result: &CaseResult<'_>) -> NanosecondsF64 {
    let test = result.test;
    NanosecondsF64::from(Nanoseconds::from(test.deadline + test.warm_up + ANSWER)) + longest(result).unwrap_or_default()
}

/// Queue pairs or streams that are not as many as the case has, or do not come to the whole together.
fn off_lanes(result: &CaseResult<'_>, measured: &Measurement) -> Option<Contradiction> {
    let (lanes, qps) = (measured.lanes.len(), result.case.cell.qps.max(1) as usize);
    if lanes > 0 && lanes != qps {
        return Some(Contradiction::Lanes { lanes, wanted: qps });
    }
    let sum: u128 = measured.lanes.iter().map(|lane| u128::from(lane.bytes.0)).sum();
    let off = !measured.lanes.is_empty() && sum.abs_diff(u128::from(measured.bytes.0)) > slack(result);
    off.then_some(Contradiction::BytesOfLanes { bytes: measured.bytes, lanes, sum })
}

/// Bytes by which parts may differ from the whole: each queue pair or stream may be inside one message when the window
/// begins, and inside one when it ends.
fn slack(result: &CaseResult<'_>) -> u128 {
    let cell = &result.case.cell;
    2 * u128::from(cell.size.0) * u128::from(cell.qps.max(1))
}

/// Slices with more than the whole, or longer than it.
fn off_slices(result: &CaseResult<'_>, end: &Measurement) -> Option<Contradiction> {
    let sum: u128 = end.slices.iter().map(|bytes| u128::from(bytes.0)).sum();
    let told = end.slices.len() as u64;
    if sum > u128::from(end.bytes.0) + slack(result) {
        return Some(Contradiction::BytesOfSlices { bytes: end.bytes, sum });
    }
    // One more than there is room for: ends of threads are not the same moment.
    let too_many = told > end.elapsed / SLICE + 1;
    too_many.then_some(Contradiction::Slices { slices: end.slices.len(), window: end.elapsed })
}

/// Less moved in the whole step than in its window, or more than any link carries while the controller waits.
fn off_moved(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let (bytes, moved) = (sample.initiator.bytes, sample.initiator.moved?);
    if moved < bytes {
        return Some(Contradiction::Moved { bytes, moved });
    }
    let time = sample.waited.map_or_else(|| limit(result), NanosecondsF64::from) * CLOCK_TOLERANCE + CLOCK_ALLOWANCE;
    let most = ANY_PORT / 8.0 * time.0;
    (moved.as_f64() > most).then_some(Contradiction::MovedTooMuch { moved, time, most })
}

/// Operations of a latency that are not as many as their times, or whose times are not the window: one operation begins when
/// the one before it ends.
fn off_times(result: &CaseResult<'_>, measured: &Measurement) -> Option<Contradiction> {
    let op = result.case.cell.op;
    // The reads of a memory latency are not timed one by one.
    let latency = measured.latency.as_ref().filter(|_| result.case.cell.metric == TestMetric::Latency)?;
    if latency.samples != measured.operations {
        return Some(Contradiction::Operations { operations: measured.operations, times: latency.samples });
    }
    // Of messages that are answered half of each round trip is told.
    let trips = if op.pulls() || op.is_atomic() { 1.0 } else { 2.0 };
    let (sum, window) = (latency.mean * latency.samples as f64 * trips, NanosecondsF64::from(measured.elapsed));
    if sum > window * CLOCK_TOLERANCE + BESIDE || window > sum * CLOCK_TOLERANCE + BESIDE {
        return Some(Contradiction::SumOfTimes { window, sum });
    }
    let (timer, operation) = (NanosecondsF64::from(latency.timer), NanosecondsF64::from(latency.p50) * trips);
    (timer > operation).then_some(Contradiction::Timer { timer, operation })
}

/// CPU time in which nothing could have been done: over verbs every operation takes a nanosecond at least, over TCP every
/// mebibyte does, and who polls is busy all the time.
fn too_little_cpu(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let measured = &sample.initiator;
    let completion = result.attempt(sample)?.link.as_ref()?.settings.get("completion");
    if measured.cpu.is_zero() {
        let polls = completion.is_some_and(|how| how == "poll") && measured.elapsed >= SLICE;
        return polls.then_some(Contradiction::NoCpuTime { window: measured.elapsed });
    }
    let least = match result.case.cell.transport {
        Transport::Tcp => measured.bytes / Bytes::from_mib(1),
        // Reads of the first cache are faster: how fast they may be is looked at by itself.
        Transport::Cpu => measured.operations / 4,
        _ => measured.operations,
    };
    let (cpu, operations) = (measured.cpu, measured.operations);
    (cpu < Nanoseconds(least)).then_some(Contradiction::LittleCpuTime { cpu, operations })
}
