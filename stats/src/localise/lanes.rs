//! Finds slow ways among several between the same two ends.
//!
//! Switches with equal paths choose by a hash over ports, so a bad path affects only some ports of a pair. The lanes are sorted by their
//! medians and cut at the widest gap. It must be wider than chance makes the widest of so many, and the lanes above it must be closer
//! together than the gap: lanes that merely spread have no bad path.

use super::{
    confirm::{FALSE_ALARM, LIKE},
    model::MEDIAN_ERROR,
};
use crate::{refusal::Refusal, robust::median, student::t_quantile};

pub const FEWEST_LANES: usize = 3;
/// Fewest results of a lane: with fewer one disturbance is half of it.
const FEWEST: usize = 2;
const COMPANY: usize = 2;

#[derive(Debug, Clone, PartialEq)]
pub struct Lanes {
    /// Indices in order; empty without a separating gap.
    pub slow: Vec<usize>,
    /// Median difference of the slow ones from the others; without slow ones, of the lowest.
    pub effect: f64,
    pub good: f64,
    /// Widest gap in standard errors, and the required number.
    pub z: f64,
    /// See `z`.
    pub cut: f64,
}

/// Judges lanes by the natural logarithms of their results, higher is better. `noise` is the known standard deviation of a single result,
/// `suspicion` the effect that caused the check, `least` the smallest effect worth a name.
///
/// The standard error of a gap between two medians is 1.2533 s √(1/a + 1/b) with s pooled from the repeats of all lanes;
/// it must be exceeded as three standard deviations would be by chance (Student's t, Bonferroni over the gaps).
///
/// # Errors
/// Fewer than [`FEWEST_LANES`] lanes with two results each, or a value that is not finite.
pub fn lanes(results: &[Vec<f64>], noise: f64, suspicion: f64, least: f64) -> Result<Lanes, Refusal> {
    if let Some(at) = results.iter().flatten().position(|value| !value.is_finite()) {
        return Err(Refusal::NotFinite { at });
    }
    let mut sorted: Vec<(usize, f64, usize)> = Vec::new();
    for (at, values) in results.iter().enumerate().filter(|(_, values)| values.len() >= FEWEST) {
        sorted.push((at, median(values)?, values.len()));
    }
    if sorted.len() < FEWEST_LANES {
        return Err(Refusal::TooFew { need: FEWEST_LANES, got: sorted.len() });
    }
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (spread, freedom) = pooled(results);
    let scale = spread.max(noise);
    let gaps = sorted.len() - COMPANY;
    let cut = t_quantile(FALSE_ALARM / gaps as f64, freedom);
    let error = |below: usize| {
        let repeats = [sorted[below].2, sorted[below + 1].2].map(|n| 1.0 / n as f64);
        MEDIAN_ERROR * scale * (repeats[0] + repeats[1]).sqrt()
    };
    let gap = |below: &usize| sorted[below + 1].1 - sorted[*below].1;
    let widest = (0..gaps).max_by(|a, b| gap(a).total_cmp(&gap(b))).unwrap_or_default();
    let centre = |lanes: &[(usize, f64, usize)]| median(&lanes.iter().map(|lane| lane.1).collect::<Vec<_>>());
    let (below, above) = sorted.split_at(widest + 1);
    let (low, good) = (centre(below)?, centre(above)?);
    let (width, error) = (gap(&widest), error(widest));
    let together = above[above.len() - 1].1 - above[0].1;
    let set_apart = width > cut * error && width > least.max(LIKE * suspicion.abs()) && width > together;
    let mut slow: Vec<usize> = if set_apart { below.iter().map(|lane| lane.0).collect() } else { Vec::new() };
    slow.sort_unstable();
    Ok(Lanes { slow, effect: low - good, good, z: if error > 0.0 { width / error } else { 0.0 }, cut })
}

fn pooled(results: &[Vec<f64>]) -> (f64, f64) {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for values in results.iter().filter(|values| values.len() >= FEWEST) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        squares += values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        freedom += n - 1.0;
    }
    ((squares / freedom).sqrt(), freedom)
}
