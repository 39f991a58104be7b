//! Atomics: moved once for a verify pass, and added up after a timed one.
//!
//! A verify pass works on the first word of each queue pair's receiving half at the responder. A timed one walks through the
//! words at the beginnings of the cache lines of a page there, as perftest does: a device that does atomics on one address one
//! after the other does those on several at once.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    step::Pattern,
    terms::Op,
};

use super::{
    end::{Batches, VerbsEnd},
    layout::Layout,
};
use crate::{
    bench::control::Control,
    memory::pattern,
    verbs::send::{Template, Verb, Walk},
};

impl VerbsEnd {
    /// Puts the pattern's word in place of the poison by atomics alone, and checks what they bring back on the way.
    pub(crate) fn transfer_atomic(&mut self, op: Op, pattern: &Pattern, control: &Control) -> Result<(), Failure> {
        for i in 0..self.connection.pairs.len() {
            let (mut wanted, mut poison) = ([0; 8], [0; 8]);
            pattern::fill(&mut wanted, pattern, i as u32);
            pattern::poison(&mut poison, pattern, i as u32);
            let (wanted, poison) = (u64::from_ne_bytes(wanted), u64::from_ne_bytes(poison));
            let brought = if op == Op::AtomicFadd {
                let add = wanted.wrapping_sub(poison);
                [self.once(i, Verb::FetchAdd { add: 0 }, control)?, self.once(i, Verb::FetchAdd { add }, control)?]
            } else {
                // The first one compares with another word and must change nothing.
                let wrong = Verb::CompareSwap { compare: !poison, swap: 0 };
                let right = Verb::CompareSwap { compare: poison, swap: wanted };
                [self.once(i, wrong, control)?, self.once(i, right, control)?]
            };
            if let Some(other) = brought.iter().find(|word| **word != poison) {
                let cause = format!("{op} brought back {other:#018x} where {poison:#018x} had been put");
                return Err(Failure::new(Stage::Verify, Kind::Corruption, cause));
            }
        }
        Ok(())
    }

    /// The words all queue pairs work on: their page is read whole, once per queue pair and all at once, so that few round
    /// trips go by before a start that several flows have in common. A read comes after the atomics before it on its queue pair
    /// (InfiniBand Architecture Specification, volume 1, 9.5 Transaction Ordering).
    pub(crate) fn words(&mut self, control: &Control) -> Result<Vec<u64>, Failure> {
        let walk = Layout::words();
        let pages = (0..self.connection.pairs.len()).map(|i| self.atomic(i)).collect::<Result<Vec<_>, _>>()?;
        let page = |like: &Template| Template {
            verb: Verb::Read,
            size: u32::try_from(walk.span).unwrap_or(u32::MAX),
            ..like.clone()
        };
        let reads = pages.iter().enumerate().map(|(i, like)| self.ring(i, page(like)));
        let mut reads = reads.collect::<Result<Vec<_>, _>>()?;
        self.move_once(&mut reads, &mut self.waiter(control, Stage::Measure))?;
        let places = pages.iter().flat_map(|like| (0..walk.places()).map(|n| like.local + walk.place(n)));
        places.map(|place| self.resources.region.backing().word(place)).collect()
    }

    /// One atomic on the first word of queue pair `i`; answers what it brought back.
    fn once(&mut self, i: usize, verb: Verb, control: &Control) -> Result<u64, Failure> {
        let like = self.atomic(i)?;
        let local = like.local;
        let mut sends = self.ring(i, Template { verb, ..like })?;
        self.move_once(std::slice::from_mut(&mut sends), &mut self.waiter(control, Stage::Verify))?;
        self.resources.region.backing().word(local)
    }

    /// An atomic of queue pair `i` that completes by itself.
    fn atomic(&self, i: usize) -> Result<Template, Failure> {
        let batches = Batches { list: 1, signal_every: 1, inline: 0 };
        self.template(i, Op::AtomicFadd, 8, Walk::default(), batches)
    }
}

/// `Err` unless the words changed by exactly what was done to them.
pub(crate) fn must_add_up(op: Op, before: &[u64], after: &[u64], operations: u64) -> Result<(), Failure> {
    let changes = || before.iter().zip(after).map(|(before, after)| after.wrapping_sub(*before));
    let change = changes().fold(0, u64::wrapping_add);
    let expected = if op == Op::AtomicFadd { operations } else { 0 };
    // A swap of nothing leaves every word as it was, not only their sum.
    if change == expected && (op == Op::AtomicFadd || changes().all(|change| change == 0)) {
        return Ok(());
    }
    let cause = format!(
        "{operations} operations {op} changed their words by {change}, not by {expected}: operations were lost or \
         carried out twice"
    );
    Err(Failure::new(Stage::Measure, Kind::Corruption, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_checked_across_the_wrap() {
        assert!(must_add_up(Op::AtomicFadd, &[u64::MAX, 5], &[1, 8], 5).is_ok());
        assert_eq!(must_add_up(Op::AtomicFadd, &[0], &[4], 5).unwrap_err().kind, Kind::Corruption);
        assert!(must_add_up(Op::AtomicCas, &[7], &[7], 100).is_ok());
        assert!(must_add_up(Op::AtomicCas, &[7], &[8], 100).is_err());
        assert!(must_add_up(Op::AtomicCas, &[7, 7], &[8, 6], 100).is_err());
    }
}
