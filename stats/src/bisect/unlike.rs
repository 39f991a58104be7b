//! Detects groups of one size with different results.

use crate::student::t_quantile;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repeats {
    /// Standard deviation of a group's result, the mean of its repeats, on the scale of logarithms.
    pub deviation: f64,
    pub freedom: usize,
}

impl Repeats {
    const ENOUGH: usize = 4;

    /// Noise for a search, raised for few repeats so that three times it is exceeded as rarely as three known standard deviations. 0 for
    /// unknown, where repeats say hardly anything.
    pub fn noise(self) -> f64 {
        if self.freedom < Self::ENOUGH {
            return 0.0;
        }
        self.deviation * t_quantile(0.001_35, self.freedom as f64) / 3.0
    }
}

/// Probability that chance separates equal results: the first if only the results themselves show their scatter, else the second over the
/// degrees of freedom of the repeats, at most the third. With few repeats less would hide relevant differences.
const CHANCE: [f64; 3] = [0.005, 0.1, 0.025];
/// Least standard deviations between the means of two clusters, for tails that are not normal, without repeats and with them. For two
/// results with repeats each mean is known.
const FAR_APART: [f64; 2] = [8.0, 4.0];
/// Gap that makes two clusters whatever the scatter: two thirds of the difference of half the rate, which must be detected.
const WIDE: f64 = 2.0 / 3.0 * std::f64::consts::LN_2;

/// The lowest result of the upper cluster if the results of groups of one size (logarithms) fall into two clusters: the widest gap is
/// wider than chance makes it (Student's t with the scatter inside both clusters, at least that of repeats; Bonferroni over the results)
/// and than `least`; or so wide that it must be reported. The sizes of the clusters do not show which one is bad.
pub fn unlike(results: &[f64], repeats: Option<Repeats>, least: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = results.iter().copied().filter(|result| result.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let gap = |at: &usize| sorted[*at] - sorted[at - 1];
    let at = (1..sorted.len()).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (low, high) = sorted.split_at(at);
    let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len() as f64;
    let squares = |side: &[f64]| side.iter().map(|value| (value - mean(side)).powi(2)).sum::<f64>();
    let inside = sorted.len() - 2;
    let within = if inside > 0 { ((squares(low) + squares(high)) / inside as f64).sqrt() } else { 0.0 };
    let freedom = inside + repeats.map_or(0, |repeats| repeats.freedom);
    let scale = within.max(repeats.map_or(0.0, |repeats| repeats.deviation));
    let error = scale * (1.0 / low.len() as f64 + 1.0 / high.len() as f64).sqrt();
    let apart = mean(high) - mean(low);
    let (chance, far) = match repeats {
        None => (CHANCE[0], FAR_APART[0]),
        Some(repeats) => {
            let far = if inside > 0 { FAR_APART[1] } else { 0.0 };
            ((CHANCE[1] / repeats.freedom as f64).clamp(CHANCE[0], CHANCE[2]), far)
        }
    };
    let by_chance = |freedom: usize| t_quantile(chance / sorted.len() as f64, freedom as f64) * error;
    let unusual = freedom > 0 && apart > by_chance(freedom).max(far * scale).max(least);
    let range = |side: &[f64]| side[side.len() - 1] - side[0];
    let wide = gap(&at) > WIDE.max(least) && gap(&at) > range(low).max(range(high));
    (unusual || wide).then_some(high[0])
}
