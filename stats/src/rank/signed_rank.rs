use super::{
    PValues,
    null::{EXACT, Null},
    ties::{doubled_midranks, tie_sum},
};
use crate::refusal::{Refusal, demand};

/// Wilcoxon 1945. Exact up to 50 differences, with equal sizes too (all signs of the midranks that occurred, equally likely); beyond, the
/// normal approximation with continuity correction and s² = n (n + 1) (2 n + 1) / 24 − Σ (t³ − t) / 48. All p are 1 where all differences
/// are zero.
///
/// # Errors
/// No difference, or one that is not finite.
pub fn signed_rank(differences: &[f64]) -> Result<PValues, Refusal> {
    demand(differences, 1)?;
    let used: Vec<f64> = differences.iter().copied().filter(|&d| d != 0.0).collect();
    let (ranks, groups) = doubled_midranks(&used.iter().map(|d| d.abs()).collect::<Vec<f64>>());
    let doubled_sum: usize = ranks.iter().zip(&used).filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
    if ranks.len() <= EXACT {
        return Ok(Null::subset_sums(&ranks).p_values(doubled_sum));
    }
    let n = ranks.len() as f64;
    let s = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - tie_sum(&groups) / 48.0).sqrt();
    Ok(PValues::normal(doubled_sum as f64 / 2.0 - n * (n + 1.0) / 4.0, s))
}
