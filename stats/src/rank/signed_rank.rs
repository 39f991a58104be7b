use super::{
    Method, PValues,
    normal::normal_cdf,
    null::{EXACT, Null},
    ties::{doubled_midranks, tie_sum},
};
use crate::refusal::{Refusal, demand};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// Sum of the ranks of positive differences, midranks for equal sizes.
    pub v: f64,
    pub used: usize,
    pub p: PValues,
}

/// Wilcoxon 1945. Exact up to 50 differences, with equal sizes too (all signs of the midranks that occurred, equally
/// likely); beyond, [`signed_rank_asymptotic`]. All p are 1 where all differences are zero.
///
/// # Errors
/// No difference, or one that is not finite.
pub fn signed_rank(differences: &[f64]) -> Result<SignedRank, Refusal> {
    let ranked = Ranked::new(differences)?;
    let p = if ranked.ranks.len() > EXACT {
        ranked.normal()
    } else {
        let null = Null::subset_sums(&ranked.ranks);
        let method = if ranked.groups.len() == ranked.ranks.len() { Method::Exact } else { Method::ExactTied };
        PValues::new(null.at_most(ranked.doubled_sum), null.at_least(ranked.doubled_sum), method)
    };
    Ok(ranked.result(p))
}

/// The normal approximation at every size, with continuity correction and
/// s² = n (n + 1) (2 n + 1) / 24 − Σ (t³ − t) / 48.
///
/// # Errors
/// No difference, or one that is not finite.
pub fn signed_rank_asymptotic(differences: &[f64]) -> Result<SignedRank, Refusal> {
    let ranked = Ranked::new(differences)?;
    Ok(ranked.result(ranked.normal()))
}

struct Ranked {
    ranks: Vec<usize>,
    groups: Vec<usize>,
    doubled_sum: usize,
}

impl Ranked {
    fn new(differences: &[f64]) -> Result<Self, Refusal> {
        demand(differences, 1)?;
        let used: Vec<f64> = differences.iter().copied().filter(|&d| d != 0.0).collect();
        let sizes: Vec<f64> = used.iter().map(|d| d.abs()).collect();
        let (ranks, groups) = doubled_midranks(&sizes);
        let doubled_sum = ranks.iter().zip(&used).filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
        Ok(Self { ranks, groups, doubled_sum })
    }

    fn normal(&self) -> PValues {
        let n = self.ranks.len() as f64;
        if self.ranks.is_empty() {
            return PValues::new(1.0, 1.0, Method::Normal);
        }
        let s = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - tie_sum(&self.groups) / 48.0).sqrt();
        let away = self.doubled_sum as f64 / 2.0 - n * (n + 1.0) / 4.0;
        PValues::new(normal_cdf((away + 0.5) / s), normal_cdf(-(away - 0.5) / s), Method::Normal)
    }

    fn result(&self, p: PValues) -> SignedRank {
        SignedRank { v: self.doubled_sum as f64 / 2.0, used: self.ranks.len(), p }
    }
}
