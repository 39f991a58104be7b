//! What was completed in each consecutive piece of a window: shows a link that flaps, and feeds the stop rule.

use railgauge_wire::{measure::SLICE, unit::Nanoseconds};

/// Length of a fine slice. Ten of them make one slice of a record.
pub(super) const FINE: Nanoseconds = Nanoseconds::from_millis(10);

const _: () = assert!(FINE.0 * 10 == SLICE.0);

/// Counts per 10 ms, in whatever unit the caller adds.
#[derive(Debug, Clone)]
pub(crate) struct Slices {
    origin: Nanoseconds,
    /// End of the slice that is being filled.
    mark: Nanoseconds,
    current: u64,
    full: Vec<u64>,
}

impl Slices {
    /// Starts at `origin`. Has room for a minute before it allocates.
    pub(crate) fn new(origin: Nanoseconds) -> Self {
        Self { origin, mark: origin + FINE, current: 0, full: Vec::with_capacity(6_000) }
    }

    /// The same slices, nothing in them yet, from `origin` on.
    pub(crate) fn start(&mut self, origin: Nanoseconds) {
        (self.origin, self.mark) = (origin, origin + FINE);
    }

    /// Adds what was completed by `now`. `now` never runs backwards.
    #[inline]
    pub(crate) fn add(&mut self, now: Nanoseconds, amount: u64) {
        if now >= self.mark {
            self.turn(now);
        }
        self.current += amount;
    }

    /// End of the slice that is being filled.
    #[inline]
    pub(super) fn mark(&self) -> Nanoseconds {
        self.mark
    }

    #[cold]
    fn turn(&mut self, now: Nanoseconds) {
        let passed = (now - self.mark) / FINE + 1;
        self.full.push(std::mem::take(&mut self.current));
        // Whatever nothing was completed in is a slice of zero, not a slice left out.
        self.full.extend(std::iter::repeat_n(0, passed as usize - 1));
        self.mark += FINE * passed;
    }

    pub(super) fn fine(&self) -> &[u64] {
        &self.full
    }

    /// The slices of a window that ended at `end`, 100 ms each; an incomplete last one is dropped.
    pub(crate) fn finish(mut self, end: Nanoseconds) -> Vec<u64> {
        self.full.push(self.current);
        let whole = end.saturating_sub(self.origin) / SLICE;
        (0..whole as usize).map(|i| self.full.iter().skip(i * 10).take(10).sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_silence_is_slices_of_zero() {
        let origin = Nanoseconds(1_000);
        let mut slices = Slices::new(origin);
        slices.add(origin, 5);
        slices.add(origin + SLICE * 3, 7);
        assert_eq!(slices.clone().finish(origin + SLICE * 4), [5, 0, 0, 7]);
        assert_eq!(slices.finish(origin + SLICE * 4 - Nanoseconds(1)), [5, 0, 0]);
    }

    proptest! {
        #[test]
        fn every_amount_lands_in_the_slice_of_its_time(steps in prop::collection::vec((0..3 * SLICE.0, 0..100u64), 0..40)) {
            let mut slices = Slices::new(Nanoseconds::ZERO);
            let mut now = Nanoseconds::ZERO;
            let mut wanted = vec![0; 120];
            for (step, amount) in steps {
                now += Nanoseconds(step);
                slices.add(now, amount);
                wanted[(now / SLICE) as usize] += amount;
            }
            let end = SLICE * (now / SLICE + 1);
            wanted.truncate((end / SLICE) as usize);
            prop_assert_eq!(slices.finish(end), wanted);
        }
    }
}
