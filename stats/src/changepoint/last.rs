//! The last night: too far off to trust, too short for an alert.

use std::sync::OnceLock;

use super::Repeat;
use crate::{
    robust::{MAD_TO_SIGMA, median_in_place},
    student::t_quantile,
};

const HISTORY: usize = 40;
/// Fewest earlier nights for a median deviation.
const FEWEST: usize = 20;
/// Standard deviations below their median.
const CUT: f64 = 6.0;
pub(super) const EFFECTS: f64 = 5.0;
/// Chance of a normal night beyond the cut for few nights.
const CHANCE: f64 = 1e-4;
/// Weight, in nights, of the prior that the deviation is that of the least effect.
const PRIOR: f64 = 2.0;

/// Distance below a level from which a night is far off.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depth {
    pub centre: f64,
    pub scale: f64,
    pub most: f64,
}

/// `None` with fewer than two nights.
pub(super) fn depth(before: &[f64], least: f64) -> Option<Depth> {
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
        ((variance * (1.0 + 1.0 / n)).sqrt(), few(before.len()))
    } else {
        nights.iter_mut().for_each(|v| *v = (*v - centre).abs());
        ((MAD_TO_SIGMA * median_in_place(&mut nights)).max(least / 4.0), CUT)
    };
    Some(Depth { centre, scale, most: (cut * scale).max(EFFECTS * least) })
}

fn few(nights: usize) -> f64 {
    static CUTS: OnceLock<Vec<f64>> = OnceLock::new();
    let cuts = CUTS.get_or_init(|| (0..FEWEST).map(|n| t_quantile(CHANCE, n.max(1) as f64 - 1.0 + PRIOR)).collect());
    cuts[nights]
}

/// Judges the last night by the level before it: beyond 6 standard deviations (1.4826 · MAD of up to 40 nights) and five times the
/// `least` effect below the median it should be repeated. With fewer than 20 nights the deviation is that of all of them and of two prior
/// ones that deviate by `least`, and the cut is Student's, at one night in 10,000; `None` with fewer than two.
pub fn last_night(before: &[f64], value: f64, least: f64) -> Option<Repeat> {
    let Depth { centre, scale, most } = depth(before, least)?;
    let drop = value - centre;
    (drop < -most).then_some(Repeat { z: drop / scale, drop })
}
