//! The bytes of a verify pass, and the data of collectives.
//!
//! Word `i` (8 bytes, little endian) of queue pair `qp`'s buffer is a function of its position, the run's seed, the iteration and the
//! queue pair. So a misplaced byte, a byte of an earlier pass and a byte of another queue pair's buffer all differ. The mixing is the
//! finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): a bijection of 64
//! bits, so that two positions of one buffer never have the same word.
//!
//! Data of a collective: small whole numbers, exact in every type and partial result, so that the order of additions does not matter.
//! Rank r gives element i the number [`value`]. A byte of another element, rank, seed or an earlier operation differs with high
//! probability. Bounds: sums stay within what is exact in the type ([`crate::gpu::table::largest_sum`]), products are powers of two up to
//! 64.

use railgauge_wire::{Bytes, Checked, Pattern, Reduction};

use crate::fault;

/// `i` counts words.
#[inline]
pub(crate) fn word(key: u64, i: u64) -> u64 {
    mix(key.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Distinguishes the patterns of buffers. Mixed step by step, so that no two combinations of the three collide.
pub(crate) fn key(pattern: &Pattern, qp: u32) -> u64 {
    mix(mix(mix(pattern.seed).wrapping_add(pattern.iteration)).wrapping_add(u64::from(qp)))
}

/// `bytes` is the first `pattern.size` bytes of queue pair `qp`'s buffer (from 0). For the sending side; also injects a test's fault (see
/// [`fault`]).
pub fn fill(bytes: &mut [u8], pattern: &Pattern, qp: u32) {
    write(bytes, key(pattern, qp), 0);
    fault::flip_bit(bytes);
}

/// Overwrites the same bytes with the complement of the pattern: a leftover byte cannot pass for a received one.
pub fn poison(bytes: &mut [u8], pattern: &Pattern, qp: u32) {
    write(bytes, key(pattern, qp), u64::MAX);
}

fn write(bytes: &mut [u8], key: u64, flip: u64) {
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for (i, place) in (0..).zip(words.iter_mut()) {
        *place = (word(key, i) ^ flip).to_le_bytes();
    }
    let last = (word(key, words.len() as u64) ^ flip).to_le_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
}

pub fn check(bytes: &[u8], pattern: &Pattern, qp: u32) -> Checked {
    let key = key(pattern, qp);
    let (words, rest) = bytes.as_chunks::<8>();
    let mut checked = Checked { verified: Bytes::of(bytes.len()), ..Checked::default() };
    let mut compare = |at: u64, got: &[u8], wanted: [u8; 8]| {
        for (offset, _) in (at..).zip(got.iter().zip(wanted)).filter(|(_, (got, wanted))| **got != *wanted) {
            checked.wrong += Bytes(1);
            checked.first_wrong.get_or_insert(offset);
        }
    };
    for (i, got) in (0..).zip(words) {
        let wanted = word(key, i).to_le_bytes();
        if *got != wanted {
            compare(i * 8, got, wanted);
        }
    }
    compare(words.len() as u64 * 8, rest, word(key, words.len() as u64).to_le_bytes());
    checked
}

/// A stretch of a buffer, and its ranks' data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Start in the buffer, in elements.
    pub at: u64,
    pub count: u64,
    /// Number of its first element in a rank's data.
    pub offset: u64,
    pub first: u32,
    pub many: u32,
}

/// Largest number a rank gives to a sum of at most `most`.
pub(crate) fn cap(most: u32, ranks: u32) -> u32 {
    most / ranks.clamp(1, most)
}

/// Rank `rank`'s value for element `i` with sums up to `most`: as `value` of kernels.ptx.
pub(crate) fn value(key: u64, i: u64, (reduction, most): (Option<Reduction>, u32), ranks: u32, rank: u32) -> u32 {
    let hash = word(key, i);
    let (low, high) = ((hash & 0x7fff_ffff) as u32, (hash >> 32) as u32);
    let turn = low.wrapping_add(rank) % ranks;
    match reduction {
        Some(Reduction::Sum) if turn < most => high.wrapping_add(rank * 7) % (cap(most, ranks) + 1),
        Some(Reduction::Sum) => 0,
        Some(Reduction::Prod) => 1 + u32::from(turn < 6),
        _ => high.wrapping_add(rank * 37) & 127,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATTERN: Pattern = Pattern { size: Bytes::ZERO, seed: 7, iteration: 1 };

    proptest! {
        #[test]
        fn what_is_filled_is_right(size in 0..3_000usize, seed: u64, iteration: u64, qp: u32) {
            let pattern = Pattern { size: Bytes::of(size), seed, iteration };
            let mut bytes = vec![0; size];
            fill(&mut bytes, &pattern, qp);
            let wanted = Checked { verified: Bytes::of(size), wrong: Bytes::ZERO, first_wrong: None };
            prop_assert_eq!(check(&bytes, &pattern, qp), wanted);
        }

        #[test]
        fn every_poisoned_byte_is_wrong(size in 0..3_000usize, seed: u64) {
            let pattern = Pattern { size: Bytes::of(size), seed, iteration: 0 };
            let mut bytes = vec![0; size];
            poison(&mut bytes, &pattern, 3);
            prop_assert_eq!(check(&bytes, &pattern, 3).wrong, Bytes::of(size));
        }

        #[test]
        fn one_flipped_bit_is_found_at_its_place(size in 1..3_000usize, at: prop::sample::Index, bit in 0..8u32) {
            let mut bytes = vec![0; size];
            fill(&mut bytes, &PATTERN, 0);
            let at = at.index(size);
            bytes[at] ^= 1 << bit;
            let wanted = Checked { verified: Bytes::of(size), wrong: Bytes(1), first_wrong: Some(at as u64) };
            prop_assert_eq!(check(&bytes, &PATTERN, 0), wanted);
        }

        #[test]
        fn swapped_words_are_found(words in 2..300usize, a: prop::sample::Index, b: prop::sample::Index) {
            let (a, b) = (a.index(words), b.index(words));
            prop_assume!(a != b);
            let mut bytes = vec![0; words * 8];
            fill(&mut bytes, &PATTERN, 0);
            let copy = bytes.clone();
            bytes[a * 8..][..8].copy_from_slice(&copy[b * 8..][..8]);
            prop_assert!(check(&bytes, &PATTERN, 0).wrong > Bytes::ZERO);
        }
    }

    #[test]
    fn other_seeds_iterations_and_queue_pairs_are_wrong() {
        let mut bytes = vec![0; 4096];
        fill(&mut bytes, &PATTERN, 2);
        // Of unrelated random bytes one in 256 agrees by chance.
        for (pattern, qp) in [
            (Pattern { seed: 8, ..PATTERN }, 2),
            (Pattern { iteration: 2, ..PATTERN }, 2),
            (PATTERN, 1),
            (Pattern { seed: 8, iteration: 0, ..PATTERN }, 2),
        ] {
            assert!(check(&bytes, &pattern, qp).wrong > Bytes(4_000), "{pattern:?} {qp}");
        }
    }

    #[test]
    fn reductions_stay_in_the_table() {
        for (ranks, most) in [1, 2, 3, 8, 100, 126, 127, 1000].into_iter().flat_map(|ranks| [(ranks, 126), (ranks, 8)])
        {
            for i in 0..200 {
                let all = |reduction| (0..ranks).map(move |rank| value(5, i, (reduction, most), ranks, rank));
                assert!(all(Some(Reduction::Sum)).sum::<u32>() <= most, "{ranks}");
                assert!(all(Some(Reduction::Prod)).product::<u32>() < 128, "{ranks}");
                assert!(all(None).all(|value| value < 128));
            }
        }
    }

    #[test]
    fn a_rank_left_out_or_taken_twice_shows() {
        let sum = |ranks: &[u32]| -> Vec<u32> {
            (0..64).map(|i| ranks.iter().map(|rank| value(9, i, (Some(Reduction::Sum), 126), 4, *rank)).sum()).collect()
        };
        let right = sum(&[0, 1, 2, 3]);
        for wrong in [[0, 1, 2, 2], [0, 0, 2, 3], [1, 1, 2, 3]] {
            assert_ne!(sum(&wrong), right);
        }
        assert_ne!(sum(&[0, 1, 2]), right);
    }
}
