//! Noise floor: the apparent size of an effect when nothing has changed.

use super::means::{steady, variance};
use crate::refusal::{Refusal, demand};

/// 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Default minimum margin: ln 1.01, which is 1 %.
const LEAST: f64 = 0.009_950_330_853_168_083;

/// Widest margin from noise, ln 1.25: −20 % to +25 %. Beyond that "equivalent" would mean nothing.
pub const WIDEST: f64 = 0.223_143_551_314_209_76;

/// Also the smallest effect that is called improved or regressed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin {
    /// Effects from −`value` to +`value`, as differences of logarithms, count as none; in percent that is further up than down.
    pub value: f64,
    pub raised: bool,
    /// Whether noise, not the request, makes it wider than [`WIDEST`].
    pub too_wide: bool,
}

/// The request, but at least the noise floor; by default 1 % or twice the floor.
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

/// For two sets of runs, or the differences of blocks: 95 % of effects without a change are smaller, for uncorrelated runs. Each side has
/// separate noise.
///
/// # Errors
/// Fewer than two values a side, or one that is not finite.
pub fn noise_floor(sides: &[&[f64]]) -> Result<f64, Refusal> {
    sides.iter().try_for_each(|side| demand(side, 2))?;
    let squares: f64 = sides.iter().map(|side| variance(&steady(side)) / side.len() as f64).sum();
    Ok(Z * squares.sqrt())
}
