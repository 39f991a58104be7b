//! The noise floor: how large an effect looks when nothing has changed.

use super::means::{steady, variance};
use crate::refusal::{Refusal, demand};

/// 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Smallest margin without asking: ln 1.01, which is 1 %.
const LEAST: f64 = 0.009_950_330_853_168_083;

/// Widest margin that noise may make, ln 1.25: −20 % to +25 %. Within more than that "equivalent" would say nothing.
pub const WIDEST: f64 = 0.223_143_551_314_209_76;

/// An equivalence margin, which is also the smallest effect that is called improved or regressed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin {
    /// As a difference of logarithms: effects from −`value` to +`value` count as none, which in percent is further up
    /// than down.
    pub value: f64,
    /// Whether less than the noise floor was asked for, and the floor stands in its place.
    pub raised: bool,
    /// Whether the noise, and not who asked, makes it wider than [`WIDEST`].
    pub too_wide: bool,
}

/// The margin: what is asked for, but not less than the noise floor; 1 % or twice the floor if nothing is asked for.
pub fn margin(asked: Option<f64>, floor: f64) -> Margin {
    match asked {
        Some(asked) => {
            let raised = asked < floor;
            Margin { value: asked.max(floor), raised, too_wide: raised && floor > WIDEST }
        }
        None => {
            let value = LEAST.max(2.0 * floor);
            Margin { value, raised: false, too_wide: value > WIDEST }
        }
    }
}

/// Noise floor of two sets of runs, or of the differences of blocks: 95 % of effects of nothing are smaller, if runs do not
/// resemble their neighbours. Each side has a noise of its own.
///
/// # Errors
/// Fewer than two values a side, or one that is not finite.
pub fn noise_floor(sides: &[&[f64]]) -> Result<f64, Refusal> {
    sides.iter().try_for_each(|side| demand(side, 2))?;
    let squares: f64 = sides.iter().map(|side| variance(&steady(side)) / side.len() as f64).sum();
    Ok(Z * squares.sqrt())
}
