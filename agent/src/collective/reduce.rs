//! Reductions over bytes in host memory, tried with every type.

pub(crate) use railgauge_bulk::reduce::{Kernel, kernel};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::table::bits;
    use railgauge_wire::terms::{Datatype, Reduction};

    /// Every type and reduction against arithmetic on whole numbers.
    #[test]
    fn every_kernel_makes_what_arithmetic_makes() {
        let numbers = |salt: u32| (0..300_u32).map(move |i| (i * 7 + salt) % 11).collect::<Vec<_>>();
        for datatype in Datatype::ALL {
            let width = datatype.bytes().as_usize();
            let bytes = |numbers: &[u32]| -> Vec<u8> {
                numbers.iter().flat_map(|n| bits(*datatype, f64::from(*n)).to_le_bytes()[..width].to_vec()).collect()
            };
            for reduction in Reduction::ALL.iter().filter(|reduction| reduction.is_plain(*datatype)) {
                let combine = |(a, b): (&u32, &u32)| match reduction {
                    Reduction::Sum => a + b,
                    Reduction::Prod => a * b,
                    Reduction::Min => *a.min(b),
                    _ => *a.max(b),
                };
                let (one, other) = (numbers(0), numbers(5));
                let wanted = bytes(&one.iter().zip(&other).map(combine).collect::<Vec<_>>());
                let kernel = kernel(*datatype, *reduction).unwrap();
                let mut out = bytes(&one);
                (kernel.into)(&mut out, &bytes(&other));
                assert_eq!(out, wanted, "{datatype} {reduction}");
                out.fill(0xee);
                (kernel.of)(&mut out, &bytes(&one), &bytes(&other));
                assert_eq!(out, wanted, "{datatype} {reduction}");
            }
        }
    }
}
