//! Reductions over bytes in host memory. Loops without branches and aliasing let the compiler vectorise. Half precision is reduced in
//! single precision: exact for one step, rounded once when stored.

use half::{bf16, f16, slice::HalfFloatSliceExt};
use railgauge_wire::terms::{Datatype, Reduction};

/// binary16 elements converted at a time.
const BLOCK: usize = 128;

#[derive(Clone, Copy)]
pub struct Kernel {
    /// Reduces the second into the first.
    pub into: fn(&mut [u8], &[u8]),
    pub of: fn(&mut [u8], &[u8], &[u8]),
}

/// `None` for reductions that only NCCL has.
pub fn kernel(datatype: Datatype, reduction: Reduction) -> Option<Kernel> {
    match datatype {
        Datatype::F32 => of_type::<f32, 4>(reduction),
        Datatype::F64 => of_type::<f64, 8>(reduction),
        Datatype::F16 => of_f16(reduction),
        Datatype::Bf16 => of_type::<bf16, 2>(reduction),
        Datatype::I8 => of_type::<i8, 1>(reduction),
        Datatype::U8 => of_type::<u8, 1>(reduction),
        Datatype::I32 => of_type::<i32, 4>(reduction),
        Datatype::U32 => of_type::<u32, 4>(reduction),
        Datatype::I64 => of_type::<i64, 8>(reduction),
        Datatype::U64 => of_type::<u64, 8>(reduction),
        Datatype::F8e4m3 | Datatype::F8e5m2 => None,
    }
}

trait Element<const W: usize>: Copy {
    fn read(bytes: [u8; W]) -> Self;
    fn bytes(self) -> [u8; W];
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn least(self, other: Self) -> Self;
    fn most(self, other: Self) -> Self;
}

macro_rules! element {
    ($type:ty, $width:literal, $sum:expr, $product:expr) => {
        impl Element<$width> for $type {
            #[inline(always)]
            fn read(bytes: [u8; $width]) -> Self {
                Self::from_ne_bytes(bytes)
            }
            #[inline(always)]
            fn bytes(self) -> [u8; $width] {
                self.to_ne_bytes()
            }
            #[inline(always)]
            fn sum(self, other: Self) -> Self {
                $sum(self, other)
            }
            #[inline(always)]
            fn product(self, other: Self) -> Self {
                $product(self, other)
            }
            // `min` and `max` of floats handle NaN, which takes branches.
            #[inline(always)]
            fn least(self, other: Self) -> Self {
                if other < self { other } else { self }
            }
            #[inline(always)]
            fn most(self, other: Self) -> Self {
                if other > self { other } else { self }
            }
        }
    };
}

element!(f32, 4, |a, b| a + b, |a, b| a * b);
element!(f64, 8, |a, b| a + b, |a, b| a * b);
element!(bf16, 2, |a, b| narrow(widen(a) + widen(b)), |a, b| narrow(widen(a) * widen(b)));
element!(i8, 1, i8::wrapping_add, i8::wrapping_mul);
element!(u8, 1, u8::wrapping_add, u8::wrapping_mul);
element!(i32, 4, i32::wrapping_add, i32::wrapping_mul);
element!(u32, 4, u32::wrapping_add, u32::wrapping_mul);
element!(i64, 8, i64::wrapping_add, i64::wrapping_mul);
element!(u64, 8, u64::wrapping_add, u64::wrapping_mul);

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

trait Combine {
    fn combine<T: Element<W>, const W: usize>(one: T, other: T) -> T;
}

macro_rules! combine {
    ($($name:ident = $method:ident,)+) => {$(
        struct $name;
        impl Combine for $name {
            #[inline(always)]
            fn combine<T: Element<W>, const W: usize>(one: T, other: T) -> T {
                one.$method(other)
            }
        }
    )+};
}

combine! { Sum = sum, Product = product, Least = least, Most = most, }

fn of_type<T: Element<W>, const W: usize>(reduction: Reduction) -> Option<Kernel> {
    Some(match reduction {
        Reduction::Sum => Kernel { into: into::<T, Sum, W>, of: of::<T, Sum, W> },
        Reduction::Prod => Kernel { into: into::<T, Product, W>, of: of::<T, Product, W> },
        Reduction::Min => Kernel { into: into::<T, Least, W>, of: of::<T, Least, W> },
        Reduction::Max => Kernel { into: into::<T, Most, W>, of: of::<T, Most, W> },
        Reduction::Avg | Reduction::Mulsum => return None,
    })
}

fn into<T: Element<W>, C: Combine, const W: usize>(out: &mut [u8], incoming: &[u8]) {
    for (out, incoming) in out.as_chunks_mut::<W>().0.iter_mut().zip(incoming.as_chunks::<W>().0) {
        *out = C::combine(T::read(*out), T::read(*incoming)).bytes();
    }
}

fn of<T: Element<W>, C: Combine, const W: usize>(out: &mut [u8], own: &[u8], incoming: &[u8]) {
    let given = own.as_chunks::<W>().0.iter().zip(incoming.as_chunks::<W>().0);
    for (out, (own, incoming)) in out.as_chunks_mut::<W>().0.iter_mut().zip(given) {
        *out = C::combine(T::read(*own), T::read(*incoming)).bytes();
    }
}

fn of_f16(reduction: Reduction) -> Option<Kernel> {
    Some(match reduction {
        Reduction::Sum => Kernel { into: into_f16::<Sum>, of: of_f16_pair::<Sum> },
        Reduction::Prod => Kernel { into: into_f16::<Product>, of: of_f16_pair::<Product> },
        Reduction::Min => Kernel { into: into_f16::<Least>, of: of_f16_pair::<Least> },
        Reduction::Max => Kernel { into: into_f16::<Most>, of: of_f16_pair::<Most> },
        Reduction::Avg | Reduction::Mulsum => return None,
    })
}

fn into_f16<C: Combine>(out: &mut [u8], incoming: &[u8]) {
    for (out, incoming) in out.chunks_mut(2 * BLOCK).zip(incoming.chunks(2 * BLOCK)) {
        let made = block::<C>(out, incoming);
        store(out, &made);
    }
}

fn of_f16_pair<C: Combine>(out: &mut [u8], own: &[u8], incoming: &[u8]) {
    let given = own.chunks(2 * BLOCK).zip(incoming.chunks(2 * BLOCK));
    for (out, (own, incoming)) in out.chunks_mut(2 * BLOCK).zip(given) {
        store(out, &block::<C>(own, incoming));
    }
}

/// At most [`BLOCK`] elements. Whole slices: the processor's conversion instructions are detected once per slice, not per element.
#[inline(always)]
fn block<C: Combine>(one: &[u8], other: &[u8]) -> [f16; BLOCK] {
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
        *made = C::combine(*made, other);
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
