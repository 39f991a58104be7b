//! Reductions over bytes in host memory. Loops without branches and aliasing let the compiler vectorise. Half precision is reduced in
//! single precision: exact for one step, rounded once when stored.

use half::{bf16, f16, slice::HalfFloatSliceExt};
use railgauge_wire::{Datatype, Reduction};

/// binary16 elements converted at a time.
const BLOCK: usize = 128;

#[derive(Clone, Copy)]
pub struct Kernel {
    /// Reduces the second into the first.
    pub into: fn(&mut [u8], &[u8]),
    pub of: fn(&mut [u8], &[u8], &[u8]),
}

/// The kernel of a type whose elements are combined one by one.
macro_rules! single {
    ($type:ty, $combine:expr) => {{
        #[inline(always)]
        fn one(a: [u8; size_of::<$type>()], b: [u8; size_of::<$type>()]) -> [u8; size_of::<$type>()] {
            let combine: fn($type, $type) -> $type = $combine;
            combine(<$type>::from_ne_bytes(a), <$type>::from_ne_bytes(b)).to_ne_bytes()
        }
        Kernel { into: |out, incoming| into(out, incoming, one), of: |out, own, incoming| of(out, own, incoming, one) }
    }};
}

/// The kernel of binary16, combined as `$type`.
macro_rules! blocks {
    ($type:ty, $combine:expr) => {
        Kernel {
            into: |out, incoming| into_f16(out, incoming, $combine),
            of: |out, own, incoming| of_f16(out, own, incoming, $combine),
        }
    };
}

/// `None` for reductions that only NCCL has.
pub fn kernel(datatype: Datatype, reduction: Reduction) -> Option<Kernel> {
    macro_rules! reduced {
        ($kernel:ident, $type:ty, $sum:expr, $product:expr) => {
            match reduction {
                Reduction::Sum => $kernel!($type, $sum),
                Reduction::Prod => $kernel!($type, $product),
                // `min` and `max` of floats handle NaN, which takes branches.
                Reduction::Min => $kernel!($type, |a: $type, b: $type| if b < a { b } else { a }),
                Reduction::Max => $kernel!($type, |a: $type, b: $type| if b > a { b } else { a }),
                Reduction::Avg | Reduction::Mulsum => return None,
            }
        };
    }
    Some(match datatype {
        Datatype::F32 => reduced!(single, f32, |a, b| a + b, |a, b| a * b),
        Datatype::F64 => reduced!(single, f64, |a, b| a + b, |a, b| a * b),
        Datatype::F16 => reduced!(blocks, f32, |a, b| a + b, |a, b| a * b),
        Datatype::Bf16 => {
            reduced!(single, bf16, |a, b| narrow(widen(a) + widen(b)), |a, b| narrow(widen(a) * widen(b)))
        }
        Datatype::I8 => reduced!(single, i8, i8::wrapping_add, i8::wrapping_mul),
        Datatype::U8 => reduced!(single, u8, u8::wrapping_add, u8::wrapping_mul),
        Datatype::I32 => reduced!(single, i32, i32::wrapping_add, i32::wrapping_mul),
        Datatype::U32 => reduced!(single, u32, u32::wrapping_add, u32::wrapping_mul),
        Datatype::I64 => reduced!(single, i64, i64::wrapping_add, i64::wrapping_mul),
        Datatype::U64 => reduced!(single, u64, u64::wrapping_add, u64::wrapping_mul),
        Datatype::F8e4m3 | Datatype::F8e5m2 => return None,
    })
}

/// bfloat16 is the upper half of binary32.
#[inline(always)]
fn widen(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// Rounds to nearest, ties to even, as [`bf16::from_f32`] does, without its branch.
#[inline(always)]
fn narrow(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    bf16::from_bits(if value.is_nan() { quiet } else { rounded } as u16)
}

#[inline(always)]
fn into<const W: usize>(out: &mut [u8], incoming: &[u8], one: impl Fn([u8; W], [u8; W]) -> [u8; W]) {
    for (out, incoming) in out.as_chunks_mut::<W>().0.iter_mut().zip(incoming.as_chunks::<W>().0) {
        *out = one(*out, *incoming);
    }
}

#[inline(always)]
fn of<const W: usize>(out: &mut [u8], own: &[u8], incoming: &[u8], one: impl Fn([u8; W], [u8; W]) -> [u8; W]) {
    let given = own.as_chunks::<W>().0.iter().zip(incoming.as_chunks::<W>().0);
    for (out, (own, incoming)) in out.as_chunks_mut::<W>().0.iter_mut().zip(given) {
        *out = one(*own, *incoming);
    }
}

fn into_f16(out: &mut [u8], incoming: &[u8], combine: impl Fn(f32, f32) -> f32 + Copy) {
    for (out, incoming) in out.chunks_mut(2 * BLOCK).zip(incoming.chunks(2 * BLOCK)) {
        let made = block(out, incoming, combine);
        store(out, &made);
    }
}

fn of_f16(out: &mut [u8], own: &[u8], incoming: &[u8], combine: impl Fn(f32, f32) -> f32 + Copy) {
    let given = own.chunks(2 * BLOCK).zip(incoming.chunks(2 * BLOCK));
    for (out, (own, incoming)) in out.chunks_mut(2 * BLOCK).zip(given) {
        store(out, &block(own, incoming, combine));
    }
}

/// At most [`BLOCK`] elements. Whole slices: the processor's conversion instructions are detected once per slice, not per element.
#[inline(always)]
fn block(one: &[u8], other: &[u8], combine: impl Fn(f32, f32) -> f32) -> [f16; BLOCK] {
    let mut wide = [[0_f32; BLOCK]; 2];
    for (wide, bytes) in wide.iter_mut().zip([one, other]) {
        let mut narrow = [f16::ZERO; BLOCK];
        for (narrow, bytes) in narrow.iter_mut().zip(bytes.as_chunks::<2>().0) {
            *narrow = f16::from_ne_bytes(*bytes);
        }
        narrow.convert_to_f32_slice(wide);
    }
    let [mut made, other] = wide;
    for (made, other) in made.iter_mut().zip(other) {
        *made = combine(*made, other);
    }
    let mut narrow = [f16::ZERO; BLOCK];
    narrow.convert_from_f32_slice(&made);
    narrow
}

#[inline(always)]
fn store(out: &mut [u8], made: &[f16; BLOCK]) {
    for (out, made) in out.as_chunks_mut::<2>().0.iter_mut().zip(made) {
        *out = made.to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bfloat16_is_rounded_as_its_crate_rounds() {
        for bits in (0..u32::MAX).step_by(65_537 * 3 + 2) {
            let value = f32::from_bits(bits);
            assert_eq!(narrow(value).to_bits(), bf16::from_f32(value).to_bits(), "{value}");
        }
    }
}
