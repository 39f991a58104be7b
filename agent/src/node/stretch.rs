//! One processor's part of the memory of a NUMA node: filled, moved and compared on that processor, so that its pages lie there.

use std::hint::black_box;

use railgauge_bulk::sum::sum;
use railgauge_wire::{
    failure::Failure,
    step::{Checked, Pattern},
    terms::Op,
    unit::Bytes,
};

use crate::memory::{host::Buffer, nodes, pattern};

/// Bytes that are moved between two looks at the clock. A chunk under way when the window ends does not count, so it takes little time: 0.2 ms
/// where 128 threads share 200 GB/s, and thousands of times what the look takes.
const CHUNK: usize = 1 << 18;

pub(super) struct Stretch {
    op: Op,
    /// Number of it among those of the flow.
    number: u32,
    here: Buffer,
    there: Option<Buffer>,
    /// Where the next chunk begins.
    at: usize,
}

impl Stretch {
    /// Takes `length` bytes, twice of them for a copy, from the node of the processor that the calling thread runs on.
    pub(super) fn new(op: Op, number: u32, length: u64) -> Result<Self, Failure> {
        let there = if op == Op::MemoryCopy { Some(Buffer::new(length, false)?) } else { None };
        Ok(Self { op, number, here: Buffer::new(length, false)?, there, at: 0 })
    }

    /// Bytes that a whole pass moves.
    pub(super) fn length(&self) -> u64 {
        self.here.len() as u64
    }

    /// NUMA nodes of pages spread over it; empty where the kernel does not tell.
    pub(super) fn nodes(&self) -> Vec<u32> {
        let all = [Some(&self.here), self.there.as_ref()].into_iter().flatten();
        all.flat_map(|buffer| nodes::nodes(buffer.bytes())).collect()
    }

    /// Moves a pattern once and compares it.
    pub(super) fn verify(&mut self, pattern: &Pattern) -> Checked {
        let pattern = &Pattern { size: Bytes(self.length()), ..*pattern };
        let sink = match &mut self.there {
            Some(there) => {
                pattern::fill(self.here.bytes_mut(), pattern, self.number);
                pattern::poison(there.bytes_mut(), pattern, self.number);
                there.bytes_mut().copy_from_slice(self.here.bytes());
                there
            }
            None => {
                pattern::poison(self.here.bytes_mut(), pattern, self.number);
                pattern::fill(self.here.bytes_mut(), pattern, self.number);
                &self.here
            }
        };
        pattern::check(sink.bytes(), pattern, self.number)
    }

    /// Moves the next chunk; how many bytes that were.
    pub(super) fn step(&mut self) -> u64 {
        let end = self.here.len().min(self.at + CHUNK);
        let range = self.at..end;
        self.at = if end == self.here.len() { 0 } else { end };
        let moved = range.len() as u64;
        match (self.op, &mut self.there) {
            (Op::MemoryCopy, Some(there)) => {
                there.bytes_mut()[range.clone()].copy_from_slice(&self.here.bytes()[range])
            }
            (Op::MemoryWrite, _) => black_box(&mut self.here.bytes_mut()[range]).fill(black_box(0xa5)),
            _ => {
                black_box(sum(&self.here.bytes()[range]));
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_moved_and_compared() {
        let pattern = Pattern { size: Bytes(9), seed: 7, iteration: 1 };
        for op in [Op::MemoryRead, Op::MemoryWrite, Op::MemoryCopy] {
            let length = CHUNK as u64 + 5;
            let mut stretch = Stretch::new(op, 3, length).unwrap();
            let right = Checked { verified: Bytes(length), wrong: Bytes::ZERO, first_wrong: None };
            assert_eq!(stretch.verify(&pattern), right, "{op}");
            assert_eq!([stretch.step(), stretch.step(), stretch.step()], [CHUNK as u64, 5, CHUNK as u64], "{op}");
        }
    }
}
