//! A training step as the network sees it: gradients come in buckets while the backward pass goes on, and each bucket is
//! reduced over all ranks as soon as it is full and the one before it is done.
//!
//! This is how data-parallel training works with PyTorch's DistributedDataParallel (Li et al., "PyTorch Distributed:
//! Experiences on Accelerating Data Parallel Training", VLDB 2020, section 3.2.3). Two things are simpler here: the
//! backward pass is a timer, in which gradients come evenly by bytes, and buckets end where they are full, not where a
//! tensor ends.

use std::ops::Range;

use railgauge_wire::{
    group::Training,
    unit::{Bytes, Nanoseconds},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub at: Range<u64>,
    /// When the backward pass has filled it, from its start.
    pub ready: Nanoseconds,
}

/// The buckets of `count` gradients of `width` bytes, in order.
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
    use super::*;

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
