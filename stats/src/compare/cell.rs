//! One cell of a comparison: one metric of one link at one size.

use super::{
    Margin, Order, Stretch,
    means::{AtWorst, Means},
    order::both_edges,
    strays::strays,
};
use crate::{
    rank::{mann_whitney, signed_rank},
    refusal::{Refusal, demand},
    shift::{Interval, paired_shifts, shifts},
};

/// What two sets of runs say about one cell. Effects are differences of logarithms, after minus before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Hodges–Lehmann estimate of the effect.
    pub effect: f64,
    /// Interval of at least 95 %; `None` if the runs are too few for one.
    pub interval95: Option<Interval>,
    /// 95 % interval of the difference of means, which single bad runs widen: for the worst correlation of neighbouring
    /// runs up to [`super::NEIGHBOURS`]. `None` if the runs are too few for one.
    pub mean95: Option<Interval>,
    /// Whether the intervals may hold the truth more often than their level says: the correlation of the runs is not
    /// known well enough, and the largest plausible one was taken.
    pub at_least: bool,
    /// Two-sided p of "no change", whatever the correlation of neighbouring runs is up to [`super::NEIGHBOURS`].
    pub p_change: f64,
    /// The same by ranks alone, which is right only if runs do not resemble their neighbours, or take turns.
    pub p_plain: f64,
    /// p of "the effect lies outside ± margin", the larger one of two one-sided tests by ranks and by means, whatever that
    /// correlation is.
    pub p_equivalent: f64,
    /// The same if runs do not resemble their neighbours.
    pub p_equivalent_plain: f64,
    /// The margin of `p_equivalent`, and the smallest effect that is called improved or regressed.
    pub margin: f64,
    /// Whether the margin is too wide for "equivalent" to mean anything.
    pub too_wide: bool,
    /// Runs, or blocks: the smaller side's number.
    pub n: usize,
    /// Values of either side that lie far from the others, and by more than the margin ([`strays()`]); of blocks, those of
    /// both in the first place.
    pub strays: [usize; 2],
    /// Runs of either side, or blocks, that have no value.
    pub missing: [usize; 2],
    /// Runs a side, or blocks, that would probably show the margin is kept, if nothing changed: ((t₀.₉₇₅ + t₀.₉₅) s /
    /// margin)² π / 3 with Student's t for the values that s rests on, twice that where both sides are drawn separately; at
    /// least 6 and more than there are. `None` where it cannot be estimated.
    pub need: Option<usize>,
}

/// Fewest blocks of which a signed rank test can reach 5 %, and so the fewest worth measuring.
const FEWEST: usize = 6;

/// Two sets of runs: the shift of Hodges & Lehmann with the interval of the rank test, stretched by what the correlation of
/// neighbouring runs makes of it in their order ([`super::Luck::stretch`]).
///
/// p of a change is that of Mann & Whitney. Where the order is not safe against correlated neighbours, it is that of
/// Student's t if this is larger, with the variance and the degrees of freedom that the worst correlation gives it
/// ([`Order::worst`]). p of lying outside ± `margin` is made from two one-sided tests of either kind (Schuirmann 1987; with
/// ranks: Wellek 2010, section 6.2), and is the larger in every order: ranks do not feel how far a bad run or a second state
/// lies off, means do. `order` is that of exactly these runs; `None` where they are too few for one.
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
    let (effect, [interval95]) = shifts(before, after, [0.95])?;
    let widen = |end: f64| effect + stretch.factor * (end - effect);
    let interval95 = interval95.map(|i| Interval { low: widen(i.low), high: widen(i.high), level: i.level });
    let moved = |by: f64| after.iter().map(|v| v + by).collect::<Vec<f64>>();
    let above = mann_whitney(&moved(margin), before)?.p.greater;
    let below = mann_whitney(&moved(-margin), before)?.p.less;
    let p_plain = mann_whitney(after, before)?.p.two_sided;
    let outside = above.max(below);
    let means = order.map(|order| AtWorst::new(before, after, order));
    let (p_change, p_equivalent, p_equivalent_plain) = match (order.map(Order::worst), &means) {
        (Some(worst), Some(means)) => (
            // For a change nothing is worse than independent runs where the worst correlation is none.
            if worst.r <= 0.0 { p_plain } else { p_plain.max(means.worst.p_change()) },
            outside.max(means.p_equivalent(margin)),
            outside.max(means.independent.p_equivalent(margin)),
        ),
        _ => (1.0, 1.0, 1.0),
    };
    let n = before.len().min(after.len());
    let pooled = match (variance(before), variance(after)) {
        (Some(a), Some(b)) => Some(f64::midpoint(a, b)),
        (one, other) => one.or(other),
    };
    Ok(Comparison {
        effect,
        interval95,
        mean95: means.filter(|_| interval95.is_some()).map(|means| means.interval),
        at_least: stretch.at_least,
        p_change,
        p_plain,
        p_equivalent,
        p_equivalent_plain,
        margin,
        too_wide,
        n,
        strays: strays([before, after], margin).map(|side| side.len()),
        missing: [0, 0],
        need: pooled.map(|variance| {
            let seen = (before.len() + after.len()).saturating_sub(2);
            need(2.0 * variance, order.map_or_else(|| both_edges(seen), Order::both_edges), margin, n)
        }),
    })
}

/// Differences of blocks: signed rank, the pseudomedian of Hodges & Lehmann, and two one-sided tests against ± `margin`, by
/// signed ranks and by Student's t.
///
/// # Errors
/// No difference, one that is not finite, or a margin that is not positive.
pub fn paired(differences: &[f64], margin: Margin) -> Result<Comparison, Refusal> {
    let Margin { value: margin, too_wide, .. } = margin;
    demand(differences, 1)?;
    demand_margin(margin)?;
    let (effect, [interval95]) = paired_shifts(differences, [0.95])?;
    let moved = |by: f64| differences.iter().map(|d| d + by).collect::<Vec<f64>>();
    let n = differences.len();
    let p = signed_rank(differences)?.p.two_sided;
    let means = Means::of_differences(differences);
    let by_ranks = signed_rank(&moved(margin))?.p.greater.max(signed_rank(&moved(-margin))?.p.less);
    let outside = by_ranks.max(means.p_equivalent(margin));
    Ok(Comparison {
        effect,
        interval95,
        mean95: interval95.map(|_| means.interval()),
        at_least: false,
        p_change: p,
        p_plain: p,
        p_equivalent: outside,
        p_equivalent_plain: outside,
        margin,
        too_wide,
        n,
        strays: [strays([differences], margin)[0].len(), 0],
        missing: [0, 0],
        need: variance(differences).map(|variance| need(variance, both_edges(n - 1), margin, n)),
    })
}

fn demand_margin(margin: f64) -> Result<(), Refusal> {
    if margin > 0.0 && margin.is_finite() {
        Ok(())
    } else {
        Err(Refusal::Parameter("an equivalence margin is a positive number"))
    }
}

/// Two one-sided tests of level 2.5 % succeed in 90 % of cases if margin = (z₀.₉₇₅ + z₀.₉₅) s / √n and nothing changed (Chow,
/// Shao & Wang 2008, section 3.1.3); t, the sum of both quantiles, stands for z because s is an estimate. Ranks need π / 3 as many
/// (Hodges & Lehmann 1956).
fn need(variance: f64, t: f64, margin: f64, n: usize) -> usize {
    // Beyond a million runs the answer is "never"; the cap keeps the conversion exact.
    let estimate = (t * t * variance / (margin * margin) * std::f64::consts::FRAC_PI_3).ceil().min(1e6);
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
