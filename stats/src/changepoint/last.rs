//! The last night: too far off to be believed, too short to be an alert.

use super::{Repeat, slow::FEWEST};
use crate::{
    robust::{MAD_TO_SIGMA, median_in_place},
    student::t_quantile,
};

/// Nights before that it is compared with.
const HISTORY: usize = 40;
/// Standard deviations below their median.
const CUT: f64 = 6.0;
/// The same in least effects.
const EFFECTS: f64 = 5.0;
/// Chance of a normal night beyond the cut where the nights are few.
const CHANCE: f64 = 1e-4;
/// Weight, in nights, of the expectation that the deviation is that of the least effect.
const PRIOR: f64 = 2.0;

/// Judges the last night by the level before it: beyond 6 standard deviations (1.4826 · MAD of up to 40 nights) and five
/// times the `least` effect below the median it should be repeated. With fewer than 20 nights the deviation is that of all
/// of them and of two imagined ones that deviate by `least`, and the cut is Student's, at one night in 10,000; with fewer
/// than two nothing is said.
pub fn last_night(before: &[f64], value: f64, least: f64) -> Option<Repeat> {
    if before.len() < 2 {
        return None;
    }
    let mut nights = before[before.len().saturating_sub(HISTORY)..].to_vec();
    let n = nights.len() as f64;
    let squares = {
        let mean = nights.iter().sum::<f64>() / n;
        nights.iter().map(|v| (v - mean).powi(2)).sum::<f64>()
    };
    let centre = median_in_place(&mut nights);
    let (scale, cut) = if before.len() < FEWEST {
        let freedom = n - 1.0 + PRIOR;
        let variance = (squares + PRIOR * least * least) / freedom;
        ((variance * (1.0 + 1.0 / n)).sqrt(), t_quantile(CHANCE, freedom))
    } else {
        nights.iter_mut().for_each(|v| *v = (*v - centre).abs());
        ((MAD_TO_SIGMA * median_in_place(&mut nights)).max(least / 4.0), CUT)
    };
    let drop = value - centre;
    let z = drop / scale;
    (z < -cut && drop < -EFFECTS * least).then_some(Repeat { z, drop, urgent: true })
}
