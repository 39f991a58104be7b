use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::refusal::{Refusal, demand};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variant {
    /// Before, or the first variant.
    A,
    /// After, or the second variant.
    B,
}

/// Each block is A B B A or B A A B at random by `seed`. That makes the sign of each block's difference random if nothing changed,
/// whatever the noise, which is all that the signed rank test needs.
pub fn block_orders(blocks: usize, seed: u64) -> Vec<[Variant; 4]> {
    use Variant::{A, B};
    let mut coin = ChaCha8Rng::seed_from_u64(seed);
    (0..blocks).map(|_| if coin.random::<bool>() { [A, B, B, A] } else { [B, A, A, B] }).collect()
}

/// Mean of the B values minus mean of the A values, all logarithms. In the order A B B A or B A A B a linear drift cancels exactly.
///
/// # Errors
/// No value on a side, or one that is not finite.
pub fn block_difference(a: &[f64], b: &[f64]) -> Result<f64, Refusal> {
    demand(a, 1)?;
    demand(b, 1)?;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    Ok(mean(b) - mean(a))
}
