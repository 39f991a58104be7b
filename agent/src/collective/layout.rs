//! Where a collective's operations stand in the buffers, and what each must leave behind.
//!
//! Operations walk through the buffers by their size, as nccl-tests does, so that caches are met the same way: the
//! k-th of a batch stands in slot k mod slots. A rank's data is a function of the position in its buffer, so every
//! slot has data of its own.

use railgauge_wire::{
    group::CollectiveSpec,
    terms::{Op, Reduction},
};

use super::ROOT;
use crate::memory::values::Part;

/// The places of one collective on one rank. All in elements unless said otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    op: Op,
    in_place: bool,
    rank: u32,
    ranks: u32,
    pub count: u64,
    whole: u64,
    pub slots: u64,
    /// Bytes of an element.
    pub width: u64,
}

impl Layout {
    /// The layout of a collective in buffers of `capacity` bytes; `None` if its size does not divide or does not fit.
    pub(crate) fn new(collective: &CollectiveSpec, rank: u32, ranks: u32, capacity: u64) -> Option<Self> {
        let width = collective.options.datatype.bytes().0;
        let count = collective.count(ranks).filter(|count| *count > 0)?;
        let slots = capacity / collective.size.0;
        let in_place = collective.options.in_place;
        let whole = collective.size.0 / width;
        (slots > 0).then_some(Self { op: collective.op, in_place, rank, ranks, count, whole, slots, width })
    }

    /// Where a slot's input begins.
    pub(crate) fn send_at(&self, slot: u64) -> u64 {
        slot * self.whole + if self.in_place && self.op == Op::AllGather { self.own() } else { 0 }
    }

    /// Where a slot's result begins.
    pub(crate) fn receive_at(&self, slot: u64) -> u64 {
        slot * self.whole + if self.in_place && self.op == Op::ReduceScatter { self.own() } else { 0 }
    }

    /// Bytes of all slots.
    pub(crate) fn extent(&self) -> u64 {
        self.slots * self.whole * self.width
    }

    fn own(&self) -> u64 {
        u64::from(self.rank) * self.count
    }

    pub(crate) fn input(&self) -> Part {
        Part { at: 0, count: self.slots * self.whole, offset: 0, first: self.rank, many: 1 }
    }

    /// What a slot must hold after the operation.
    pub(crate) fn output(&self, slot: u64) -> Vec<Part> {
        let (at, origin) = (self.receive_at(slot), slot * self.whole);
        let part = |offset, first, many| Part { at, count: self.count, offset, first, many };
        let blocks = |offset: fn(&Self, u32) -> u64| {
            (0..self.ranks)
                .map(|from| Part {
                    at: at + u64::from(from) * self.count,
                    count: self.count,
                    offset: origin + offset(self, from),
                    first: from,
                    many: 1,
                })
                .collect()
        };
        match self.op {
            Op::AllReduce => vec![part(origin, 0, self.ranks)],
            Op::Broadcast => vec![part(origin, ROOT, 1)],
            Op::Reduce if self.rank == ROOT => vec![part(origin, 0, self.ranks)],
            Op::ReduceScatter => vec![part(origin + self.own(), 0, self.ranks)],
            Op::SendRecv => vec![part(origin, (self.rank + self.ranks - 1) % self.ranks, 1)],
            Op::AllGather if self.in_place => blocks(|layout, from| u64::from(from) * layout.count),
            Op::AllGather => blocks(|_, _| 0),
            Op::AllToAll => blocks(|layout, _| layout.own()),
            _ => Vec::new(),
        }
    }

    /// Whether doing the operation again on what it left behind leaves the same behind: then the last timed one can be
    /// verified.
    pub(crate) fn repeats(&self, reduction: Option<Reduction>) -> bool {
        !self.in_place || matches!(reduction, None | Some(Reduction::Min | Reduction::Max))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use railgauge_wire::{
        group::CollectiveOptions,
        step::Window,
        terms::{Datatype, TestMetric},
        unit::{Bytes, Nanoseconds},
    };

    use super::*;

    fn layout(op: Op, size: u64, rank: u32, in_place: bool) -> Option<Layout> {
        let options = CollectiveOptions {
            datatype: Datatype::F32,
            reduction: Some(Reduction::Sum),
            in_place,
            graph: false,
            ranks_per_host: 4,
            algorithm: None,
            env: BTreeMap::new(),
            training: None,
        };
        let (window, metric) = (Window::Iterations(20), TestMetric::Bandwidth);
        let collective = CollectiveSpec {
            op,
            metric,
            size: Bytes(size),
            options,
            window,
            warm_up: Nanoseconds::ZERO,
            verify: true,
            seed: 1,
        };
        Layout::new(&collective, rank, 4, 1024)
    }

    #[test]
    fn slots_fill_the_buffer() {
        assert_eq!(layout(Op::AllReduce, 64, 0, false).unwrap().slots, 16);
        assert_eq!(layout(Op::AllReduce, 1024, 0, false).unwrap().slots, 1);
        assert!(layout(Op::AllReduce, 2048, 0, false).is_none());
        assert!(layout(Op::AllGather, 8, 0, false).is_none());
    }

    #[test]
    fn results_stand_where_nccl_puts_them() {
        let all_to_all = layout(Op::AllToAll, 64, 2, false).unwrap().output(1);
        assert_eq!(all_to_all[3], Part { at: 16 + 12, count: 4, offset: 16 + 8, first: 3, many: 1 });
        let scatter = layout(Op::ReduceScatter, 64, 2, true).unwrap();
        assert_eq!((scatter.send_at(1), scatter.receive_at(1)), (16, 24));
        assert_eq!(scatter.output(1), [Part { at: 24, count: 4, offset: 24, first: 0, many: 4 }]);
        let gather = layout(Op::AllGather, 64, 2, true).unwrap();
        assert_eq!((gather.send_at(0), gather.receive_at(0)), (8, 0));
        assert_eq!(gather.output(0)[1], Part { at: 4, count: 4, offset: 4, first: 1, many: 1 });
        assert_eq!(layout(Op::SendRecv, 64, 0, false).unwrap().output(0)[0].first, 3);
        assert!(layout(Op::Reduce, 64, 1, false).unwrap().output(0).is_empty());
    }
}
