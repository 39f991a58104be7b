//! The fast alert: one night, confirmed by repeating it.

use crate::{
    refusal::{Refusal, demand},
    robust::{MAD_TO_SIGMA, median_in_place},
};

/// Nights before that are compared with.
const HISTORY: usize = 60;
/// Standard deviations from their median.
const CUT: f64 = 3.0;
/// The same for the median of the repeats, which varies less.
const REPEAT_CUT: f64 = 2.5;
/// One of so many nights before may have gone as far as the repeats.
const EXTREMES: usize = HISTORY;
/// Runs of the same night that confirm.
pub(super) const RERUNS: usize = 3;

/// What the fast rule says of a night.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fast {
    /// Within the usual.
    Quiet,
    /// Beyond it: the measurement should be repeated three times the same night.
    Repeat {
        /// Standard deviations from the median of the nights before, by their median absolute deviation.
        z: f64,
    },
    /// Beyond it, and the repeats too, on the same side.
    Alert {
        /// The median of the repeats, in the same unit.
        z: f64,
    },
    /// Beyond it, but the repeats were not.
    Dismissed {
        /// The median of the repeats, in the same unit.
        z: f64,
    },
}

/// Judges a night's first run by the median and 1.4826 · MAD of up to 60 nights before: beyond 3 it must be repeated, and
/// alerts if the median of three repeats or more is beyond 2.5 on the same side, and beyond all of these nights, but for one of 60. `before`
/// holds single runs, as `first` is one: medians of several runs vary less. Where noise arises within runs, a 5 sigma drop is found the first
/// night and false alarms are all but absent; where it arises between nights, repeats share the night's luck and confirm
/// noise, so this must not be used there ([`variance_split`](super::variance_split)). A deviation below `floor` counts as
/// `floor`.
///
/// # Errors
/// Fewer than 20 nights before, or a value that is not finite.
pub fn fast(before: &[f64], first: f64, repeats: &[f64], floor: f64) -> Result<Fast, Refusal> {
    demand(before, super::slow::FEWEST)?;
    demand(&[first], 1)?;
    demand(repeats, 0)?;
    let mut recent = before[before.len().saturating_sub(HISTORY)..].to_vec();
    let centre = median_in_place(&mut recent);
    recent.iter_mut().for_each(|v| *v = (*v - centre).abs());
    let scale = (MAD_TO_SIGMA * median_in_place(&mut recent)).max(floor);
    let away = |value: f64| if value == centre { 0.0 } else { (value - centre) / scale };
    let z = away(first);
    if z.abs() <= CUT {
        return Ok(Fast::Quiet);
    }
    if repeats.len() < RERUNS {
        return Ok(Fast::Repeat { z });
    }
    let middle = median_in_place(&mut repeats.to_vec());
    let again = away(middle);
    // Where noise is skewed or heavy-tailed, nights themselves say how far they go.
    let farther = |value: &&f64| if z > 0.0 { **value >= middle } else { **value <= middle };
    let usual = before[before.len().saturating_sub(HISTORY)..].iter().filter(farther).count()
        > before.len().min(HISTORY) / EXTREMES;
    let confirmed = again.abs() > REPEAT_CUT && (again > 0.0) == (z > 0.0) && !usual;
    Ok(if confirmed { Fast::Alert { z: again } } else { Fast::Dismissed { z: again } })
}
