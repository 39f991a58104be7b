use super::{
    Method, PValues,
    normal::normal_cdf,
    null::{EXACT_TIED, Null},
    ties::{doubled_midranks, tie_sum},
};
use crate::refusal::{Refusal, demand};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// Pairs in which the first sample's value is greater, equal ones counted half.
    pub u: f64,
    /// "Less" and "greater" refer to the first sample.
    pub p: PValues,
    /// Cliff's δ = 2 U / (m n) − 1 (Cliff 1993): −1 where every value of the first sample is smaller, 1 where greater.
    pub delta: f64,
}

/// Mann & Whitney 1947, the rank sum test of Wilcoxon 1945. Exact without ties up to 50 values a side; exact given the
/// ties (all choices of the midranks that occurred, equally likely) up to 50 values together; beyond, the normal
/// approximation of [`mann_whitney_asymptotic`].
///
/// # Errors
/// An empty sample, or a value that is not finite.
pub fn mann_whitney(x: &[f64], y: &[f64]) -> Result<MannWhitney, Refusal> {
    let ranked = Ranked::new(x, y)?;
    let (m, n) = (x.len(), y.len());
    let base = m * (m + 1);
    let p = if ranked.groups.len() == m + n {
        Null::mann_whitney(m, n).map(|null| {
            let u = (ranked.doubled_sum - base) / 2;
            PValues::new(null.at_most(u), null.at_least(u), Method::Exact)
        })
    } else if m + n <= EXACT_TIED {
        let null = Null::subset_sums_of(&ranked.ranks, m);
        let sum = ranked.doubled_sum;
        Some(PValues::new(null.at_most(sum), null.at_least(sum), Method::ExactTied))
    } else {
        None
    };
    Ok(ranked.result(p.unwrap_or_else(|| ranked.normal())))
}

/// The normal approximation at every size: z = (U − m n / 2 ∓ ½) / s with
/// s² = m n / 12 · (N + 1 − Σ (t³ − t) / (N (N − 1))), t the sizes of groups of equal values. All p are 1 where all
/// values are equal.
///
/// # Errors
/// An empty sample, or a value that is not finite.
pub fn mann_whitney_asymptotic(x: &[f64], y: &[f64]) -> Result<MannWhitney, Refusal> {
    let ranked = Ranked::new(x, y)?;
    Ok(ranked.result(ranked.normal()))
}

struct Ranked {
    m: usize,
    n: usize,
    ranks: Vec<usize>,
    groups: Vec<usize>,
    /// Twice the sum of the first sample's midranks.
    doubled_sum: usize,
}

impl Ranked {
    fn new(x: &[f64], y: &[f64]) -> Result<Self, Refusal> {
        demand(x, 1)?;
        demand(y, 1)?;
        let together: Vec<f64> = x.iter().chain(y).copied().collect();
        let (ranks, groups) = doubled_midranks(&together);
        let doubled_sum = ranks[..x.len()].iter().sum();
        Ok(Self { m: x.len(), n: y.len(), ranks, groups, doubled_sum })
    }

    fn u(&self) -> f64 {
        (self.doubled_sum - self.m * (self.m + 1)) as f64 / 2.0
    }

    fn normal(&self) -> PValues {
        let (mn, all) = ((self.m * self.n) as f64, (self.m + self.n) as f64);
        let variance = mn / 12.0 * (all + 1.0 - tie_sum(&self.groups) / (all * (all - 1.0)));
        if self.groups.len() == 1 {
            return PValues::new(1.0, 1.0, Method::Normal);
        }
        let (away, s) = (self.u() - mn / 2.0, variance.sqrt());
        PValues::new(normal_cdf((away + 0.5) / s), normal_cdf(-(away - 0.5) / s), Method::Normal)
    }

    fn result(&self, p: PValues) -> MannWhitney {
        let u = self.u();
        MannWhitney { u, p, delta: 2.0 * u / (self.m * self.n) as f64 - 1.0 }
    }
}
