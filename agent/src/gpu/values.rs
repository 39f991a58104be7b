//! The data of a collective: small whole numbers, exactly representable in every type and in every partial result, so
//! that the outcome does not depend on the order in which ranks are added up.
//!
//! Rank r gives element i the number [`value`]. A byte of another element, of another rank, of another seed or of an
//! earlier operation differs with high probability. Bounds: sums stay within 127 (an i8 holds it, bfloat16 is exact up
//! to 256), products are powers of two up to 64.

use std::sync::Arc;

use half::{bf16, f16};
use railgauge_wire::{
    failure::Failure,
    terms::{Datatype, Reduction},
};

use super::{buffer::Buffer, device::Device, stream::Stream};

/// Ranks that give something other than nothing to one sum: more would leave the range.
const SUMMANDS: u32 = 126;

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
        let bytes: Vec<u8> = (0..128).flat_map(|number| bits(datatype, number).to_le_bytes()).collect();
        let table = Buffer::new(device, bytes.len() as u64)?;
        stream.to_device(&table, 0, &bytes)?;
        stream.wait()?;
        Ok(Self { table, datatype, reduction, ranks: ranks.max(1), key: seed })
    }

    pub(super) fn table(&self) -> u64 {
        self.table.address()
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

    pub(super) fn cap(&self) -> u32 {
        cap(self.ranks)
    }

    pub(super) fn mode(&self) -> u32 {
        match self.reduction {
            Some(Reduction::Sum) => 0,
            Some(Reduction::Prod) => 1,
            Some(Reduction::Min) => 2,
            Some(Reduction::Max) | None => 3,
        }
    }
}

/// Largest number a rank gives to a sum.
fn cap(ranks: u32) -> u32 {
    SUMMANDS / ranks.clamp(1, SUMMANDS)
}

/// What rank `rank` of `ranks` gives for element `i`: the same as `value` of kernels.ptx.
#[cfg(test)]
fn value(key: u64, i: u64, reduction: Option<Reduction>, ranks: u32, rank: u32) -> u32 {
    let hash = crate::memory::pattern::word(key, i);
    let (low, high) = ((hash & 0x7fff_ffff) as u32, (hash >> 32) as u32);
    let turn = low.wrapping_add(rank) % ranks;
    match reduction {
        Some(Reduction::Sum) if turn < SUMMANDS => high.wrapping_add(rank * 7) % (cap(ranks) + 1),
        Some(Reduction::Sum) => 0,
        Some(Reduction::Prod) => 1 + u32::from(turn < 6),
        _ => high.wrapping_add(rank * 37) & 127,
    }
}

/// A whole number from 0 to 127 as the bits of a type, in the low bytes.
fn bits(datatype: Datatype, number: u8) -> u64 {
    match datatype {
        Datatype::F32 => u64::from(f32::from(number).to_bits()),
        Datatype::F64 => f64::from(number).to_bits(),
        Datatype::F16 => u64::from(f16::from_f32(f32::from(number)).to_bits()),
        Datatype::Bf16 => u64::from(bf16::from_f32(f32::from(number)).to_bits()),
        _ => u64::from(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_exact_in_every_type() {
        for number in 0..128_u8 {
            let wanted = f64::from(number);
            assert_eq!(f64::from_bits(bits(Datatype::F64, number)), wanted);
            assert_eq!(f64::from(f32::from_bits(bits(Datatype::F32, number) as u32)), wanted);
            assert_eq!(f16::from_bits(bits(Datatype::F16, number) as u16).to_f64(), wanted);
            assert_eq!(bf16::from_bits(bits(Datatype::Bf16, number) as u16).to_f64(), wanted);
            assert_eq!(bits(Datatype::I8, number) as i8, number.cast_signed());
        }
    }

    #[test]
    fn reductions_stay_in_the_table() {
        for ranks in [1, 2, 3, 8, 100, 126, 127, 1000] {
            for i in 0..200 {
                let all = |reduction| (0..ranks).map(move |rank| value(5, i, reduction, ranks, rank));
                assert!(all(Some(Reduction::Sum)).sum::<u32>() < 128, "{ranks}");
                assert!(all(Some(Reduction::Prod)).product::<u32>() < 128, "{ranks}");
                assert!(all(None).all(|value| value < 128));
            }
        }
    }

    #[test]
    fn a_rank_left_out_or_taken_twice_shows() {
        let sum = |ranks: &[u32]| -> Vec<u32> {
            (0..64).map(|i| ranks.iter().map(|rank| value(9, i, Some(Reduction::Sum), 4, *rank)).sum()).collect()
        };
        let right = sum(&[0, 1, 2, 3]);
        for wrong in [[0, 1, 2, 2], [0, 0, 2, 3], [1, 1, 2, 3]] {
            assert_ne!(sum(&wrong), right);
        }
        assert_ne!(sum(&[0, 1, 2]), right);
    }
}
