//! Element types and shapes of matrix products.

use crate::unit::Bytes;

crate::words! {
    /// Element type of both operands. Sums are kept in binary32.
    Precision {
        Bf16 = "bf16",
        Fp16 = "fp16",
        /// Binary32 with 10 bits of mantissa in tensor cores; the result is binary32.
        Tf32 = "tf32",
        Fp32 = "fp32",
        /// OCP FP8 with 4 bits of exponent and 3 of mantissa (E4M3); the result is bfloat16.
        Fp8 = "fp8",
    }
}

impl Precision {
    pub const fn operand(self) -> Bytes {
        Bytes(match self {
            Self::Fp8 => 1,
            Self::Bf16 | Self::Fp16 => 2,
            Self::Tf32 | Self::Fp32 => 4,
        })
    }

    pub const fn result(self) -> Bytes {
        Bytes(match self {
            Self::Fp8 | Self::Bf16 | Self::Fp16 => 2,
            Self::Tf32 | Self::Fp32 => 4,
        })
    }

    /// Least compute capability of a GPU for it (CUDA C++ Programming Guide, "Compute Capabilities"; for FP16 the least for this
    /// program's kernels).
    pub const fn capability(self) -> (u32, u32) {
        match self {
            Self::Fp8 => (8, 9),
            Self::Bf16 | Self::Tf32 => (8, 0),
            Self::Fp16 | Self::Fp32 => (7, 0),
        }
    }

    pub const fn square(self, rows: u32) -> Bytes {
        Bytes(rows as u64 * rows as u64 * self.result().0)
    }

    /// Rows of a square result of so many bytes, which are those of the operands too; `None` for other sizes than whole multiples of
    /// [`STEP`] rows, or above [`MOST`].
    pub const fn rows(self, size: Bytes) -> Option<u32> {
        let elements = size.0 / self.result().0;
        let rows = elements.isqrt();
        if rows == 0 || rows > MOST as u64 || !rows.is_multiple_of(STEP as u64) {
            return None;
        }
        let rows = rows as u32;
        if self.square(rows).0 == size.0 { Some(rows) } else { None }
    }
}

/// Rows are a multiple of this: cuBLASLt requires rows of FP8 in whole units of 16 bytes.
pub const STEP: u32 = 16;
/// Most rows: 4 GiB of binary32.
pub const MOST: u32 = 32_768;

/// A multiplication and an addition for each of rows³ terms.
pub const fn flops(rows: u32) -> u64 {
    2 * (rows as u64).pow(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_that_of_a_square_result() {
        assert_eq!(Precision::Bf16.rows(Bytes::from_mib(128)), Some(8192));
        assert_eq!(Precision::Fp8.rows(Bytes::from_mib(128)), Some(8192));
        assert_eq!(Precision::Tf32.rows(Bytes::from_mib(256)), Some(8192));
        for precision in Precision::ALL {
            for rows in [STEP, 48, 8192, MOST] {
                assert_eq!(precision.rows(precision.square(rows)), Some(rows), "{precision}");
            }
            for size in [0, 1, precision.square(8).0, precision.square(48).0 + 1, precision.square(MOST + STEP).0] {
                assert_eq!(precision.rows(Bytes(size)), None, "{precision}: {size}");
            }
        }
        assert_eq!(flops(8192), 1_099_511_627_776);
    }
}
