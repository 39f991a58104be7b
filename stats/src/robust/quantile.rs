use crate::refusal::{Refusal, demand};

/// Factor from the median absolute deviation to the standard deviation of normal values: 1 / Φ⁻¹(3/4) (Hampel 1974).
pub const MAD_TO_SIGMA: f64 = 1.482_602_218_505_602;

/// Median: the middle value, or the mean of the two middle values.
///
/// # Errors
/// No value, or a value that is not finite.
pub fn median(values: &[f64]) -> Result<f64, Refusal> {
    demand(values, 1)?;
    Ok(median_in_place(&mut values.to_vec()))
}

/// [`median`] without a copy: reorders `values`, which must be finite. In O(n).
///
/// # Panics
/// On an empty slice.
pub fn median_in_place(values: &mut [f64]) -> f64 {
    let half = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    if !even {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    lower + (upper - lower) / 2.0
}

/// Linear interpolation between order statistics: with h = (n − 1) p, x₍⌊h⌋₎ + (h − ⌊h⌋)(x₍⌊h⌋₊₁₎ − x₍⌊h⌋₎), counted from 0. This is type
/// 7 of Hyndman & Fan 1996, the default of R and NumPy.
///
/// # Errors
/// No value, a value that is not finite, or `p` outside [0, 1].
pub fn quantile(values: &[f64], p: f64) -> Result<f64, Refusal> {
    demand(values, 1)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_sorted(&sorted, p)
}

/// [`quantile`] of sorted values, smallest first.
///
/// # Errors
/// No value, or `p` outside [0, 1].
pub fn quantile_sorted(sorted: &[f64], p: f64) -> Result<f64, Refusal> {
    if sorted.is_empty() {
        return Err(Refusal::TooFew { need: 1, got: 0 });
    }
    if !(0.0..=1.0).contains(&p) {
        return Err(Refusal::Parameter("a quantile lies between 0 and 1"));
    }
    let place = (sorted.len() - 1) as f64 * p;
    let low = place.floor() as usize;
    let high = (low + 1).min(sorted.len() - 1);
    Ok(sorted[low] + (place - low as f64) * (sorted[high] - sorted[low]))
}

/// Median absolute deviation from the median, in the values' own unit and not scaled (Hampel 1974). Multiply with
/// [`MAD_TO_SIGMA`] for a standard deviation.
///
/// # Errors
/// No value, or a value that is not finite.
pub fn mad(values: &[f64]) -> Result<f64, Refusal> {
    let centre = median(values)?;
    let mut away: Vec<f64> = values.iter().map(|v| (v - centre).abs()).collect();
    Ok(median_in_place(&mut away))
}
