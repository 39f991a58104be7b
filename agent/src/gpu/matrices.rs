//! Matrices with a known product, so that a kernel compares every element.
//!
//! X and Y have rank two: X\[i\]\[l\] = a₁(i)·p₁(l) + a₂(i)·p₂(l) and Y\[j\]\[l\] = b₁(j)·q₁(l) + b₂(j)·q₂(l). Then Z = Y·Xᵀ is
//! Z\[j\]\[i\] = Σ b_s(j)·a_r(i)·S_rs with S_rs = Σ p_r(l)·q_s(l), four sums that are computed here: rank two as well.
//!
//! All of it is exact in any order of additions. a₁ and b₁ are ±1 or ±2, a₂ and b₂ are ±3, and p and q are ±1: the elements of X and Y
//! are whole numbers from −5 to 5 without 0, which every type has; no partial sum exceeds 25 times the rows, below 2²⁴ for all allowed
//! sizes. Most terms of the sums cancel in pairs, at a distance that depends on the seed, and [`LEFT`] are left over: the elements of Z
//! are at most 200 and exact in 8 bits of mantissa, and one wrong term of one sum shows.

use half::{bf16, f16};
use railgauge_wire::{Bytes, Checked, Failure, Pattern, Precision};

use super::{Buffer, Device, Stream, Vendor, kernels, table};
use crate::memory::pattern;

/// Terms of the sums that no other cancels, half of them in each half.
const LEFT: usize = 8;
const NUMBERS: i32 = 512;

/// The GPU's 8-bit format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eight {
    /// OCP's E4M3: NVIDIA's GPUs, and AMD's gfx950 and gfx12.
    Ocp,
    /// E4M3 FNUZ of AMD's gfx942: an exponent's bias of 8 instead of 7, no infinity, and minus zero is no number.
    Fnuz,
}

impl Eight {
    pub(super) fn of(device: &Device) -> Self {
        match (device.vendor(), device.generation()) {
            (Vendor::Amd, Some((9, 4))) => Self::Fnuz,
            _ => Self::Ocp,
        }
    }
}

type Pairs = Vec<[i32; 2]>;

pub(crate) struct Matrices {
    precision: Precision,
    rows: u32,
    x: Buffer,
    y: Buffer,
    z: Buffer,
    /// Elements for the numbers of X and Y, and of Z.
    given: Buffer,
    made: Buffer,
    /// Numbers of rows and columns of the matrix in use.
    of_rows: Buffer,
    of_columns: Buffer,
    expected: (Pairs, Pairs),
}

impl Matrices {
    pub(crate) fn new(stream: &Stream, precision: Precision, rows: u32) -> Result<Self, Failure> {
        let device = stream.device();
        let elements = u64::from(rows) * u64::from(rows);
        let taken = |bytes: u64| Buffer::new(device, bytes);
        let eight = Eight::of(device);
        let table = |bits: fn(Precision, Eight, i32) -> u32| {
            let bytes: Vec<u8> =
                (-NUMBERS / 2..NUMBERS / 2).flat_map(|number| bits(precision, eight, number).to_le_bytes()).collect();
            let buffer = taken(bytes.len() as u64)?;
            stream.to_device(&buffer, 0, &bytes)?;
            Ok::<_, Failure>(buffer)
        };
        Ok(Self {
            precision,
            rows,
            x: taken(elements * precision.operand().0)?,
            y: taken(elements * precision.operand().0)?,
            z: taken(elements * precision.result().0)?,
            given: table(operand)?,
            made: table(result)?,
            of_rows: taken(u64::from(rows) * 8)?,
            of_columns: taken(u64::from(rows) * 8)?,
            expected: (Vec::new(), Vec::new()),
        })
    }

    pub(super) fn addresses(&self) -> (u64, u64, u64) {
        (self.x.address(), self.y.address(), self.z.address())
    }

    /// Writes both operands, different for each pattern, and waits.
    pub(crate) fn fill(&mut self, stream: &Stream, pattern: &Pattern) -> Result<(), Failure> {
        let made = Factors::new(pattern::key(pattern, 0), self.rows as usize);
        let shift = self.precision.operand().0.ilog2();
        for (to, rows, columns) in [(&self.x, &made.a, &made.p), (&self.y, &made.b, &made.q)] {
            self.tell(stream, rows, columns)?;
            kernels::write_outer(stream, to, &self.outer(&self.given, shift))?;
        }
        self.expected = made.expected();
        Ok(())
    }

    pub(crate) fn poison(&self, stream: &Stream) -> Result<(), Failure> {
        // An element with all bits set is NaN in every type.
        stream.set(&self.z, 0xff, self.z.len())?;
        stream.wait()
    }

    /// Compares every element of the result, on the GPU. Also injects a test's fault.
    pub(crate) fn check(&self, stream: &Stream) -> Result<Checked, Failure> {
        kernels::flip_bit(stream, &self.z, self.z.len() / 2)?;
        let (rows, columns) = &self.expected;
        self.tell(stream, rows, columns)?;
        let width = self.precision.result().0;
        let (wrong, first_wrong) = kernels::check_outer(stream, &self.z, &self.outer(&self.made, width.ilog2()))?;
        Ok(Checked { verified: Bytes(self.z.len()), wrong: Bytes(wrong * width), first_wrong })
    }

    fn outer<'a>(&'a self, table: &'a Buffer, shift: u32) -> kernels::Outer<'a> {
        kernels::Outer { rows: &self.of_rows, columns: &self.of_columns, table, length: self.rows, shift }
    }

    /// Writes the numbers of rows and columns for the kernels, in stream order.
    fn tell(&self, stream: &Stream, rows: &Pairs, columns: &Pairs) -> Result<(), Failure> {
        for (to, numbers) in [(&self.of_rows, rows), (&self.of_columns, columns)] {
            let bytes: Vec<u8> = numbers.as_flattened().iter().flat_map(|number| number.to_le_bytes()).collect();
            stream.to_device(to, 0, &bytes)?;
        }
        Ok(())
    }
}

fn operand(precision: Precision, eight: Eight, number: i32) -> u32 {
    match precision {
        Precision::Fp8 => {
            let sign = if number < 0 { 0x80 } else { 0 };
            let ocp = table::bits(railgauge_wire::terms::Datatype::F8e4m3, f64::from(number.abs().min(16))) as u32;
            // From one on an FNUZ exponent is one more; minus zero does not exist and would be NaN.
            let bits = if eight == Eight::Fnuz && ocp != 0 { ocp + 8 } else { ocp };
            sign | bits
        }
        Precision::Fp16 => u32::from(f16::from_f32(number as f32).to_bits()),
        Precision::Bf16 => u32::from(bf16::from_f32(number as f32).to_bits()),
        Precision::Tf32 | Precision::Fp32 => (number as f32).to_bits(),
    }
}

fn result(precision: Precision, eight: Eight, number: i32) -> u32 {
    operand(if precision == Precision::Fp8 { Precision::Bf16 } else { precision }, eight, number)
}

struct Factors {
    a: Pairs,
    b: Pairs,
    p: Pairs,
    q: Pairs,
}

impl Factors {
    fn new(key: u64, rows: usize) -> Self {
        let word = |place: usize| pattern::word(key, place as u64);
        let sign = |word: u64, bit: u32| 1 - 2 * ((word >> bit) & 1) as i32;
        let of_rows = |base: usize| -> Pairs {
            let one = |word: u64| [sign(word, 0) * (1 + ((word >> 1) & 1) as i32), 3 * sign(word, 2)];
            (0..rows).map(|row| one(word(base + row))).collect()
        };
        let half = rows / 2;
        let turn = word(3 * rows) as usize % half.max(1);
        let (mut p, mut q) = (vec![[0; 2]; rows], vec![[0; 2]; rows]);
        for near in 0..half {
            let far = half + (near + turn) % half;
            let signs = word(2 * rows + near);
            let [p1, p2, q1, q2] = [8, 9, 10, 11].map(|bit| sign(signs, bit));
            if near < LEFT / 2 {
                // Left over: each sum of like factors grows by one with each.
                let more = [sign(signs, 12), sign(signs, 13)];
                (p[near], q[near]) = ([p1, p2], [p1, p2]);
                (p[far], q[far]) = (more, more);
            } else {
                (p[near], q[near]) = ([p1, p2], [q1, q2]);
                (p[far], q[far]) = ([p1, p2], [-q1, -q2]);
            }
        }
        Self { a: of_rows(0), b: of_rows(rows), p, q }
    }

    fn expected(self) -> (Pairs, Pairs) {
        let sum = |r: usize, s: usize| -> i32 { self.p.iter().zip(&self.q).map(|(p, q)| p[r] * q[s]).sum() };
        let sums = [[sum(0, 0), sum(0, 1)], [sum(1, 0), sum(1, 1)]];
        let weighed = |a: &[i32; 2]| [0, 1].map(|s| a[0] * sums[0][s] + a[1] * sums[1][s]);
        let columns = self.a.iter().map(weighed).collect();
        (self.b, columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outer(row: [i32; 2], column: [i32; 2]) -> i32 {
        row[0] * column[0] + row[1] * column[1]
    }

    #[test]
    fn the_product_is_what_multiplying_gives() {
        for (seed, rows) in [(1, 16), (7, 48), (9, 160)] {
            let made = Factors::new(seed, rows);
            let x = |i: usize, l: usize| outer(made.a[i], made.p[l]);
            let y = |j: usize, l: usize| outer(made.b[j], made.q[l]);
            let mut product = vec![0; rows * rows];
            for j in 0..rows {
                for i in 0..rows {
                    assert!((1..=5).contains(&x(i, j).abs()) && (1..=5).contains(&y(i, j).abs()));
                    product[j * rows + i] = (0..rows).map(|l| x(i, l) * y(j, l)).sum();
                }
            }
            let (of_rows, of_columns) = made.expected();
            for j in 0..rows {
                for i in 0..rows {
                    let wanted = outer(of_rows[j], of_columns[i]);
                    assert!(product[j * rows + i] == wanted && wanted.abs() <= 200, "{rows}: {j}, {i}");
                }
            }
            assert!(product.iter().filter(|one| **one != 0).count() > rows * rows / 2);
        }
    }

    #[test]
    fn no_part_of_the_terms_can_be_left_out() {
        // As if a block of 16 terms were dropped: nearly every element would differ.
        let (rows, made) = (256, Factors::new(3, 256));
        let block = |r: usize, s: usize, at: usize| -> i32 { (at..at + 16).map(|l| made.p[l][r] * made.q[l][s]).sum() };
        for at in (0..rows).step_by(16) {
            let sums = [block(0, 0, at), block(0, 1, at), block(1, 0, at), block(1, 1, at)];
            assert!(sums.iter().any(|sum| *sum != 0), "{at}");
        }
    }

    #[test]
    fn numbers_are_exact_in_every_precision() {
        for number in -5..=5 {
            let wanted = number as f32;
            assert_eq!(bf16::from_bits(operand(Precision::Bf16, Eight::Ocp, number) as u16).to_f32(), wanted);
            assert_eq!(f16::from_bits(operand(Precision::Fp16, Eight::Ocp, number) as u16).to_f32(), wanted);
            assert_eq!(f32::from_bits(operand(Precision::Tf32, Eight::Ocp, number)), wanted);
        }
        // OCP FP8, E4M3: one is 0x38, five is 1.25 times four.
        assert_eq!(
            [1, -1, 2, 3, 5, -5].map(|n| operand(Precision::Fp8, Eight::Ocp, n)),
            [0x38, 0xb8, 0x40, 0x44, 0x4a, 0xca]
        );
        // FNUZ: one is 0x40, as the exponent's bias is 8.
        let fnuz = [1, -1, 2, 3, 5, -5, 0].map(|n| operand(Precision::Fp8, Eight::Fnuz, n));
        assert_eq!(fnuz, [0x40, 0xc0, 0x48, 0x4c, 0x52, 0xd2, 0]);
        for number in -200..=200 {
            let wanted = number as f32;
            assert_eq!(bf16::from_bits(result(Precision::Fp8, Eight::Ocp, number) as u16).to_f32(), wanted);
            assert_eq!(f16::from_bits(result(Precision::Fp16, Eight::Ocp, number) as u16).to_f32(), wanted);
        }
    }
}
