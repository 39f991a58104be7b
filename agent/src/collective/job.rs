//! One collective as its algorithms see it: who takes part, and which bytes are whose.

use std::ops::Range;

use railgauge_wire::terms::{Algorithm, Op};

use super::{
    ROOT, broadcast, exchange, folding, halving_doubling, recursive_doubling, ring,
    script::{Script, Side, Stretch},
};

/// All-reduces up to this many bytes take the fewest steps.
const SHORT: usize = 16 << 10;
const SHORT_OF_TWO: usize = 32 << 10;
/// Broadcasts up to this many bytes go down a tree.
const SHORT_BROADCAST: usize = 64 << 10;
/// All-reduces whose blocks of the ring would be smaller than this many bytes are halved and doubled instead. Among a
/// power of two of ranks, and among others, of which some send everything twice then.
const SMALL_BLOCK: (usize, usize) = (512 << 10, 32 << 10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub op: Op,
    pub rank: usize,
    pub ranks: usize,
    pub count: usize,
    /// Bytes of an element.
    pub width: usize,
    /// Whether the result takes the place of the input.
    pub in_place: bool,
}

impl Job {
    /// The script of this rank; `None` if the algorithm does not do the operation.
    pub(crate) fn script(&self, algorithm: Algorithm) -> Option<Script> {
        if !algorithm.does(self.op) {
            return None;
        }
        Some(match (self.op, algorithm) {
            (Op::AllReduce, Algorithm::Ring) => ring::all_reduce(self),
            (Op::AllReduce, Algorithm::RecursiveDoubling) => folding::all_reduce(self, recursive_doubling::exchange),
            (Op::AllReduce, Algorithm::HalvingDoubling) => folding::all_reduce(self, halving_doubling::exchange),
            (Op::AllGather, _) => ring::all_gather(self),
            (Op::ReduceScatter, _) => ring::reduce_scatter(self),
            (Op::Broadcast, Algorithm::Chain) => broadcast::chain(self),
            (Op::Broadcast, _) => broadcast::tree(self),
            (Op::AllToAll, _) => exchange::all_to_all(self),
            _ => return None,
        })
    }

    /// The algorithm that suits size and number of ranks; `None` for operations without one.
    pub(crate) fn suited(&self) -> Option<Algorithm> {
        let bytes = self.count * self.width;
        match self.op {
            Op::AllReduce if bytes <= SHORT || self.ranks == 2 && bytes <= SHORT_OF_TWO => {
                Some(Algorithm::RecursiveDoubling)
            }
            Op::AllReduce if bytes / self.ranks.max(1) < self.small_block() => Some(Algorithm::HalvingDoubling),
            Op::AllReduce | Op::AllGather | Op::ReduceScatter => Some(Algorithm::Ring),
            Op::Broadcast if bytes <= SHORT_BROADCAST => Some(Algorithm::Tree),
            Op::Broadcast => Some(Algorithm::Chain),
            Op::AllToAll => Some(Algorithm::Pairwise),
            _ => None,
        }
    }

    fn small_block(&self) -> usize {
        if self.ranks.is_power_of_two() { SMALL_BLOCK.0 } else { SMALL_BLOCK.1 }
    }

    /// Bytes of scratch memory its scripts use.
    pub(crate) fn scratch(&self) -> usize {
        if self.op == Op::ReduceScatter { 2 * self.bytes() } else { 0 }
    }

    pub(super) fn given(&self) -> Side {
        if self.in_place { Side::Output } else { Side::Input }
    }

    /// Bytes each rank contributes.
    pub(super) fn bytes(&self) -> usize {
        self.count * self.width
    }

    /// Everything a rank contributes, where nothing is divided.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.bytes()
    }

    /// The contribution of rank `i`, or what is meant for it, in a memory that holds those of all ranks.
    pub(super) fn share(&self, i: usize) -> Range<usize> {
        i * self.bytes()..(i + 1) * self.bytes()
    }

    /// Part `i` of as many parts as there are ranks of one contribution, in whole elements.
    pub(super) fn part(&self, i: usize) -> Range<usize> {
        let edge = |i: usize| i * self.count / self.ranks * self.width;
        edge(i)..edge(i + 1)
    }

    /// The rank `steps` before this one.
    pub(super) fn before(&self, steps: usize) -> usize {
        (self.rank + self.ranks - steps % self.ranks) % self.ranks
    }

    /// The rank `steps` after this one.
    pub(super) fn after(&self, steps: usize) -> usize {
        (self.rank + steps) % self.ranks
    }

    pub(super) fn is_root(&self) -> bool {
        self.rank == ROOT as usize
    }

    pub(super) fn whole(&self) -> Stretch {
        Stretch { side: self.given(), at: self.all() }
    }
}
