//! One cell of a comparison: one metric of one link at one size.

use super::{Margin, Order, Stretch};
use crate::{
    rank::{mann_whitney, signed_rank},
    refusal::{Refusal, demand},
    shift::{Interval, paired_shifts, shifts},
    student::{t_quantile, t_tail},
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
    /// Whether the intervals may hold the truth more often than their level says: the correlation of the runs is not
    /// known well enough, and the largest plausible one was taken.
    pub at_least: bool,
    /// Two-sided p of "no change", whatever the correlation of neighbouring runs is up to [`super::NEIGHBOURS`].
    pub p_change: f64,
    /// The same by ranks alone, which is right only if runs do not resemble their neighbours, or take turns.
    pub p_plain: f64,
    /// p of "the effect lies outside ± margin", two one-sided tests, whatever that correlation is.
    pub p_equivalent: f64,
    /// The same by ranks alone.
    pub p_equivalent_plain: f64,
    /// The margin of `p_equivalent`, and the smallest effect that is called improved or regressed.
    pub margin: f64,
    /// Whether the margin is too wide for "equivalent" to mean anything.
    pub too_wide: bool,
    /// Runs, or blocks: the smaller side's number.
    pub n: usize,
    /// Runs a side, or blocks, that would probably show the margin is kept, if nothing changed: (2 t s / margin)² with
    /// Student's t₀.₉₅ for the values that s rests on, twice that where both sides are drawn separately; at least 6 and
    /// more than there are. `None` where it cannot be estimated.
    pub need: Option<usize>,
}

/// Fewest blocks of which a signed rank test can reach 5 %, and so the fewest worth measuring.
const FEWEST: usize = 6;

/// Two sets of runs: the shift of Hodges & Lehmann with the interval of the rank test, stretched by what the correlation of
/// neighbouring runs makes of it in their order ([`super::Luck::stretch`]).
///
/// p of a change is that of Mann & Whitney. Where the order is not safe against correlated neighbours, it is that of
/// Student's t if this is larger, with the variance and the degrees of freedom that the worst correlation gives it
/// ([`Order::worst`]). p of lying outside ± `margin` is made alike from two one-sided tests (Schuirmann 1987; with ranks:
/// Wellek 2010, section 6.2). `order` is that of exactly these runs; `None` where they are too few for one.
///
/// # Errors
/// An empty side, a value that is not finite, or a margin that is not positive.
pub fn unpaired(
    before: &[f64],
    after: &[f64],
    order: Option<&Order>,
    stretch: Stretch,
    margin: Margin,
) -> Result<Comparison, Refusal> {
    let Margin { value: margin, too_wide, .. } = margin;
    demand_margin(margin)?;
    let (effect, intervals) = shifts(before, after, [0.95, 0.90])?;
    let widen = |end: f64| effect + stretch.factor * (end - effect);
    let [interval95, interval90] =
        intervals.map(|i| i.map(|i| Interval { low: widen(i.low), high: widen(i.high), level: i.level }));
    let moved = |by: f64| after.iter().map(|v| v + by).collect::<Vec<f64>>();
    let above = mann_whitney(&moved(margin), before)?.p.greater;
    let below = mann_whitney(&moved(-margin), before)?.p.less;
    let p_plain = mann_whitney(after, before)?.p.two_sided;
    let outside = above.max(below);
    let (p_change, p_equivalent) = match order.map(Order::worst) {
        // Nothing is worse than independent runs.
        Some(worst) if worst.r <= 0.0 => (p_plain, outside),
        Some(worst) => {
            let t = Worst::new(before, after, worst.variance, worst.freedom);
            (p_plain.max(t.p_change()), outside.max(t.p_equivalent(margin)))
        }
        None => (1.0, 1.0),
    };
    let n = before.len().min(after.len());
    let pooled = match (variance(before), variance(after)) {
        (Some(a), Some(b)) => Some(f64::midpoint(a, b)),
        (one, other) => one.or(other),
    };
    Ok(Comparison {
        effect,
        interval95,
        interval90,
        at_least: stretch.at_least,
        p_change,
        p_plain,
        p_equivalent,
        p_equivalent_plain: outside,
        margin,
        too_wide,
        n,
        need: pooled.map(|variance| need(2.0 * variance, (before.len() + after.len()).saturating_sub(2), margin, n)),
    })
}

/// A difference of means with the standard error that the worst correlation of neighbours gives it.
struct Worst {
    difference: f64,
    error: f64,
    freedom: f64,
}

impl Worst {
    fn new(before: &[f64], after: &[f64], variance: f64, freedom: f64) -> Self {
        let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len() as f64;
        let squares = |side: &[f64]| side.iter().map(|v| (v - mean(side)).powi(2)).sum::<f64>();
        let left = (before.len() + after.len()).saturating_sub(2).max(1) as f64;
        let pooled = (squares(before) + squares(after)) / left;
        Self { difference: mean(after) - mean(before), error: (pooled * variance).sqrt(), freedom }
    }

    /// Upper tail of a distance from a bound.
    fn tail(&self, distance: f64) -> f64 {
        match (self.error > 0.0, distance) {
            (true, _) => t_tail(distance / self.error, self.freedom),
            (false, distance) if distance > 0.0 => 0.0,
            _ => 1.0,
        }
    }

    fn p_change(&self) -> f64 {
        (2.0 * self.tail(self.difference.abs())).min(1.0)
    }

    fn p_equivalent(&self, margin: f64) -> f64 {
        self.tail(margin - self.difference.abs())
    }
}

/// Differences of blocks: signed rank, the pseudomedian of Hodges & Lehmann, and two one-sided signed rank tests against
/// ± `margin`.
///
/// # Errors
/// No difference, one that is not finite, or a margin that is not positive.
pub fn paired(differences: &[f64], margin: Margin) -> Result<Comparison, Refusal> {
    let Margin { value: margin, too_wide, .. } = margin;
    demand(differences, 1)?;
    demand_margin(margin)?;
    let (effect, [interval95, interval90]) = paired_shifts(differences, [0.95, 0.90])?;
    let moved = |by: f64| differences.iter().map(|d| d + by).collect::<Vec<f64>>();
    let n = differences.len();
    let p = signed_rank(differences)?.p.two_sided;
    let outside = signed_rank(&moved(margin))?.p.greater.max(signed_rank(&moved(-margin))?.p.less);
    Ok(Comparison {
        effect,
        interval95,
        interval90,
        at_least: false,
        p_change: p,
        p_plain: p,
        p_equivalent: outside,
        p_equivalent_plain: outside,
        margin,
        too_wide,
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
