//! Clipping single wild values of a series to what their neighbours allow.

use crate::{
    refusal::{Refusal, demand},
    robust::{MAD_TO_SIGMA, mad, median_in_place},
};

/// Values on each side of the one that is judged: a running median of seven.
const REACH: usize = 3;
/// Standard deviations a value may lie from the running median.
const LIMIT: f64 = 3.0;

/// The series with every value clipped to the running median of 7 ± 3 s, where s = 1.4826 · MAD(differences of
/// neighbours) / √2, the noise from one value to the next that a step cannot inflate (von Neumann 1941 with the MAD in
/// place of the mean square). At the ends the running median has fewer values.
///
/// # Errors
/// Fewer than three values, or a value that is not finite.
pub fn winsorise(series: &[f64]) -> Result<Vec<f64>, Refusal> {
    demand(series, 3)?;
    let differences: Vec<f64> = series.windows(2).map(|w| w[1] - w[0]).collect();
    let room = LIMIT * MAD_TO_SIGMA * mad(&differences)? / std::f64::consts::SQRT_2;
    let mut window = Vec::with_capacity(2 * REACH + 1);
    let clipped = series.iter().enumerate().map(|(i, &value)| {
        window.clear();
        window.extend_from_slice(&series[i.saturating_sub(REACH)..(i + REACH + 1).min(series.len())]);
        let centre = median_in_place(&mut window);
        value.clamp(centre - room, centre + room)
    });
    Ok(clipped.collect())
}
