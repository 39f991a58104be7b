//! What the accounts of the two ends of a pair can say of one window.

use railgauge_model::journal::event::Sample;
use railgauge_wire::{
    measure::Measurement,
    node::LINE,
    terms::{Op, Service, TestMetric, Transport, flops},
    unit::Nanoseconds,
};

use super::{
    Contradiction,
    link::{ANY_CACHE, ANY_GPU, ANY_MEMORY, ANY_PORT},
    responder_counts,
};
use crate::analysis::results::CaseResult;

/// Bandwidth above the link's rate that is put down to clocks and rounding: both ends' crystals differ by less than
/// 100 ppm, and the rate itself is exact (IEEE 802.3, clause 4A).
const RATE_TOLERANCE: f64 = 1.01;
/// Share by which what one end received may differ from what the other sent: the ends do not begin and end to count at the
/// same moment.
const COUNT_TOLERANCE: f64 = 0.01;
/// Messages of a queue pair that an unreliable service may count at one end only: what the receiver takes is told to the
/// sender some receives at a time, of the 512 that it has posted (`docs/rdma.md`).
const RECEIVES: u64 = 512;

/// Everything that contradicts the message size, the other end, or the link's rate in Gb/s.
pub(super) fn contradictions(result: &CaseResult<'_>, sample: &Sample, rate: Option<f64>) -> Vec<Contradiction> {
    let mut found = off_size(result, sample);
    found.extend(verified_too_much(result, sample));
    found.extend(miscounted(result, sample));
    found.extend(too_soon(result, sample));
    found.extend(received(result, sample));
    let most = if result.case.cell.transport.is_within_host() { ANY_MEMORY } else { ANY_PORT };
    found.extend(too_fast(result, sample, rate.unwrap_or(most).min(most)));
    found
}

/// Bytes that are not as many messages as the end counted.
fn off_size(result: &CaseResult<'_>, sample: &Sample) -> Vec<Contradiction> {
    let cell = &result.case.cell;
    // A latency within hosts is of single reads, which bring a line each.
    let of_lines = cell.transport.is_within_host() && cell.metric == TestMetric::Latency;
    let each = if of_lines { LINE } else { cell.size };
    let size = i128::from(each.0);
    let off = |end: &&Measurement| {
        let off = i128::from(end.bytes.0) - i128::from(end.operations) * size;
        // Each queue pair or stream may be inside one message when the window begins, and inside one when it ends.
        off.abs() > 2 * size * i128::from(cell.qps.max(1))
    };
    let counts = result.test.bidirectional || responder_counts(result);
    let responder = sample.responder.as_deref().filter(|_| counts);
    let ends = [Some(&sample.initiator), responder].into_iter().flatten();
    let told = |end: &Measurement| Contradiction::Size { bytes: end.bytes, operations: end.operations, size: each };
    ends.filter(off).map(told).collect()
}

/// Floating-point operations that are not those of so many products, or more of them than any GPU does in the time.
fn miscounted(result: &CaseResult<'_>, sample: &Sample) -> Vec<Contradiction> {
    let (cell, end) = (&result.case.cell, &sample.initiator);
    let rows = result.test.knobs.precision.and_then(|precision| precision.rows(cell.size));
    let (Op::Matmul, Some(rows)) = (cell.op, rows) else { return Vec::new() };
    let wanted = u128::from(flops(rows)) * u128::from(end.operations);
    let miscounted = u128::from(end.flops) != wanted;
    let rate = end.flops as f64 / end.elapsed.as_f64() / Nanoseconds::PER_MICROSECOND;
    let counted = Contradiction::Flops { flops: end.flops, operations: end.operations, wanted };
    let faster = Contradiction::FasterThanGpus { rate, most: ANY_GPU };
    [(miscounted, counted), (rate > ANY_GPU, faster)].into_iter().filter_map(|(is, what)| is.then_some(what)).collect()
}

/// Reads of memory that were faster than those of the nearest cache of any processor.
fn too_soon(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let (cell, end) = (&result.case.cell, &sample.initiator);
    let is_chase = cell.transport.is_within_host() && cell.metric == TestMetric::Latency;
    let (each, mean) =
        (end.each.as_deref().copied().filter(|_| is_chase)?, end.elapsed.as_f64() / end.operations as f64);
    if each.min(mean) < ANY_CACHE {
        return Some(Contradiction::FasterThanCaches { each: each.min(mean), least: ANY_CACHE });
    }
    // Half of all reads take as long as their median at least; those that are timed last may be fewer.
    (each > 3.0 * mean).then_some(Contradiction::MedianOfReads { each, mean })
}

/// More verified than the two verify passes hold: one before and one after the window, over every queue pair. Buffers are
/// filled in words of eight bytes.
fn verified_too_much(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let cell = &result.case.cell;
    let passes = 2 * u128::from(cell.qps.max(1)) * u128::from(cell.size.0.max(8));
    // A test of memory compares in its window, too.
    let in_window = if cell.op == Op::GpuMemoryTest { u128::from(sample.initiator.bytes.0) } else { 0 };
    let most = passes + in_window;
    let verified = sample.checked.verified;
    (u128::from(verified.0) > most).then_some(Contradiction::Verified { verified, most })
}

/// What the responder received, against what was sent: of one direction, where it counts. Both ends count one pass, and the
/// last mark between them is set when everything has arrived; an initiator leaves out what an unreliable service lost.
fn received(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let (cell, sent) = (&result.case.cell, sample.initiator.bytes);
    if result.test.bidirectional || !responder_counts(result) {
        return None;
    }
    let received = sample.responder.as_deref()?.bytes;
    let messages = match (cell.transport, cell.service) {
        (Transport::Verbs, Service::Uc | Service::Ud) => RECEIVES,
        _ => 2,
    };
    let slack = sent.as_f64() * COUNT_TOLERANCE + messages as f64 * cell.size.as_f64() * f64::from(cell.qps.max(1));
    let to = &result.case.flow.to.host;
    (received.abs_diff(sent).as_f64() > slack).then(|| Contradiction::Received { sent, host: to.to_string(), received })
}

/// Ends that moved more in their window than the link carries, or than any does where its rate is not known. Of both directions each end counts its own.
fn too_fast(result: &CaseResult<'_>, sample: &Sample, rate: f64) -> Vec<Contradiction> {
    if result.case.cell.metric != TestMetric::Bandwidth {
        return Vec::new();
    }
    let ends = [Some(&sample.initiator), sample.responder.as_deref()].into_iter().flatten();
    let rates = ends.filter(|end| !end.elapsed.is_zero()).map(|end| end.bytes.bits() / end.elapsed.as_f64());
    let above = rates.filter(|gbps| *gbps > rate * RATE_TOLERANCE);
    above.map(|gbps| Contradiction::TooFast { rate: gbps, most: rate, of_any_link: rate >= ANY_PORT }).collect()
}
