//! Places of a collective's operations in the buffers, and their results.
//!
//! Operations walk through the buffers by their size, as in nccl-tests, for the same effect of caches: the k-th of a batch uses slot k
//! mod slots. A rank's data depends on the position in its buffer, so every slot has different data.
//!
//! A training step as in PyTorch's DistributedDataParallel (Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel
//! Training", VLDB 2020, section 3.2.3): gradients arrive in buckets during the backward pass, and each bucket is reduced over all ranks
//! as soon as it is full and the one before it is done. Two things are simpler here: the backward pass is a timer, in which gradients
//! arrive evenly by bytes, and buckets end where they are full, not where a tensor ends.

use std::ops::Range;

use railgauge_wire::{
    Algorithm, Bytes, CollectiveSpec, Exchange, Failure, Kind, Nanoseconds, Op, Reduction, Stage, Training, starts,
};

use super::{
    script::{Job, ROOT, Script, exchange},
    table::{Kernel, Source, kernel},
};
use crate::memory::pattern::Part;

/// In elements unless noted otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    op: Op,
    in_place: bool,
    rank: u32,
    ranks: u32,
    pub count: u64,
    whole: u64,
    pub slots: u64,
    pub width: u64,
    /// The blocks of an operation that only moves them from rank to rank.
    pub exchange: Option<Exchange>,
}

impl Layout {
    /// `None` if the size does not divide or exceeds buffers of `capacity` bytes, or the blocks exceed the size.
    pub(crate) fn new(collective: &CollectiveSpec, rank: u32, ranks: u32, capacity: u64) -> Option<Self> {
        let width = collective.options.datatype.bytes().0;
        let count = collective.count(ranks).filter(|count| *count > 0)?;
        let slots = capacity / collective.size.0;
        let in_place = collective.options.in_place;
        let whole = collective.size.0 / width;
        let one = |peer: u32| (0..ranks).map(|rank| if rank == peer { count } else { 0 }).collect();
        let exchange = match (collective.op, &collective.exchange) {
            (Op::AllToAll, _) => {
                let counts = vec![count; ranks as usize];
                let offsets = vec![u64::from(rank) * count; ranks as usize];
                Some(Exchange { send: counts.clone(), receive: counts, offsets, ..Exchange::default() })
            }
            (Op::AllToAllV, exchange) => Some(exchange.as_deref().filter(|all| fit(all, ranks, whole))?.clone()),
            // Every rank to the next, as nccl-tests' sendrecv.
            (Op::SendRecv, _) => Some(Exchange {
                send: one((rank + 1) % ranks),
                receive: one((rank + ranks - 1) % ranks),
                offsets: vec![0; ranks as usize],
                ..Exchange::default()
            }),
            _ => None,
        };
        (slots > 0).then_some(Self { op: collective.op, in_place, rank, ranks, count, whole, slots, width, exchange })
    }

    pub(crate) fn send_at(&self, slot: u64) -> u64 {
        slot * self.whole + if self.in_place && self.op == Op::AllGather { self.own() } else { 0 }
    }

    pub(crate) fn receive_at(&self, slot: u64) -> u64 {
        slot * self.whole + if self.in_place && self.op == Op::ReduceScatter { self.own() } else { 0 }
    }

    pub(crate) fn extent(&self) -> u64 {
        self.slots * self.whole * self.width
    }

    fn own(&self) -> u64 {
        u64::from(self.rank) * self.count
    }

    pub(crate) fn input(&self) -> Part {
        Part { at: 0, count: self.slots * self.whole, offset: 0, first: self.rank, many: 1 }
    }

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
            Op::AllGather if self.in_place => blocks(|layout, from| u64::from(from) * layout.count),
            Op::AllGather => blocks(|_, _| 0),
            _ => self.received(at, origin),
        }
    }

    /// The blocks of the other ranks; none for operations without.
    fn received(&self, at: u64, origin: u64) -> Vec<Part> {
        let Some(Exchange { receive, offsets, .. }) = &self.exchange else { return Vec::new() };
        let blocks = (0..).zip(starts(receive)).zip(receive.iter().zip(offsets)).filter(|(_, (count, _))| **count > 0);
        let part = |((first, start), (count, offset)): ((u32, u64), (&u64, &u64))| Part {
            at: at + start,
            count: *count,
            offset: origin + offset,
            first,
            many: 1,
        };
        blocks.map(part).collect()
    }

    /// Whether repeating the operation on its result leaves the same result, so that the last timed one can be verified.
    pub(crate) fn repeats(&self, reduction: Option<Reduction>) -> bool {
        !self.in_place || matches!(reduction, None | Some(Reduction::Min | Reduction::Max))
    }
}

/// Whether there is a block for each rank, and all are within `whole` elements at both ends.
fn fit(exchange: &Exchange, ranks: u32, whole: u64) -> bool {
    let Exchange { send, receive, offsets, .. } = exchange;
    let sum = |counts: &[u64]| counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
    let complete = [send, receive, offsets].iter().all(|list| list.len() == ranks as usize);
    let within = |sum: Option<u64>| sum.is_some_and(|sum| sum <= whole);
    complete
        && within(sum(send))
        && within(sum(receive))
        && receive.iter().zip(offsets).all(|(count, offset)| within(offset.checked_add(*count)))
}

pub(crate) struct Ready<'e> {
    pub collective: &'e CollectiveSpec,
    pub layout: Layout,
    /// In order: one part, or the buckets of a training step.
    pub parts: Vec<Portion>,
    pub kernel: Option<Kernel>,
    pub source: Source,
    pub algorithm: Algorithm,
    pub scratch: usize,
}

pub(crate) struct Portion {
    /// Bytes, from the operation's start.
    pub at: Range<usize>,
    /// Earliest start after the operation's.
    pub ready: Nanoseconds,
    pub script: Script,
}

impl<'e> Ready<'e> {
    /// Prepares a collective for rank `rank` of `ranks`, with its data placed by `layout`.
    pub(crate) fn new(collective: &'e CollectiveSpec, layout: Layout, rank: u32, ranks: u32) -> Result<Self, Failure> {
        let refused = |cause: String| Failure::new(Stage::Measure, Kind::Configuration, cause);
        let options = &collective.options;
        let reduction = options.reduction.filter(|_| collective.op.reduces());
        let kernel = match reduction {
            Some(reduction) => Some(kernel(options.datatype, reduction).ok_or_else(|| {
                refused(format!("{reduction} of {} is not supported in host memory", options.datatype))
            })?),
            None => None,
        };
        let job = |count: u64| Job {
            op: collective.op,
            rank: rank as usize,
            ranks: ranks as usize,
            count: fits(count),
            width: fits(layout.width),
            in_place: options.in_place,
        };
        let scripted = |job: &Job| {
            if let Some(blocks) = layout.exchange.as_ref().filter(|_| Algorithm::Pairwise.does(collective.op)) {
                return Ok((Algorithm::Pairwise, exchange(job, blocks)));
            }
            let algorithm = options.algorithm.or_else(|| job.suited());
            let script = algorithm.and_then(|algorithm| Some((algorithm, job.script(algorithm)?)));
            script.ok_or_else(|| {
                let how = algorithm.map_or(String::new(), |algorithm| format!(" by {algorithm}"));
                refused(format!("{}{how} does not run over host memory", collective.op))
            })
        };
        let cut = |training| buckets(layout.count, layout.width, training);
        let buckets = options.training.as_ref().map(cut).unwrap_or_default();
        let largest = buckets.iter().map(|bucket| bucket.at.end - bucket.at.start).max().unwrap_or(layout.count);
        let whole = job(largest);
        let (algorithm, script) = scripted(&whole)?;
        let mut parts = Vec::new();
        for Bucket { at, ready } in &buckets {
            let (_, script) = scripted(&job(at.end - at.start))?;
            parts.push(Portion {
                at: fits(at.start * layout.width)..fits(at.end * layout.width),
                ready: *ready,
                script,
            });
        }
        if parts.is_empty() {
            parts.push(Portion { at: 0..collective.size.as_usize(), ready: Nanoseconds::ZERO, script });
        }
        let source = Source { datatype: options.datatype, reduction, ranks, key: collective.seed };
        Ok(Self { collective, layout, parts, kernel, source, algorithm, scratch: whole.scratch() })
    }

    pub(crate) fn compute(&self) -> Option<Nanoseconds> {
        self.collective.options.training.as_ref().map(|training| training.compute)
    }
}

/// Sizes have been checked against the buffers, which are in memory.
fn fits(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub at: Range<u64>,
    /// Time from the start of the backward pass.
    pub ready: Nanoseconds,
}

/// For `count` gradients of `width` bytes, in order.
pub(crate) fn buckets(count: u64, width: u64, training: &Training) -> Vec<Bucket> {
    let elements = |bytes: Bytes| (bytes.0 / width).max(1);
    let mut buckets = Vec::new();
    let (mut from, mut size) = (0, elements(training.first_bucket));
    while from < count {
        let end = count.min(from + size);
        let ready = u128::from(training.compute.0) * u128::from(end) / u128::from(count);
        buckets.push(Bucket { at: from..end, ready: u64::try_from(ready).map_or(Nanoseconds::MAX, Nanoseconds) });
        (from, size) = (end, elements(training.bucket));
    }
    buckets
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use railgauge_wire::{Bytes, CollectiveOptions, Datatype, Nanoseconds, TestMetric, Window};

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
            exchange: None,
            beside: None,
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
        assert!(layout(Op::AllToAllV, 64, 2, false).is_none(), "without blocks");
        let scatter = layout(Op::ReduceScatter, 64, 2, true).unwrap();
        assert_eq!((scatter.send_at(1), scatter.receive_at(1)), (16, 24));
        assert_eq!(scatter.output(1), [Part { at: 24, count: 4, offset: 24, first: 0, many: 4 }]);
        let gather = layout(Op::AllGather, 64, 2, true).unwrap();
        assert_eq!((gather.send_at(0), gather.receive_at(0)), (8, 0));
        assert_eq!(gather.output(0)[1], Part { at: 4, count: 4, offset: 4, first: 1, many: 1 });
        assert_eq!(layout(Op::SendRecv, 64, 0, false).unwrap().output(0)[0].first, 3);
        assert!(layout(Op::Reduce, 64, 1, false).unwrap().output(0).is_empty());
    }

    #[test]
    fn buckets_cover_all_gradients_and_fill_up_with_the_backward_pass() {
        let training =
            Training { model: None, bucket: Bytes(100), first_bucket: Bytes(10), compute: Nanoseconds(1_000) };
        let found = buckets(75, 4, &training);
        let places: Vec<_> = found.iter().map(|bucket| bucket.at.clone()).collect();
        assert_eq!(places, [0..2, 2..27, 27..52, 52..75]);
        assert_eq!(found.iter().map(|bucket| bucket.ready).collect::<Vec<_>>(), [26, 360, 693, 1_000].map(Nanoseconds));
        let small = buckets(3, 8, &Training { first_bucket: Bytes(1), bucket: Bytes(1), ..training.clone() });
        assert_eq!(small.len(), 3);
        let huge = Training { compute: Nanoseconds::from_secs(3_600), ..training };
        let last = buckets(1 << 40, 1, &Training { bucket: Bytes(1 << 39), ..huge.clone() }).pop().unwrap();
        assert_eq!(last.ready, huge.compute);
    }
}
