use railgauge_model::journal::event::Sample;
use railgauge_wire::{Nanoseconds, Op, TestMetric};

use super::{
    link::{ANY_CACHE, ANY_GPU, ANY_MEMORY, ANY_PORT},
    outside::outside,
};
use crate::case::{CaseResult, Contradiction};

/// Excess over the link's rate attributed to clocks and rounding: both ends' crystals differ by less than 100 ppm, and
/// the rate itself is exact (IEEE 802.3, clause 4A).
const RATE_TOLERANCE: f64 = 1.01;
/// Everything faster than hardware, or than the link's rate in Gb/s.
pub(super) fn contradictions(result: &CaseResult<'_>, sample: &Sample, rate: Option<f64>) -> Vec<Contradiction> {
    let mut found: Vec<Contradiction> =
        multiplied(result, sample).into_iter().chain(too_soon(result, sample)).collect();
    let most = if result.case.cell.transport.is_within_host() { ANY_MEMORY } else { ANY_PORT };
    found.extend(too_fast(result, sample, rate.unwrap_or(most).min(most)));
    found
}

fn multiplied(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let end = &sample.initiator;
    let rate = end.flops as f64 / end.elapsed.as_f64() / Nanoseconds::PER_MICROSECOND;
    outside("rate", (rate, "TFLOP/s"), "GPUs have", (0.0, ANY_GPU)).filter(|_| result.case.cell.op == Op::Matmul)
}

/// Reads of memory faster than those of the nearest cache of any processor.
fn too_soon(result: &CaseResult<'_>, sample: &Sample) -> Option<Contradiction> {
    let (cell, end) = (&result.case.cell, &sample.initiator);
    let is_chase = cell.transport.is_within_host() && cell.metric == TestMetric::Latency;
    let (each, mean) =
        (end.each.as_deref().copied().filter(|_| is_chase)?, end.elapsed.as_f64() / end.operations as f64);
    // Half of all reads take at least as long as their median; those timed last may be fewer.
    outside("read", (each.min(mean), "ns"), "caches take", (ANY_CACHE, f64::INFINITY))
        .or_else(|| outside("median of reads", (each, "ns"), "its window has", (0.0, 3.0 * mean)))
}

/// Ends that moved more in their window than the link (for an unknown rate, any link) carries. For both directions each end counts its own.
fn too_fast(result: &CaseResult<'_>, sample: &Sample, rate: f64) -> Vec<Contradiction> {
    if result.case.cell.metric != TestMetric::Bandwidth {
        return Vec::new();
    }
    // In one direction the initiator's window contains the responder's, which starts after the first bytes have arrived.
    let responder = sample.responder.as_deref().filter(|_| result.test.bidirectional);
    let ends = [Some(&sample.initiator), responder].into_iter().flatten();
    let rates = ends.filter(|end| !end.elapsed.is_zero()).map(|end| end.bytes.bits() / end.elapsed.as_f64());
    let by = if rate >= ANY_PORT { "links have" } else { "the link has" };
    rates.filter_map(|gbps| outside("bandwidth", (gbps, "Gb/s"), by, (0.0, rate * RATE_TOLERANCE))).collect()
}
