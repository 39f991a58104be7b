//! Many cells looked at: p values adjusted so that a stated share of the discoveries may be false.

use crate::refusal::Refusal;

/// Benjamini & Hochberg 1995: adjusted p of the i-th smallest of m is min over j ≥ i of m p₍ⱼ₎ / j, at most 1. Rejecting
/// where the adjusted p is at most q keeps the expected share of false discoveries at or below q when the cells are
/// independent or positively dependent (neighbouring sizes of one link are).
///
/// The result is in the order given. No p values give no adjusted ones.
///
/// # Errors
/// A p value outside [0, 1] or not a number.
pub fn benjamini_hochberg(p: &[f64]) -> Result<Vec<f64>, Refusal> {
    if p.iter().any(|p| !(0.0..=1.0).contains(p)) {
        return Err(Refusal::Parameter("a p value lies between 0 and 1"));
    }
    let m = p.len() as f64;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_unstable_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (rank, &at) in order.iter().enumerate().rev() {
        // A factor of at least 1, so that rounding makes no p smaller.
        least = least.min(p[at] * (m / (rank + 1) as f64));
        adjusted[at] = least;
    }
    Ok(adjusted)
}
