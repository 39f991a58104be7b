//! Shifts: Hodges–Lehmann estimates with exact intervals. An interval holds exactly the shifts that the rank test of the same name does
//! not reject.

mod sums;

use crate::{
    rank::{Null, normal_cdf, normal_quantile},
    refusal::{Refusal, demand, demand_probability},
};
use sums::Sums;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    pub estimate: f64,
    /// `None` where even the widest interval of the data has a lower level than requested (fewer than 6 differences, or 4 against 4
    /// values, for 95 %).
    pub interval: Option<Interval>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
    /// Achieved level: exact for values without ties up to 50 a side, a lower bound with ties, and by normal approximation beyond.
    pub level: f64,
}

impl Interval {
    pub fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Shift from `before` to `after`: the median of all differences after − before (Hodges & Lehmann 1963), with the
/// interval [D₍ₖ₎, D₍ₘₙ₊₁₋ₖ₎] of the ordered differences, where k is the α/2 quantile of the Mann–Whitney distribution
/// (Moses 1953; Bauer 1972).
///
/// Takes O(m n) time up to 20,000 differences and O((m + n) log² (m + n)) beyond (Johnson & Mizoguchi 1978).
///
/// # Errors
/// An empty sample, a value that is not finite, or a level outside (0, 1).
pub fn shift(before: &[f64], after: &[f64], level: f64) -> Result<Shift, Refusal> {
    demand(before, 1)?;
    demand(after, 1)?;
    let (m, n) = (before.len(), after.len());
    let null = Null::mann_whitney(m, n);
    estimate(&Sums::differences(before, after), 1.0, null, (m * n * (m + n + 1)) as f64 / 12.0, level)
}

/// Shift of paired differences from zero: the median of the Walsh averages (dᵢ + dⱼ) / 2, i ≤ j (Hodges & Lehmann 1963),
/// with the interval [W₍ₖ₎, W₍ₘ₊₁₋ₖ₎] of the m = n (n + 1) / 2 ordered averages, where k is the α/2 quantile of the
/// signed rank distribution (Tukey 1949; Bauer 1972).
///
/// # Errors
/// No difference, one that is not finite, or a level outside (0, 1).
pub fn paired_shift(differences: &[f64], level: f64) -> Result<Shift, Refusal> {
    demand(differences, 1)?;
    let n = differences.len();
    let variance = (n * (n + 1) / 2 * (2 * n + 1)) as f64 / 12.0;
    estimate(&Sums::pairs(differences), 0.5, Null::signed_rank(n), variance, level)
}

/// `variance` is that of the rank statistic, for the normal approximation without its exact distribution.
fn estimate(sums: &Sums, factor: f64, null: Option<Null>, variance: f64, level: f64) -> Result<Shift, Refusal> {
    demand_probability(level, "a confidence level lies between 0 and 1")?;
    let (count, tail) = (sums.count(), (1.0 - level) / 2.0);
    // Order statistics that bound the interval, counted from 1 at both ends.
    let (from_end, outside) = match null {
        Some(null) => {
            let k = null.quantile(tail);
            (k, if k == 0 { 1.0 } else { null.at_most(k - 1) })
        }
        None => {
            // Largest k with Φ((k − ½ − count / 2) / s) ≤ tail.
            let (middle, s) = (count as f64 / 2.0, variance.sqrt());
            let k = (middle + 0.5 + normal_quantile(tail) * s).floor().max(0.0);
            (k as usize, normal_cdf((k - 0.5 - middle) / s))
        }
    };
    let mut places = vec![(count - 1) / 2, count / 2];
    places.extend((from_end > 0).then(|| [from_end - 1, count - from_end]).into_iter().flatten());
    let found = sums.select(&places);
    let interval = match found[2..] {
        [low, high] => Some(Interval { low: factor * low, high: factor * high, level: 1.0 - 2.0 * outside }),
        _ => None,
    };
    Ok(Shift { estimate: factor * (found[0] + (found[1] - found[0]) / 2.0), interval })
}
