//! A collective's data in host memory: written, poisoned and compared from tables. Data is a function of the element's number modulo
//! [`PERIOD`], so it is computed once for that many elements, and buffers are filled and compared at memory speed. The period is a prime:
//! blocks, chunks and slots are not multiples of it, so a misplaced part differs.

use railgauge_wire::{Bytes, Checked, Datatype, Reduction};

use crate::{
    gpu::table::{given, largest_sum},
    memory::pattern::{Part, value},
};

const PERIOD: u64 = 65_521;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source {
    pub datatype: Datatype,
    /// `None` for moved data.
    pub reduction: Option<Reduction>,
    pub ranks: u32,
    pub key: u64,
}

/// One period at most of one rank's data, or of a reduction.
pub(crate) struct Table {
    bytes: Vec<u8>,
}

impl Table {
    pub(crate) fn new(source: &Source, part: &Part) -> Self {
        let Source { datatype, reduction, ranks, key } = *source;
        let width = datatype.bytes().as_usize();
        let numbers: Vec<[u8; 8]> = given(datatype, reduction).map(u64::to_le_bytes).collect();
        let kind = (reduction, largest_sum(datatype, reduction));
        let elements = part.count.min(PERIOD);
        let mut bytes = Vec::with_capacity(elements as usize * width);
        for i in part.offset..part.offset + elements {
            let givers = part.first..part.first.saturating_add(part.many);
            let given = givers.map(|rank| value(key, i % PERIOD, kind, ranks, rank));
            let number = match reduction {
                Some(Reduction::Prod) => given.product(),
                Some(Reduction::Min) => given.min().unwrap_or(0),
                Some(Reduction::Max) | None => given.max().unwrap_or(0),
                Some(_) => given.sum::<u32>(),
            };
            // By the bounds of `values` it is at most 127.
            let element = numbers.get(number as usize).copied().unwrap_or_default();
            bytes.extend_from_slice(&element[..width]);
        }
        Self { bytes }
    }

    pub(crate) fn fill(&self, into: &mut [u8]) {
        for piece in into.chunks_mut(self.bytes.len().max(1)) {
            piece.copy_from_slice(&self.bytes[..piece.len()]);
        }
    }

    /// The offset of the first wrong byte counts from its start.
    pub(crate) fn check(&self, found: &[u8]) -> Checked {
        let mut checked = Checked { verified: Bytes::of(found.len()), ..Checked::default() };
        let mut at = 0;
        for here in found.chunks(self.bytes.len().max(1)) {
            let piece = &self.bytes[..here.len()];
            if here != piece {
                let differs = |(one, other): &(&u8, &u8)| one != other;
                checked.wrong += Bytes::of(here.iter().zip(piece).filter(differs).count());
                let first = here.iter().zip(piece).position(|pair| differs(&pair)).map(|byte| (at + byte) as u64);
                checked.first_wrong = checked.first_wrong.or(first);
            }
            at += piece.len();
        }
        checked
    }
}

/// Makes bytes differ from all of a table.
pub(crate) fn poison(bytes: &mut [u8]) {
    bytes.fill(0xff);
}

pub(crate) use railgauge_bulk::reduce::{Kernel, kernel};

#[cfg(test)]
mod tests {
    use railgauge_wire::{Datatype, Reduction};

    use super::*;
    use crate::gpu::table::bits;

    const SOURCE: Source = Source { datatype: Datatype::F32, reduction: Some(Reduction::Sum), ranks: 3, key: 7 };

    #[test]
    fn what_was_filled_is_found_and_nothing_else() {
        let part = Part { at: 0, count: PERIOD * 2 + 3, offset: 65_000, first: 0, many: 3 };
        let table = Table::new(&SOURCE, &part);
        let mut bytes = vec![0; part.count as usize * 4];
        table.fill(&mut bytes);
        assert_eq!(
            table.check(&bytes),
            Checked { verified: Bytes::of(bytes.len()), wrong: Bytes::ZERO, first_wrong: None }
        );
        let later = Part { count: part.count - 600, offset: 65_600, ..part };
        assert_eq!(Table::new(&SOURCE, &later).check(&bytes[2_400..]).wrong, Bytes::ZERO);
        assert!(Table::new(&SOURCE, &Part { offset: 65_001, ..part }).check(&bytes).wrong > Bytes::ZERO);
        bytes[400_001] ^= 1;
        assert_eq!(table.check(&bytes).first_wrong, Some(400_001));
        poison(&mut bytes[..8]);
        assert_eq!(table.check(&bytes[..8]).first_wrong, Some(0));
    }

    #[test]
    fn a_sum_is_the_sum_of_its_ranks() {
        let table = |first, many| Table::new(&SOURCE, &Part { at: 0, count: 100, offset: 5, first, many });
        let number = |table: &Table, i: usize| f32::from_le_bytes(table.bytes.as_chunks::<4>().0[i]);
        let (sum, ranks) = (table(0, 3), [0, 1, 2].map(|rank| table(rank, 1)));
        for i in [0, 1, 77, 99] {
            assert_eq!(number(&sum, i), ranks.iter().map(|table| number(table, i)).sum::<f32>());
        }
    }

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
