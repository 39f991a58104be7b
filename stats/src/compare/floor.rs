//! The noise floor: how large an effect looks when nothing has changed.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    refusal::{Refusal, demand},
    robust::{median_in_place, quantile},
    shift::{pseudomedian, shifts},
};

/// Cells of a group whose noise floor is looked at; the group's is their median.
pub const SAMPLED: usize = 9;
/// Draws for each of them.
pub const DRAWS: usize = 200;

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

/// Noise floor of interleaved blocks: the 95 % quantile of the absolute pseudomedian when the signs of the centred
/// differences are thrown anew, `draws` times, or in every way if there are fewer ways than that.
///
/// # Errors
/// Fewer than two differences, one that is not finite, or no draws.
pub fn noise_floor_of_differences(differences: &[f64], draws: usize, seed: u64) -> Result<f64, Refusal> {
    demand(differences, 2)?;
    let centre = pseudomedian(differences)?;
    // Centring takes away one part in n of the variance; this gives it back.
    let n = differences.len() as f64;
    let sizes: Vec<f64> = differences.iter().map(|d| (d - centre) * (n / (n - 1.0)).sqrt()).collect();
    let every_way = sizes.len() < 32 && 1_usize << sizes.len() <= draws;
    let mut coin = ChaCha8Rng::seed_from_u64(seed);
    let draw = |draw: usize| {
        let signs: u64 = if every_way { draw as u64 } else { 0 };
        let mut flipped = sizes.clone();
        for (i, d) in flipped.iter_mut().enumerate() {
            let minus = if every_way { signs >> i & 1 == 1 } else { coin.random() };
            if minus {
                *d = -*d;
            }
        }
        pseudomedian(&flipped).map(f64::abs)
    };
    let ways = if every_way { 1 << sizes.len() } else { draws };
    quantile(&(0..ways).map(draw).collect::<Result<Vec<f64>, Refusal>>()?, 0.95)
}

/// Noise floor of two sets of runs: the 95 % quantile of the absolute shift when the labels of the values, each less its
/// own side's median, are dealt anew, `draws` times. Which side is which makes no difference.
///
/// # Errors
/// Fewer than two values a side, one that is not finite, or no draws.
pub fn noise_floor_of_samples(before: &[f64], after: &[f64], draws: usize, seed: u64) -> Result<f64, Refusal> {
    demand(before, 2)?;
    demand(after, 2)?;
    let mut together = Vec::with_capacity(before.len() + after.len());
    for side in [before, after] {
        let centre = median_in_place(&mut side.to_vec());
        together.extend(side.iter().map(|v| v - centre));
    }
    // Sorted, and dealt to the smaller side first: exchanged sides are dealt the same.
    together.sort_unstable_by(f64::total_cmp);
    let smaller = before.len().min(after.len());
    let mut dealer = ChaCha8Rng::seed_from_u64(seed);
    let mut deal = || {
        for i in (1..together.len()).rev() {
            together.swap(i, dealer.random_range(0..=i));
        }
        let (a, b) = together.split_at(smaller);
        shifts(a, b, []).map(|(shift, [])| shift.abs())
    };
    quantile(&(0..draws).map(|_| deal()).collect::<Result<Vec<f64>, Refusal>>()?, 0.95)
}
