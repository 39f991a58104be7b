//! One number for all cells: the geometric mean of ratios.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    refusal::{Refusal, demand},
    robust::quantile_sorted,
    shift::Interval,
};

/// Resamples of the bootstrap.
const RESAMPLES: usize = 2_000;
/// Fewest blocks, or runs a side, of which an interval is made.
const FEWEST: usize = 4;

/// Mean effect over all cells with a 95 % interval. Both are differences of logarithms: their exponential is the
/// geometric mean of the cells' ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headline {
    /// Mean over blocks or runs of the mean over cells.
    pub effect: f64,
    /// Bootstrap interval; `None` below four blocks or runs a side, or where they do not differ at all.
    pub interval: Option<Interval>,
}

/// From each block's mean difference over all cells. Blocks are resampled and all cells of a block stay together, because
/// cells of one block share its luck. The interval is the bootstrap-t (Efron & Tibshirani 1993, section 12.5): with six to
/// ten blocks the plain percentile interval is too short.
///
/// # Errors
/// No block, or a value that is not finite.
pub fn paired_headline(blocks: &[f64], seed: u64) -> Result<Headline, Refusal> {
    demand(blocks, 1)?;
    let (effect, error) = mean_and_error(blocks);
    if blocks.len() < FEWEST || error <= 0.0 {
        return Ok(Headline { effect, interval: None });
    }
    let mut draws = Draws::new(seed);
    let ratios = (0..RESAMPLES).filter_map(|_| {
        let (mean, error) = mean_and_error(&draws.resample(blocks));
        (error > 0.0).then(|| (mean - effect) / error)
    });
    Ok(Headline { effect, interval: interval(ratios.collect(), effect, error) })
}

/// From each run's mean over all cells, before and after. Runs are resampled within their side.
///
/// # Errors
/// No run on a side, or a value that is not finite.
pub fn unpaired_headline(before: &[f64], after: &[f64], seed: u64) -> Result<Headline, Refusal> {
    demand(before, 1)?;
    demand(after, 1)?;
    let difference = |before: &[f64], after: &[f64]| {
        let ((a, ea), (b, eb)) = (mean_and_error(before), mean_and_error(after));
        (b - a, ea.hypot(eb))
    };
    let (effect, error) = difference(before, after);
    if before.len().min(after.len()) < FEWEST || error <= 0.0 {
        return Ok(Headline { effect, interval: None });
    }
    let mut draws = Draws::new(seed);
    let ratios = (0..RESAMPLES).filter_map(|_| {
        let (mean, error) = difference(&draws.resample(before), &draws.resample(after));
        (error > 0.0).then(|| (mean - effect) / error)
    });
    Ok(Headline { effect, interval: interval(ratios.collect(), effect, error) })
}

fn interval(mut ratios: Vec<f64>, effect: f64, error: f64) -> Option<Interval> {
    ratios.sort_unstable_by(f64::total_cmp);
    let high = quantile_sorted(&ratios, 0.975).ok()?;
    let low = quantile_sorted(&ratios, 0.025).ok()?;
    Some(Interval { low: effect - high * error, high: effect - low * error, level: 0.95 })
}

/// Mean and its standard error; the error is 0 for one value.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0) / n).sqrt())
}

struct Draws(ChaCha8Rng);

impl Draws {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn resample(&mut self, values: &[f64]) -> Vec<f64> {
        (0..values.len()).map(|_| values[self.0.random_range(0..values.len())]).collect()
    }
}
