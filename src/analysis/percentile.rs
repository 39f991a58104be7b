//! Which percentiles the samples of a measurement carry.
//!
//! Of n operations n (1 − q) are expected above the quantile q, give or take the root of that. With ten of them the
//! number above is 4 to 17 in 95 of 100 measurements (the binomial distribution), so the distribution-free 95 % interval of
//! the quantile (David & Nagaraja 2003, 7.1) ends at about the fourth largest operation, inside the samples. With 3.7 or fewer it
//! ends nowhere: the largest operation says nothing of how far the tail reaches, and what stands there as p99.9 of 173
//! operations is their maximum under another name. So a percentile is carried from 10 / (1 − q) operations on.
//!
//! The median, the least and the largest operation are statements about the samples at hand and always carried.

use std::fmt;

use railgauge_wire::terms::Metric;
use serde::Serialize;

use super::results::CaseResult;

/// Operations that must be expected above a quantile.
const ABOVE: u64 = 10;

/// Whether `n` values carry the quantile `q` of them: the same rule at either end.
pub fn carries_quantile(q: f64, n: usize) -> bool {
    // A tenth of an operation is no reason, nor is a bit of rounding.
    n as f64 * q.min(1.0 - q) >= ABOVE as f64 - 1e-9
}

/// Fewest operations from which on a window carries this metric; 1 for what single operations carry.
pub const fn needed(metric: Metric) -> u64 {
    match metric.permille() {
        Some(permille) if permille > 500 => ABOVE * 1000 / (1000 - permille),
        _ => metric.fewest(),
    }
}

/// Whether `n` operations carry this metric.
pub const fn carries(metric: Metric, n: u64) -> bool {
    n >= needed(metric)
}

/// Operations in the shortest window of a case: what its percentiles rest on, since a case's value is the median of its
/// windows'. `None` without a window of single operations.
pub fn operations(result: &CaseResult<'_>) -> Option<u64> {
    let samples = result.samples.iter().filter_map(|(_, sample)| sample.initiator.latency.as_deref());
    samples.map(|latency| latency.samples).min()
}

/// Whether the samples of a case carry this metric; a case without samples of single operations carries what is no percentile.
pub fn carried_by(metric: Metric, result: &CaseResult<'_>) -> bool {
    let needed = needed(metric);
    needed <= 1 || operations(result).unwrap_or_default() >= needed
}

/// Too few operations for a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TooFew {
    pub metric: Metric,
    /// Operations that every window needs for it.
    pub needed: u64,
    /// Operations in the shortest window.
    pub operations: u64,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metric, needed, operations } = self;
        write!(f, "{metric} takes {needed} operations in every window, and there were {operations}: measure longer")
    }
}

/// Why the samples of a case do not carry this metric.
pub fn too_few(metric: Metric, result: &CaseResult<'_>) -> TooFew {
    TooFew { metric, needed: needed(metric), operations: operations(result).unwrap_or_default() }
}

/// Whether a metric that the samples do not carry is above `limit`, in µs, all the same: half of the operations were, and so
/// was what is a percentile above the median.
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
