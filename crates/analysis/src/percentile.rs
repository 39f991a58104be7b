//! Which percentiles the samples of a measurement support.
//!
//! Of n operations n (1 − q) are expected above the quantile q, with a standard deviation of about the root of that. If ten are expected,
//! the number is 4 to 17 in 95 of 100 measurements (binomial distribution), so the distribution-free 95 % interval of the quantile (David &
//! Nagaraja 2003, 7.1) ends at about the fourth largest operation, inside the samples. With 3.7 or fewer it has no upper end, and the p99.9
//! of 173 operations would be their maximum under another name. So a percentile needs 10 / (1 − q) operations.
//!
//! Median, minimum and maximum describe the samples themselves and are always reported.

use railgauge_wire::Metric;
use serde::Serialize;

use crate::case::CaseResult;

/// Operations that must be expected above a quantile.
const ABOVE: u64 = 10;

pub fn carries_quantile(q: f64, n: usize) -> bool {
    // Tolerates a tenth of an operation, and rounding.
    n as f64 * q.min(1.0 - q) >= ABOVE as f64 - 1e-9
}

/// Operations that a window needs for this metric; 1 for others than percentiles.
pub const fn needed(metric: Metric) -> u64 {
    match metric.permille() {
        Some(permille) if permille > 500 => ABOVE * 1000 / (1000 - permille),
        _ => metric.fewest(),
    }
}

pub const fn carries(metric: Metric, n: u64) -> bool {
    n >= needed(metric)
}

/// Operations in the shortest window of a case: its value is the median over windows. `None` without a window of single operations.
pub fn operations(result: &CaseResult<'_>) -> Option<u64> {
    let samples = result.samples.iter().filter_map(|(_, sample)| sample.initiator.latency.as_deref());
    samples.map(|latency| latency.samples).min()
}

/// True for other metrics than percentiles if a case has no samples of single operations.
pub fn carried_by(metric: Metric, result: &CaseResult<'_>) -> bool {
    let needed = needed(metric);
    needed <= 1 || operations(result).unwrap_or_default() >= needed
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{metric} takes {needed} operations in every window, and there were {operations}: measure longer")]
pub struct TooFew {
    pub metric: Metric,
    pub needed: u64,
    pub operations: u64,
}

pub fn too_few(metric: Metric, result: &CaseResult<'_>) -> TooFew {
    TooFew { metric, needed: needed(metric), operations: operations(result).unwrap_or_default() }
}

/// Whether an unsupported metric still exceeds `limit` (µs) for certain: half of the operations did, so any percentile
/// above the median does.
pub fn above_for_certain(metric: Metric, result: &CaseResult<'_>, limit: f64) -> bool {
    let samples = result.samples.iter().filter_map(|(_, sample)| sample.initiator.latency.as_deref());
    let medians: Vec<f64> = samples.map(|latency| latency.p50.microseconds()).collect();
    metric != Metric::LatencyStdev && railgauge_stats::robust::median(&medians).is_ok_and(|median| median > limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_operations_above_it() {
        assert!(
            !carries(Metric::LatencyP999, 173) && !carries(Metric::LatencyP99, 173) && carries(Metric::LatencyP90, 173)
        );
        assert!(!carries(Metric::LatencyP99, 999) && carries(Metric::LatencyP99, 1000));
        assert!(!carries(Metric::LatencyP999, 9_999) && carries(Metric::LatencyP999, 10_000));
        assert!(!carries_quantile(0.05, 199) && carries_quantile(0.05, 200) && carries_quantile(0.95, 200));
        assert!(carries(Metric::LatencyP50, 1) && carries(Metric::LatencyMax, 1) && carries(Metric::Bandwidth, 1));
    }
}
