//! One cell of a comparison: one metric of one link at one size.

use crate::{
    rank::{mann_whitney, signed_rank},
    refusal::{Refusal, demand},
    shift::{Interval, paired_shifts, shifts},
    student::t_quantile,
};

/// What two sets of runs say about one cell. Effects are differences of logarithms, after minus before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Hodges–Lehmann estimate of the effect.
    pub effect: f64,
    /// Interval of at least 95 %; `None` if the runs are too few for one.
    pub interval95: Option<Interval>,
    /// Interval of at least 90 %, by which equivalence is judged.
    pub interval90: Option<Interval>,
    /// Two-sided p of "no change", by ranks.
    pub p_change: f64,
    /// p of "the effect lies outside ± margin": two one-sided rank tests.
    pub p_equivalent: f64,
    /// The margin of `p_equivalent`.
    pub margin: f64,
    /// Smallest effect that is called improved or regressed: the margin; for [`unpaired`] runs, which may depend on each
    /// other, also so many times half of the 95 % interval's width as it must stand clear.
    pub least: f64,
    /// Runs, or blocks: the smaller side's number.
    pub n: usize,
    /// Runs a side, or blocks, that would probably show the margin is kept, if nothing changed: (2 t s / margin)² with
    /// Student's t₀.₉₅ for the values that s rests on, twice that where both sides are drawn separately; at least 6 and
    /// more than there are. `None` where it cannot be estimated.
    pub need: Option<usize>,
}

/// Fewest blocks of which a signed rank test can reach 5 %, and so the fewest worth measuring.
const FEWEST: usize = 6;

/// Two sets of runs: Mann–Whitney, the shift of Hodges & Lehmann, and two one-sided Mann–Whitney tests against
/// ± `margin` (Schuirmann 1987 with ranks for means; Wellek 2010, section 6.2). `clear` is by how many times half of its
/// interval's width an effect must differ from 0 to be a change: [`super::clearance`] of the runs' order.
///
/// # Errors
/// An empty side, a value that is not finite, a margin that is not positive, or a clearance below 1.
pub fn unpaired(before: &[f64], after: &[f64], margin: f64, clear: f64) -> Result<Comparison, Refusal> {
    demand_margin(margin)?;
    if !(clear >= 1.0 && clear.is_finite()) {
        return Err(Refusal::Parameter("an effect stands clear of its interval by at least its half width"));
    }
    let (effect, [interval95, interval90]) = shifts(before, after, [0.95, 0.90])?;
    let moved = |by: f64| after.iter().map(|v| v + by).collect::<Vec<f64>>();
    let above = mann_whitney(&moved(margin), before)?.p.greater;
    let below = mann_whitney(&moved(-margin), before)?.p.less;
    let n = before.len().min(after.len());
    let pooled = match (variance(before), variance(after)) {
        (Some(a), Some(b)) => Some(f64::midpoint(a, b)),
        (one, other) => one.or(other),
    };
    Ok(Comparison {
        effect,
        interval95,
        interval90,
        p_change: mann_whitney(after, before)?.p.two_sided,
        p_equivalent: above.max(below),
        margin,
        least: interval95.map_or(margin, |interval| margin.max(clear * interval.half_width())),
        n,
        need: pooled.map(|variance| need(2.0 * variance, (before.len() + after.len()).saturating_sub(2), margin, n)),
    })
}

/// Differences of blocks: signed rank, the pseudomedian of Hodges & Lehmann, and two one-sided signed rank tests against
/// ± `margin`.
///
/// # Errors
/// No difference, one that is not finite, or a margin that is not positive.
pub fn paired(differences: &[f64], margin: f64) -> Result<Comparison, Refusal> {
    demand(differences, 1)?;
    demand_margin(margin)?;
    let (effect, [interval95, interval90]) = paired_shifts(differences, [0.95, 0.90])?;
    let moved = |by: f64| differences.iter().map(|d| d + by).collect::<Vec<f64>>();
    let n = differences.len();
    Ok(Comparison {
        effect,
        interval95,
        interval90,
        p_change: signed_rank(differences)?.p.two_sided,
        p_equivalent: signed_rank(&moved(margin))?.p.greater.max(signed_rank(&moved(-margin))?.p.less),
        margin,
        least: margin,
        n,
        need: variance(differences).map(|variance| need(variance, n - 1, margin, n)),
    })
}

fn demand_margin(margin: f64) -> Result<(), Refusal> {
    if margin > 0.0 && margin.is_finite() {
        Ok(())
    } else {
        Err(Refusal::Parameter("an equivalence margin is a positive number"))
    }
}

/// Two one-sided tests of level 5 % succeed in 90 % of cases if margin = (z₀.₉₅ + z₀.₉₅) s / √n and nothing changed (Chow,
/// Shao & Wang 2008, section 3.1.3); t stands for z because s is an estimate from `seen` values more than its means.
fn need(variance: f64, seen: usize, margin: f64, n: usize) -> usize {
    let t = t_quantile(0.05, seen.max(1) as f64);
    // Beyond a million runs the answer is "never"; the cap keeps the conversion exact.
    let estimate = (4.0 * t * t * variance / (margin * margin)).ceil().min(1e6);
    (estimate as usize).max(FEWEST).max(n + 1)
}

/// Variance with divisor n − 1; `None` below two values.
fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    Some(values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64)
}
