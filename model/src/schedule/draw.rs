//! The seeded choice of rounds.
//!
//! ChaCha's output is fixed by its definition, and the shuffle is implemented here: a schedule does not change with a library.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

/// `wanted` different numbers below `count`, in random order: a partial Fisher-Yates shuffle.
pub(super) fn distinct(count: usize, wanted: usize, seed: u64) -> Vec<usize> {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    let mut numbers: Vec<usize> = (0..count).collect();
    let wanted = wanted.min(count);
    for place in 0..wanted {
        let other = place + below(&mut rng, (count - place) as u64) as usize;
        numbers.swap(place, other);
    }
    numbers.truncate(wanted);
    numbers
}

/// A uniform number below `bound`: values beyond the last whole multiple are rejected.
fn below(rng: &mut ChaCha8Rng, bound: u64) -> u64 {
    let last = u64::MAX - u64::MAX % bound;
    loop {
        let value = rng.next_u64();
        if value < last {
            return value % bound;
        }
    }
}
