//! The numbers 0 to 127 as elements of every type: inputs and results of reductions (see [`crate::memory::pattern`]). The kernels look up
//! elements of small whole numbers here, so that they are independent of types.

use std::sync::Arc;

use half::{bf16, f16};
use railgauge_wire::{Datatype, Failure, Reduction};

use super::{Buffer, Device, Stream};
use crate::memory::pattern::{Part, cap};

pub(crate) const NUMBERS: u8 = 128;

pub(crate) const SCALAR: u8 = 2;

/// Largest sum that is exact in a type, with all smaller sums: 2 to the power of the mantissa's bits including the hidden one, or the
/// maximum of `i8`.
pub(crate) fn largest_sum(datatype: Datatype, reduction: Option<Reduction>) -> u32 {
    let sum = match datatype {
        Datatype::F8e4m3 => 16,
        Datatype::F8e5m2 => 8,
        _ => 126,
    };
    if reduction == Some(Reduction::Mulsum) { sum / u32::from(SCALAR) } else { sum }
}

pub(crate) fn given(datatype: Datatype, reduction: Option<Reduction>) -> impl Iterator<Item = u64> {
    let adds = !matches!(reduction, None | Some(Reduction::Min | Reduction::Max));
    (0..NUMBERS).map(move |number| match datatype {
        // Not every number to 127 fits 8 bits, but positive floating-point numbers are ordered as their bits: data that is only moved and
        // compared uses the bits, up to the largest finite ones.
        Datatype::F8e4m3 if !adds => u64::from(number.min(0x7e)),
        Datatype::F8e5m2 if !adds => u64::from(number.min(0x7b)),
        _ => bits(datatype, f64::from(number)),
    })
}

/// Results of `reduction` over `ranks` ranks by number.
pub(crate) fn reduced(datatype: Datatype, reduction: Option<Reduction>, ranks: u32) -> Vec<u64> {
    let scaled = |factor: f64| (0..NUMBERS).map(|number| bits(datatype, f64::from(number) * factor)).collect();
    match reduction {
        // Integers are summed and then divided, with truncation.
        Some(Reduction::Avg) => (0..NUMBERS).map(|n| bits(datatype, f64::from(n) / f64::from(ranks))).collect(),
        Some(Reduction::Mulsum) => scaled(f64::from(SCALAR)),
        _ => given(datatype, reduction).collect(),
    }
}

/// A nonnegative number as the bits of a type, in the low bytes, truncated.
pub(crate) fn bits(datatype: Datatype, number: f64) -> u64 {
    match datatype {
        Datatype::F32 => u64::from((number as f32).to_bits()),
        Datatype::F64 => number.to_bits(),
        Datatype::F16 => u64::from(f16::from_f64(number).to_bits()),
        Datatype::Bf16 => u64::from(bf16::from_f64(number).to_bits()),
        Datatype::F8e4m3 => u64::from(float8(number, 3, 7)),
        Datatype::F8e5m2 => u64::from(float8(number, 2, 15)),
        _ => number as u64,
    }
}

/// OCP FP8 with these bits of mantissa and this exponent bias.
fn float8(number: f64, mantissa: i32, bias: i32) -> u8 {
    // Subnormal numbers have the exponent of the smallest normal ones.
    let exponent = (number.log2().floor() as i32).max(1 - bias);
    let steps = (number / f64::from(exponent - mantissa).exp2()) as i32;
    let hidden = 1 << mantissa;
    let exponent = if steps < hidden { 0 } else { exponent + bias };
    // At most 448 or 57344, both far above a table's largest number.
    ((exponent << mantissa) | (steps & (hidden - 1))) as u8
}

pub struct Values {
    table: Buffer,
    datatype: Datatype,
    reduction: Option<Reduction>,
    pub(super) ranks: u32,
    pub(super) key: u64,
}

impl Values {
    /// For one reduction, or for operations that only move data.
    pub fn new(
        stream: &Stream,
        datatype: Datatype,
        reduction: Option<Reduction>,
        ranks: u32,
        seed: u64,
    ) -> Result<Self, Failure> {
        let device: &Arc<Device> = stream.device();
        let ranks = ranks.max(1);
        let given = given(datatype, reduction);
        let elements = given.chain(reduced(datatype, reduction, ranks));
        let bytes: Vec<u8> = elements.flat_map(u64::to_le_bytes).collect();
        let table = Buffer::new(device, bytes.len() as u64)?;
        stream.to_device(&table, 0, &bytes)?;
        Ok(Self { table, datatype, reduction, ranks, key: seed })
    }

    /// Address of the table: inputs of one rank, or results.
    pub(super) fn table(&self, part: &Part) -> u64 {
        let reduced = if part.many > 1 { u64::from(NUMBERS) * 8 } else { 0 };
        self.table.address() + reduced
    }

    pub(super) fn shift(&self) -> u32 {
        self.datatype.bytes().0.ilog2()
    }

    pub(super) fn cap(&self) -> u32 {
        cap(self.most(), self.ranks)
    }

    /// Ranks with a nonzero part of a sum: more would exceed the range.
    pub(super) fn most(&self) -> u32 {
        largest_sum(self.datatype, self.reduction)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_exact_in_every_wide_type() {
        for number in 0..NUMBERS {
            let wanted = f64::from(number);
            assert_eq!(f64::from_bits(bits(Datatype::F64, wanted)), wanted);
            assert_eq!(f64::from(f32::from_bits(bits(Datatype::F32, wanted) as u32)), wanted);
            assert_eq!(f16::from_bits(bits(Datatype::F16, wanted) as u16).to_f64(), wanted);
            assert_eq!(bf16::from_bits(bits(Datatype::Bf16, wanted) as u16).to_f64(), wanted);
            assert_eq!(bits(Datatype::I8, wanted) as i8, number.cast_signed());
        }
    }

    fn value(bits: u64, mantissa: i32, bias: i32) -> f64 {
        let (exponent, steps) = ((bits >> mantissa) as i32, (bits & ((1 << mantissa) - 1)) as f64);
        let whole = if exponent > 0 { f64::from(1 << mantissa) } else { 0.0 };
        (whole + steps) * f64::from(exponent.max(1) - bias - mantissa).exp2()
    }

    #[test]
    fn sums_means_and_products_are_exact_in_eight_bits() {
        for (datatype, mantissa, bias) in [(Datatype::F8e4m3, 3, 7), (Datatype::F8e5m2, 2, 15)] {
            let exact = |number: f64| assert_eq!(value(bits(datatype, number), mantissa, bias), number, "{datatype}");
            for sum in 0..=largest_sum(datatype, Some(Reduction::Sum)) {
                for ranks in [1.0, 2.0, 4.0, 8.0, 64.0] {
                    exact(f64::from(sum) / ranks);
                }
            }
            for sum in 0..=largest_sum(datatype, Some(Reduction::Mulsum)) {
                exact(f64::from(sum) * f64::from(SCALAR));
            }
            (0..7).for_each(|power| exact(f64::from(1 << power)));
        }
        // Examples of the OCP's specification: largest, one, smallest normal and smallest number at all.
        assert_eq!([448.0, 1.0, 0.015_625, 0.001_953_125].map(|n| bits(Datatype::F8e4m3, n)), [0x7e, 0x38, 8, 1]);
        assert_eq!([57344.0, 1.0].map(|n| bits(Datatype::F8e5m2, n)), [0x7b, 0x3c]);
    }

    #[test]
    fn what_is_moved_keeps_its_order() {
        for datatype in Datatype::ALL {
            assert!(given(*datatype, None).is_sorted(), "{datatype}");
            assert_eq!(reduced(*datatype, Some(Reduction::Max), 4), given(*datatype, None).collect::<Vec<_>>());
        }
        assert_eq!(reduced(Datatype::I32, Some(Reduction::Avg), 4)[7], 1);
        assert_eq!(reduced(Datatype::U8, Some(Reduction::Mulsum), 4)[7], 14);
    }
}
