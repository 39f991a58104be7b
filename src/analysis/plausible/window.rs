//! One end's window: how long it was, and whether its parts come to the whole.

use railgauge_wire::{
    measure::{Measurement, SLICE},
    step::Window,
    terms::{Aim, Fabric},
};

use super::{CLOCK_ALLOWANCE, CLOCK_TOLERANCE};
use crate::{
    analysis::{results::CaseResult, words::count},
    run::event::Sample,
};

/// Share of the time that the plan wants which a window must have lasted. It ends with its last operation, which may have
/// been a while before its time was over.
const ENOUGH: f64 = 0.5;
/// Threads of a host that does not say how many it has. None has as many.
const MOST_THREADS: u32 = 1 << 16;
/// Nanoseconds by which the account of a responder may be longer than the pass that is waited for: it is armed before the
/// counters are read, and stopped after the answer.
const ARMED: f64 = 60e9;

/// Everything that is wrong with the windows of a pair; `threads` are those of both hosts.
pub(super) fn contradictions(result: &CaseResult<'_>, sample: &Sample, threads: [Option<u32>; 2]) -> Vec<String> {
    let measured = &sample.initiator;
    let longest = sample.waited.unwrap_or(measured.elapsed).max(measured.elapsed) as f64 * CLOCK_TOLERANCE;
    let longest = longest + CLOCK_ALLOWANCE;
    let mut found = Vec::new();
    found.extend(too_short(result, measured));
    found.extend(off_lanes(result, measured));
    found.extend(off_moved(measured));
    found.extend(off_times(result, measured));
    found.extend(too_little_cpu(result, measured));
    let responder = sample.responder.as_ref().map(|end| (end, threads[1], longest + ARMED));
    for (end, threads, longest) in [Some((measured, threads[0], longest)), responder].into_iter().flatten() {
        found.extend(off_slices(result, end));
        if sample.waited.is_some() && end.elapsed as f64 > longest {
            let took = end.elapsed as f64 / 1e9;
            found.push(format!("a window of {took:.3} s in a pass of {:.3} s", longest / 1e9));
        }
        let threads = threads.filter(|threads| *threads > 0).unwrap_or(MOST_THREADS);
        if end.cpu as f64 > longest * f64::from(threads) {
            let cpu = end.cpu as f64 / 1e9;
            found.push(format!("{cpu:.3} s of CPU time of {threads} threads in {:.3} s", longest / 1e9));
        }
    }
    found
}

/// A window that ended long before the time of the plan was over.
fn too_short(result: &CaseResult<'_>, measured: &Measurement) -> Option<String> {
    let wanted = match result.test.window {
        Window::Duration(time) | Window::Adaptive { at_least: time, .. } => time,
        Window::Iterations(_) => return None,
    };
    let (took, wanted) = (measured.elapsed as f64, wanted as f64);
    (took < ENOUGH * wanted)
        .then(|| format!("a window of {:.6} s, and the plan wants {:.6} s", took / 1e9, wanted / 1e9))
}

/// Queue pairs or streams that do not come to the whole together.
fn off_lanes(result: &CaseResult<'_>, measured: &Measurement) -> Option<String> {
    let sum: u128 = measured.lanes.iter().map(|lane| u128::from(lane.bytes)).sum();
    let off = !measured.lanes.is_empty() && sum.abs_diff(u128::from(measured.bytes)) > slack(result);
    off.then(|| format!("{} B, of which its {} moved {sum} B", measured.bytes, count(measured.lanes.len(), "lane")))
}

/// Bytes by which parts may differ from the whole: each queue pair or stream may be inside one message when the window
/// begins, and inside one when it ends.
fn slack(result: &CaseResult<'_>) -> u128 {
    let cell = &result.case.cell;
    2 * u128::from(cell.size) * u128::from(cell.qps.max(1))
}

/// Slices with more than the whole, or longer than it.
fn off_slices(result: &CaseResult<'_>, end: &Measurement) -> Option<String> {
    let sum: u128 = end.slices.iter().map(|bytes| u128::from(*bytes)).sum();
    let told = end.slices.len() as u64;
    if sum > u128::from(end.bytes) + slack(result) {
        return Some(format!("{} B, and {sum} B in its slices of 100 ms", end.bytes));
    }
    // One more than there is room for: ends of threads are not the same moment.
    let too_many = told > end.elapsed / SLICE + 1;
    too_many.then(|| format!("{} of 100 ms in {:.3} s", count(end.slices.len(), "slice"), end.elapsed as f64 / 1e9))
}

/// Less moved in the whole step than in its window.
fn off_moved(measured: &Measurement) -> Option<String> {
    let moved = measured.moved.filter(|moved| *moved < measured.bytes)?;
    Some(format!("{} B in the window, and {moved} B with warm-up and all", measured.bytes))
}

/// Operations of a latency that are not as many as their times.
fn off_times(result: &CaseResult<'_>, measured: &Measurement) -> Option<String> {
    let latency = measured.latency.as_ref().filter(|_| result.case.cell.aim == Aim::Latency)?;
    let operations = count(measured.operations as usize, "operation");
    (latency.samples != measured.operations).then(|| format!("{operations}, and times of {}", latency.samples))
}

/// CPU time in which nothing could have been done: over verbs every operation takes a nanosecond at least, over TCP every
/// mebibyte does.
fn too_little_cpu(result: &CaseResult<'_>, measured: &Measurement) -> Option<String> {
    let least = match result.case.cell.fabric {
        Fabric::Tcp => measured.bytes >> 20,
        _ => measured.operations,
    };
    let operations = count(measured.operations as usize, "operation");
    (measured.cpu > 0 && measured.cpu < least).then(|| format!("{} ns of CPU time for {operations}", measured.cpu))
}
