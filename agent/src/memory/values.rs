//! The data of a collective: small whole numbers, exactly representable in every type and in every partial result, so
//! that the outcome does not depend on the order in which ranks are added up.
//!
//! Rank r gives element i the number [`value`]. A byte of another element, of another rank, of another seed or of an
//! earlier operation differs with high probability. Bounds: sums stay within what is exact in the type
//! ([`crate::gpu::table::largest_sum`]), products are powers of two up to 64.

use railgauge_wire::terms::Reduction;

/// A stretch of a buffer and whose data it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Where it begins in the buffer, in elements.
    pub at: u64,
    pub count: u64,
    /// Number of its first element in the data of a rank.
    pub offset: u64,
    /// First rank whose data it holds.
    pub first: u32,
    pub many: u32,
}

/// Largest number a rank gives to a sum of at most `most`.
pub(crate) fn cap(most: u32, ranks: u32) -> u32 {
    most / ranks.clamp(1, most)
}

/// What rank `rank` of `ranks` gives for element `i` where sums go up to `most`: the same as `value` of kernels.ptx.
pub(crate) fn value(key: u64, i: u64, (reduction, most): (Option<Reduction>, u32), ranks: u32, rank: u32) -> u32 {
    let hash = crate::memory::pattern::word(key, i);
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
    use super::*;

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
