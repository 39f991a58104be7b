//! Tests whether values fall into two clusters.

/// Least distance of the centres in standard deviations within the clusters. One normal distribution cut in its middle has 2.65.
const APART: f64 = 4.0;
/// Share of the smaller cluster that may be in the middle third between the centres. A long tail is not a second cluster: it has as many
/// values on the way as at its end.
const BETWEEN: f64 = 0.2;
/// Least share of the values in either cluster, and least number. Fewer are single bad pairs.
const SHARE: f64 = 0.05;

pub(super) const FEWEST_FOR_SPLIT: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Split {
    /// Values from here on belong to the upper cluster.
    pub(super) from: f64,
    pub(super) scale: f64,
}

/// The two clusters of sorted values, cut where the variance between them is largest (Otsu 1979), if they satisfy [`APART`] and
/// [`BETWEEN`]. `fewest` is the least number of values in the upper one.
pub(super) fn split(sorted: &[f64], fewest: usize) -> Option<Split> {
    let n = sorted.len();
    if n < FEWEST_FOR_SPLIT {
        return None;
    }
    let origin = sorted[0];
    let total: f64 = sorted.iter().map(|value| value - origin).sum();
    let least = ((SHARE * n as f64).ceil() as usize).max(1);
    let (low, high) = (least.max(3), n - least.max(fewest));
    let (mut below, mut best) = (0.0, None);
    for at in 1..n {
        below += sorted[at - 1] - origin;
        if at < low || at > high {
            continue;
        }
        let (a, b) = (at as f64, (n - at) as f64);
        let between = a * b * (below / a - (total - below) / b).powi(2);
        if best.is_none_or(|(_, most)| between > most) {
            best = Some((at, between));
        }
    }
    let (at, _) = best?;
    let (lower, upper) = sorted.split_at(at);
    let (a, b) = (mean(lower), mean(upper));
    let squares = |values: &[f64], mean: f64| values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let scale = ((squares(lower, a) + squares(upper, b)) / (n - 2) as f64).sqrt();
    let third = (b - a) / 3.0;
    let middle = sorted.partition_point(|v| *v < b - third).saturating_sub(sorted.partition_point(|v| *v <= a + third));
    let clear = middle as f64 <= BETWEEN * lower.len().min(upper.len()) as f64;
    (b - a > APART * scale && clear).then_some(Split { from: upper[0], scale })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
