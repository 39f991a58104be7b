//! The data of a collective: small whole numbers, exactly representable in every type and in every partial result, so
//! that the outcome does not depend on the order in which ranks are added up.
//!
//! Rank r gives element i the number [`value`]. A byte of another element, of another rank, of another seed or of an
//! earlier operation differs with high probability. Bounds: sums stay within what is exact in the type
//! ([`table::largest_sum`]), products are powers of two up to 64.

use std::sync::Arc;

use railgauge_wire::{
    failure::Failure,
    terms::{Datatype, Reduction},
};

use super::{buffer::Buffer, device::Device, stream::Stream, table};

/// What all ranks' data is made of.
pub struct Values {
    table: Buffer,
    datatype: Datatype,
    reduction: Option<Reduction>,
    ranks: u32,
    key: u64,
}

/// A stretch of a buffer and whose data it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Where it begins in the buffer, in elements.
    pub at: u64,
    /// Elements.
    pub count: u64,
    /// Number of its first element in the data of a rank.
    pub offset: u64,
    /// First rank whose data it holds.
    pub first: u32,
    /// Ranks whose data is reduced in it.
    pub many: u32,
}

impl Part {
    /// End of the part in the buffer, in bytes.
    pub(super) fn end(&self, values: &Values) -> u64 {
        self.at.saturating_add(self.count) << values.shift()
    }
}

impl Values {
    /// Data of `ranks` ranks for one reduction, or for operations that only move it.
    ///
    /// # Errors
    /// No memory is left on the device.
    pub fn new(
        stream: &Stream,
        datatype: Datatype,
        reduction: Option<Reduction>,
        ranks: u32,
        seed: u64,
    ) -> Result<Self, Failure> {
        let device: &Arc<Device> = stream.device();
        let ranks = ranks.max(1);
        let given = table::given(datatype, reduction);
        let elements = given.chain(table::reduced(datatype, reduction, ranks));
        let bytes: Vec<u8> = elements.flat_map(u64::to_le_bytes).collect();
        let table = Buffer::new(device, bytes.len() as u64)?;
        stream.to_device(&table, 0, &bytes)?;
        stream.wait()?;
        Ok(Self { table, datatype, reduction, ranks, key: seed })
    }

    /// Where the elements of a part's numbers stand: as one rank gives them, or reduced.
    pub(super) fn table(&self, part: &Part) -> u64 {
        let reduced = if part.many > 1 { u64::from(table::NUMBERS) * 8 } else { 0 };
        self.table.address() + reduced
    }

    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// Base-2 logarithm of the width of an element.
    pub(super) fn shift(&self) -> u32 {
        self.datatype.bytes().ilog2()
    }

    pub(super) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Largest number a rank gives to a sum.
    pub(super) fn cap(&self) -> u32 {
        cap(self.most(), self.ranks)
    }

    /// Ranks that give something other than nothing to one sum: more would leave the range.
    pub(super) fn most(&self) -> u32 {
        table::largest_sum(self.datatype, self.reduction)
    }

    pub(super) fn mode(&self) -> u32 {
        match self.reduction {
            Some(Reduction::Sum | Reduction::Avg | Reduction::Mulsum) => 0,
            Some(Reduction::Prod) => 1,
            Some(Reduction::Min) => 2,
            Some(Reduction::Max) | None => 3,
        }
    }
}

fn cap(most: u32, ranks: u32) -> u32 {
    most / ranks.clamp(1, most)
}

/// What rank `rank` of `ranks` gives for element `i` where sums go up to `most`: the same as `value` of kernels.ptx.
#[cfg(test)]
fn value(key: u64, i: u64, (reduction, most): (Option<Reduction>, u32), ranks: u32, rank: u32) -> u32 {
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
