use super::{
    PValues,
    null::{EXACT_TIED, Null},
    ties::{doubled_midranks, tie_sum},
};
use crate::refusal::{Refusal, demand};

/// Mann & Whitney 1947, the rank sum test of Wilcoxon 1945; "less" and "greater" refer to the first sample. Exact without ties up to 50
/// values a side; exact with ties (all choices of the midranks that occurred, equally likely) up to 50 values together. Beyond, the normal
/// approximation z = (U − m n / 2 ∓ ½) / s with s² = m n / 12 · (N + 1 − Σ (t³ − t) / (N (N − 1))), t the sizes of groups of equal values;
/// all p are 1 where all values are equal.
///
/// # Errors
/// An empty sample, or a value that is not finite.
pub fn mann_whitney(x: &[f64], y: &[f64]) -> Result<PValues, Refusal> {
    demand(x, 1)?;
    demand(y, 1)?;
    let (m, n) = (x.len(), y.len());
    let (ranks, groups) = doubled_midranks(&x.iter().chain(y).copied().collect::<Vec<f64>>());
    let doubled_sum: usize = ranks[..m].iter().sum();
    let base = m * (m + 1);
    if groups.len() == m + n
        && let Some(null) = Null::mann_whitney(m, n)
    {
        return Ok(null.p_values((doubled_sum - base) / 2));
    }
    if m + n <= EXACT_TIED {
        return Ok(Null::subset_sums_of(&ranks, m).p_values(doubled_sum));
    }
    if groups.len() == 1 {
        return Ok(PValues::new(1.0, 1.0));
    }
    let (mn, all) = ((m * n) as f64, (m + n) as f64);
    let variance = mn / 12.0 * (all + 1.0 - tie_sum(&groups) / (all * (all - 1.0)));
    Ok(PValues::normal((doubled_sum - base) as f64 / 2.0 - mn / 2.0, variance.sqrt()))
}
