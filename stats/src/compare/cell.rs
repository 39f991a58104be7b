//! One cell of a comparison: one metric of one link at one size.

use super::{
    Margin, Order,
    means::{Means, mean, steady, variance},
    strays::strays,
};
use crate::{
    rank::{mann_whitney, signed_rank},
    refusal::{Refusal, demand},
    shift::{Interval, Shift, paired_shift},
    student::t_quantile,
};

/// What two sets of runs say about one cell. Effects are differences of logarithms, after minus before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Difference of Huber's estimates of both sides; of blocks, the Hodges–Lehmann estimate.
    pub effect: f64,
    /// Interval of at least 95 %, for any noise of either side and any correlation of neighbouring runs up to [`super::NEIGHBOURS`].
    /// `None` for too few runs.
    pub interval95: Option<Interval>,
    /// The same of the difference of means, which single bad runs widen.
    pub mean95: Option<Interval>,
    /// Two-sided p of "no change", with the same guarantee as the interval.
    pub p_change: f64,
    /// The same if runs do not resemble their neighbours.
    pub p_plain: f64,
    /// p of "the effect lies outside ± margin", the larger one of two one-sided tests of the effect and of the means.
    pub p_equivalent: f64,
    /// The same if runs do not resemble their neighbours.
    pub p_equivalent_plain: f64,
    /// The margin of `p_equivalent`, and the smallest effect that is called improved or regressed.
    pub margin: f64,
    /// Whether the margin is too wide for "equivalent" to mean anything.
    pub too_wide: bool,
    /// Runs, or blocks: the smaller side's number.
    pub n: usize,
    /// Values of either side that are far from the others, and by more than the margin ([`strays()`]); for blocks, those of both in the
    /// first place.
    pub strays: [usize; 2],
    /// Runs of either side, or blocks, that have no value.
    pub missing: [usize; 2],
    /// Runs per side, or blocks, that would probably show the margin is kept if nothing changed: ((t₀.₉₇₅ + t₀.₉₅) s / margin)², with
    /// Student's t for the values behind s, twice that for separately sampled sides; at least 6 and more than there are. `None` where it
    /// cannot be estimated.
    pub need: Option<usize>,
}

/// Share of false discoveries in [`verdicts`](super::verdicts), and level of a single [`verdict`](super::verdict()).
pub const LEVEL: f64 = 0.05;
/// Fewest blocks with which a signed rank test can reach 5 %.
const FEWEST: usize = 6;
/// Fewest runs of a side that has a variance of its own.
pub(super) const FEWEST_RUNS: usize = 2;
/// Ratio to the least p of ranks up to which Welch's p is as good: with few runs, noise that is not normal makes it larger where both
/// sides do not overlap.
const NEAR_LEAST: f64 = 1.5;
/// Lower bound of p relative to that of ranks, chosen so that noise of two states is named in at most 5 % of comparisons.
const OF_RANKS: f64 = 0.25;

/// Compares two sets of runs with separate noise: the difference of Huber's estimates (1964) with Welch's interval and test (1947), for
/// the correlation of neighbouring runs that does most harm in this order ([`Order`]).
///
/// p is at least that of a rank test of two sides that do not overlap, and a quarter of that of ranks, so that noise of two states, which
/// makes a side look quiet, names nothing. p of lying outside ± `margin` is that of two one-sided tests (Schuirmann 1987), the larger one
/// of Huber's estimates and of means, which reflect the distance of a bad run or a second state. `order` is that of exactly these runs;
/// `None` where they are too few.
///
/// # Errors
/// An empty side, a value that is not finite, or a margin that is not positive.
pub fn unpaired(before: &[f64], after: &[f64], order: Option<&Order>, margin: Margin) -> Result<Comparison, Refusal> {
    let Margin { value: margin, too_wide, .. } = margin;
    demand_margin(margin)?;
    demand(before, 1)?;
    demand(after, 1)?;
    let (x, y) = (steady(before), steady(after));
    let n = before.len().min(after.len());
    let least = least_p(before.len(), after.len());
    let found = order.filter(|_| n >= FEWEST_RUNS && least <= LEVEL).map(|order| {
        let of = |x: &[f64], y: &[f64]| Means::new(x, y, order);
        (of(&x, &y), of(before, after))
    });
    let ranks = mann_whitney(after, before)?.two_sided * OF_RANKS;
    let p_change = |of: &Means| Some(of.p_change()).filter(|p| *p > NEAR_LEAST * least).unwrap_or(least).max(ranks);
    let p_equivalent =
        |one: &Means, two: &Means| one.p_equivalent(margin).max(two.p_equivalent(margin)).max(least / 2.0);
    let of = found.as_ref();
    Ok(Comparison {
        effect: mean(&y) - mean(&x),
        interval95: of.map(|(steady, _)| steady.interval()),
        mean95: of.map(|(_, means)| means.interval()),
        p_change: of.map_or(1.0, |(steady, _)| p_change(steady)),
        p_plain: of.map_or(1.0, |(steady, _)| p_change(&steady.independent())),
        p_equivalent: of.map_or(1.0, |(steady, means)| p_equivalent(steady, means)),
        p_equivalent_plain: of.map_or(1.0, |(steady, means)| p_equivalent(&steady.independent(), &means.independent())),
        margin,
        too_wide,
        n,
        strays: strays([before, after], margin).map(|side| side.len()),
        missing: [0, 0],
        need: (before.len() + after.len() > 2)
            .then(|| need(variance(&x) + variance(&y), before.len() + after.len() - 2, margin, n)),
    })
}

/// Two-sided p of a rank test of `m` and `n` values that do not overlap: 2 / (m + n over m).
fn least_p(m: usize, n: usize) -> f64 {
    2.0 * (1..=m.min(n)).map(|i| i as f64 / (m.max(n) + i) as f64).product::<f64>()
}

/// Compares blocks by their differences: signed rank, the pseudomedian of Hodges & Lehmann, and two one-sided tests against ± `margin`,
/// by signed ranks and by Student's t.
///
/// # Errors
/// No difference, one that is not finite, or a margin that is not positive.
pub fn paired(differences: &[f64], margin: Margin) -> Result<Comparison, Refusal> {
    let Margin { value: margin, too_wide, .. } = margin;
    demand(differences, 1)?;
    demand_margin(margin)?;
    let Shift { estimate: effect, interval: interval95 } = paired_shift(differences, 0.95)?;
    let moved = |by: f64| differences.iter().map(|d| d + by).collect::<Vec<f64>>();
    let n = differences.len();
    let p = signed_rank(differences)?.two_sided;
    let means = Means::of_differences(differences);
    let by_ranks = signed_rank(&moved(margin))?.greater.max(signed_rank(&moved(-margin))?.less);
    let outside = by_ranks.max(means.p_equivalent(margin));
    Ok(Comparison {
        effect,
        interval95,
        mean95: interval95.map(|_| means.interval()),
        p_change: p,
        p_plain: p,
        p_equivalent: outside,
        p_equivalent_plain: outside,
        margin,
        too_wide,
        n,
        strays: [strays([differences], margin)[0].len(), 0],
        missing: [0, 0],
        // Ranks need π / 3 as many (Hodges & Lehmann 1956).
        need: (n > 1).then(|| need(variance(differences) * std::f64::consts::FRAC_PI_3, n - 1, margin, n)),
    })
}

fn demand_margin(margin: f64) -> Result<(), Refusal> {
    if margin > 0.0 && margin.is_finite() {
        Ok(())
    } else {
        Err(Refusal::Parameter("an equivalence margin is a positive number"))
    }
}

/// Two one-sided tests of level 2.5 % succeed in 90 % of cases if margin = (z₀.₉₇₅ + z₀.₉₅) s / √n and nothing changed (Chow, Shao & Wang
/// 2008, section 3.1.3); t replaces z because s is an estimate.
fn need(variance: f64, freedom: usize, margin: f64, n: usize) -> usize {
    let t: f64 = [0.025, 0.05].map(|tail| t_quantile(tail, freedom as f64)).iter().sum();
    // Beyond a million runs the answer is "never"; the cap keeps the conversion exact.
    let estimate = (t * t * variance / (margin * margin)).ceil().min(1e6);
    (estimate as usize).max(FEWEST).max(n + 1)
}
