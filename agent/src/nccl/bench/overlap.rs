//! Two communicators of the same ranks at the same time, each with its own stream and buffers: an operation of the first is measured alone
//! and while the second repeats its own, in turn, as gathers of weights and scatters of gradients meet in a sharded training step.
//!
//! NCCL demands that the operations of several communicators of a GPU are launched in the same order on all ranks, or they may wait for
//! each other for ever, and that they fit on the GPU together ("Using multiple NCCL communicators concurrently", NCCL user guide). Here one
//! thread queues both in an order that depends only on numbers all ranks agreed on, after each has run alone, so that connections and
//! buffers exist; and both streams are empty between passes. `NCCL_LAUNCH_ORDER_IMPLICIT` (2.26) would let neither run ahead of the other,
//! so it is left to the plan's `env`.
//!
//! The GPU's own clock shows that they overlapped. The first begins after an operation of the second has ended and the next one is queued
//! behind it; what counts of the second began and ended while the first ran; and it must have ended later than the first. If the GPU was
//! done with the first before everything was queued, the streams may have run dry in between: then the case has none.

use railgauge_wire::{
    Checked, CollectiveOptions, CollectiveSpec, Failure, Kind, Nanoseconds, Op, OtherTimes, Overlap, Reduction, Stage,
    remedy,
};

use super::{AHEAD, Bench, Operation, buffers, spin_until};
use crate::{
    bench::clock,
    collective::bench::{self, Group},
    gpu::{Event, Stream},
    nccl::library::{Shared, UniqueId},
};

/// Fewest passes and most; the test's window ends them in between.
const LEAST: usize = 3;
const MOST: usize = 50;
/// Passes in which the two did not overlap, after which the case fails.
const MOST_SPOILED: usize = 10;
/// Shortest time of the first one's operations in a pass, unless they are many; and in operations of the slower one.
const SPAN: Nanoseconds = Nanoseconds::from_millis(5);
const SLOWER: u64 = 4;
/// Most operations of each in a pass. A stream holds about a thousand launches before the next one waits.
const MOST_FIRST: u64 = 64;
const MOST_SECOND: u64 = 400;
/// How many times as long as the first one alone the second is planned to run, at first and at most: both slow each other.
const STRETCH: u64 = 2;
const MOST_STRETCH: u64 = 16;

impl Bench {
    /// What the second communicator does.
    pub(super) fn spec_of_second(first: &CollectiveSpec, op: Op) -> CollectiveSpec {
        let sum = || first.options.reduction.or(Some(Reduction::Sum));
        let options = CollectiveOptions { reduction: op.reduces().then(sum).flatten(), ..first.options.clone() };
        // Other data, so that one's result is never taken for the other's.
        CollectiveSpec { op, options, beside: None, seed: first.seed ^ 1, ..first.clone() }
    }

    /// Joins the ranks of a communicator to another one. The first rank's id for it travels over the first.
    pub(super) fn join_second(&self) -> Result<Self, Failure> {
        let first = self;
        "joining a second communicator".clone_into(&mut first.phase.lock());
        let device = first.stream.device();
        let (stream, buffers) = (Stream::new(device)?, buffers(device, railgauge_wire::Bytes(first.send.len()))?);
        let mine = if first.communicator.rank == 0 { first.communicator.fresh_id()?.0 } else { [0; 128] };
        let mut id = UniqueId([0; 128]);
        for (to, from) in id.0.as_chunks_mut::<8>().0.iter_mut().zip(mine.as_chunks::<8>().0) {
            *to = first.largest(Nanoseconds(u64::from_le_bytes(*from)))?.0.to_le_bytes();
        }
        let communicator = first.communicator.join_another(id, first.beside.clone())?;
        Bench::new(communicator, stream, buffers, first.phase.clone(), Shared::default())
    }
}

impl Operation<'_> {
    /// Passes of two operations, and what was verified before the first and after the last pass.
    pub(super) fn overlap(&mut self, second: &mut Operation<'_>) -> Result<(Vec<Overlap>, Checked), Failure> {
        let first = self;
        let (verify, window) = (first.collective.verify, first.collective.window.at_most().into());
        let mut checked = Checked::default();
        first.say("the second communicator alone");
        second.fill()?;
        if verify {
            checked += bench::verified(second, false)?;
        }
        let each = (trial(first, first)?, trial(first, second)?);
        let marks = Marks::new(first)?;
        let (mut passes, mut spoiled, mut stretch, mut last) = (Vec::new(), 0, STRETCH, Count::new(each, STRETCH));
        let begin = clock::now();
        while passes.len() < MOST {
            let count = Count::new(each, stretch);
            first.say("each of two communicators alone");
            let alone = (marks.alone(first, first, count.first)?, marks.alone(first, second, count.alone)?);
            first.say("two communicators at the same time");
            first.poison(first.last(count.first))?;
            second.poison(second.last(count.second))?;
            let seen = marks.together(first, second, count)?;
            last = count;
            match (first.largest(Nanoseconds(seen.map_or_else(|short| short as u64, |_| 0)))?.0, seen) {
                (0, Ok(seen)) => passes.push(seen.pass(alone)),
                (why, _) if why == Short::Ended as u64 && stretch < MOST_STRETCH => stretch *= 2,
                // A busy processor may spoil some.
                _ if spoiled < MOST_SPOILED => spoiled += 1,
                (why, _) => return Err(too_short(why)),
            }
            let elapsed = first.largest(clock::now() - begin)?;
            if passes.len() >= LEAST && elapsed >= window {
                break;
            }
        }
        if verify {
            first.say("verifying what both communicators left behind");
            checked += first.compare(first.last(last.first))?;
            checked += second.compare(second.last(last.second))?;
        }
        first.say("idle");
        Ok((passes, checked))
    }
}

/// The time of one operation alone, at the slowest rank.
fn trial(first: &Operation<'_>, of: &Operation<'_>) -> Result<Nanoseconds, Failure> {
    let mut operations = 1;
    loop {
        first.bench.largest(Nanoseconds::ZERO)?;
        let begin = clock::now();
        of.queue_some(0..operations)?;
        of.bench.settle()?;
        let each = (first.bench.largest(clock::now() - begin)? / operations).max(Nanoseconds(1));
        if operations > 1 {
            return Ok(each);
        }
        operations = (SPAN / each).clamp(2, 20);
    }
}

impl Operation<'_> {
    fn queue_some(&self, numbers: std::ops::Range<u64>) -> Result<(), Failure> {
        numbers.into_iter().try_for_each(|k| self.queue(&self.call(k % self.layout.slots)))
    }

    /// The slot of the last of so many operations.
    fn last(&self, operations: u64) -> u64 {
        (operations - 1) % self.layout.slots
    }

    fn line_up(&self) -> Result<(), Failure> {
        let latest = self.bench.largest(clock::now())?;
        if self.collective.options.ranks_per_host == self.bench.communicator.ranks {
            spin_until(latest + AHEAD);
        }
        Ok(())
    }
}

/// Operations of a pass, equal on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    first: u64,
    second: u64,
    /// Of the second when it is measured alone.
    alone: u64,
}

impl Count {
    /// `each`: the time of one operation of each alone.
    fn new((first, second): (Nanoseconds, Nanoseconds), stretch: u64) -> Self {
        let span = SPAN.max(first.max(second).saturating_mul(SLOWER));
        let count = span.0.div_ceil(first.0).clamp(2, MOST_FIRST);
        // One that ends before the first begins, and one that ends after it.
        let while_it_runs = first.0.saturating_mul(count * stretch).div_ceil(second.0);
        let alone = (first.0.saturating_mul(count) / second.0).clamp(2, MOST_FIRST);
        Self { first: count, second: while_it_runs.saturating_add(2).min(MOST_SECOND), alone }
    }

    /// How many of the second are queued before number `k` of the first.
    fn before(self, k: u64) -> u64 {
        (2 + (k + 1) * self.second / self.first).min(self.second)
    }
}

/// Why a pass says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Short {
    /// The second one ended before the first.
    Ended = 1,
    /// None of the second one's began and ended while the first ran.
    Few,
    /// The GPU was faster than the thread that queues.
    Starved,
}

fn too_short(why: u64) -> Failure {
    let what = match why {
        1 => "the second communicator's operations ended before those of the first",
        2 => "no operation of the second communicator began and ended while those of the first ran",
        _ => "the GPU ended the first communicator's operations before all were queued",
    };
    let cause = format!("{what}, so they were not measured together");
    Failure::new(Stage::Measure, Kind::Configuration, cause).remedy(remedy::LARGER_SIZES)
}

/// A pass with both, in nanoseconds of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    first: Nanoseconds,
    second: Nanoseconds,
    operations: u64,
}

impl Seen {
    /// From `begin` to `end` ran `count` operations of the first, `ticks` the ends of the second's, on one clock.
    fn new((begin, end): (Nanoseconds, Nanoseconds), count: u64, ticks: &[Nanoseconds]) -> Result<Self, Short> {
        if ticks.last().is_none_or(|last| *last < end) {
            return Err(Short::Ended);
        }
        let inside: Vec<Nanoseconds> = ticks.iter().copied().filter(|tick| (begin..=end).contains(tick)).collect();
        let [from, between @ .., until] = inside.as_slice() else { return Err(Short::Few) };
        let operations = between.len() as u64 + 1;
        let each = |time: Nanoseconds, count: u64| (time / count.max(1)).max(Nanoseconds(1));
        Ok(Self { first: each(end - begin, count), second: each(*until - *from, operations), operations })
    }

    fn pass(self, (first, second): (Nanoseconds, Nanoseconds)) -> Overlap {
        let other = OtherTimes { alone: second, together: self.second, operations: self.operations };
        Overlap { alone: first, together: self.first, other: Some(other) }
    }
}

/// Moments in the two streams, on the GPU's clock.
struct Marks {
    begin: Event,
    end: Event,
    ticks: Vec<Event>,
}

impl Marks {
    fn new(first: &Operation<'_>) -> Result<Self, Failure> {
        let event = || Event::new(first.bench.stream.device());
        let ticks = (0..MOST_SECOND).map(|_| event()).collect::<Result<_, _>>()?;
        Ok(Self { begin: event()?, end: event()?, ticks })
    }

    fn alone(&self, first: &Operation<'_>, of: &Operation<'_>, operations: u64) -> Result<Nanoseconds, Failure> {
        first.line_up()?;
        self.begin.record(&of.bench.stream)?;
        of.queue_some(0..operations)?;
        self.end.record(&of.bench.stream)?;
        of.bench.settle()?;
        Ok((self.end.since(&self.begin)? / operations).max(Nanoseconds(1)))
    }

    fn together(
        &self,
        first: &Operation<'_>,
        second: &Operation<'_>,
        count: Count,
    ) -> Result<Result<Seen, Short>, Failure> {
        let (here, there) = (&first.bench.stream, &second.bench.stream);
        let mut ticks = (0..).zip(&self.ticks[..count.second as usize]);
        let mut beside = |until: u64| {
            ticks.by_ref().take(until as usize).try_for_each(|(k, tick)| {
                second.queue_some(k..k + 1)?;
                tick.record(there)
            })
        };
        first.line_up()?;
        beside(1)?;
        self.ticks[0].holds_back(here)?;
        self.begin.record(here)?;
        let mut queued = 1;
        for k in 0..count.first {
            beside(count.before(k) - queued)?;
            queued = count.before(k);
            first.queue_some(k..k + 1)?;
        }
        self.end.record(here)?;
        let starved = here.is_done()?;
        first.bench.settle()?;
        second.bench.settle()?;
        if starved {
            return Ok(Err(Short::Starved));
        }
        let since = |event: &Event| event.since(&self.ticks[0]);
        let ticks = self.ticks[..count.second as usize].iter().map(since).collect::<Result<Vec<_>, _>>()?;
        Ok(Seen::new((since(&self.begin)?, since(&self.end)?), count.first, &ticks))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(all: &[u64]) -> Vec<Nanoseconds> {
        all.iter().copied().map(Nanoseconds).collect()
    }

    #[test]
    fn only_what_ran_within_the_other_counts() {
        let seen = |ticks: &[u64]| Seen::new((Nanoseconds(10), Nanoseconds(50)), 4, &times(ticks));
        let right = Seen { first: Nanoseconds(10), second: Nanoseconds(8), operations: 4 };
        assert_eq!(seen(&[0, 12, 20, 28, 36, 44, 55]), Ok(right));
        assert_eq!(seen(&[0, 12, 20, 28, 36, 44]), Err(Short::Ended), "it ended before the first");
        assert_eq!(seen(&[0, 30, 70]), Err(Short::Few), "none began and ended in time");
        assert_eq!(seen(&[0, 60]), Err(Short::Few));
        assert_eq!(seen(&[]), Err(Short::Ended));
        assert_eq!(seen(&[0, 10, 50]).map(|seen| seen.operations), Ok(1));
        let overlap = right.pass((Nanoseconds(5), Nanoseconds(6)));
        assert_eq!((overlap.loss(), overlap.loss_of_other()), (Some(50.0), Some(25.0)));
    }

    proptest! {
        #[test]
        fn the_second_is_queued_ahead_and_outlasts_the_first(one in 1_u64..1 << 40, other in 1_u64..1 << 40, stretch in 1_u64..=16) {
            let count = Count::new((Nanoseconds(one), Nanoseconds(other)), stretch);
            prop_assert!((2..=MOST_FIRST).contains(&count.first) && (3..=MOST_SECOND).contains(&count.second));
            prop_assert!(count.second == MOST_SECOND || count.second * other >= count.first * one * stretch);
            let before: Vec<u64> = (0..count.first).map(|k| count.before(k)).collect();
            prop_assert!(before.is_sorted() && before[0] >= 2 && *before.last().unwrap() == count.second);
            // In step: neither stream is left with nothing behind what runs.
            prop_assert!(before.iter().zip(0..).all(|(queued, k)| *queued * count.first >= (k + 1) * count.second || *queued == count.second));
        }
    }
}
