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
    ///
    /// # Errors
    /// The fabric; or [`Kind::Corruption`] if an atomic brought back another word than was there.
    pub(crate) fn transfer_atomic(&mut self, op: Op, pattern: &Pattern, control: &Control) -> Result<(), Failure> {
        for i in 0..self.connection.pairs.len() {
            let (mut wanted, mut poison) = ([0; 8], [0; 8]);
            pattern::fill(&mut wanted, pattern, i as u32);
            pattern::poison(&mut poison, pattern, i as u32);
            let (wanted, poison) = (u64::from_ne_bytes(wanted), u64::from_ne_bytes(poison));
            let brought = if op == Op::AtomicFadd {
                let add = wanted.wrapping_sub(poison);
                [
                    self.once(i, Verb::FetchAdd { add: 0 }, 0, control)?,
                    self.once(i, Verb::FetchAdd { add }, 0, control)?,
                ]
            } else {
                // The first one compares with another word and must change nothing.
                let wrong = Verb::CompareSwap { compare: !poison, swap: 0 };
                let right = Verb::CompareSwap { compare: poison, swap: wanted };
                [self.once(i, wrong, 0, control)?, self.once(i, right, 0, control)?]
            };
            if let Some(other) = brought.iter().find(|word| **word != poison) {
                let cause = format!("{op} brought back {other:#018x} where {poison:#018x} had been put");
                return Err(Failure::new(Stage::Verify, Kind::Corruption, cause));
            }
        }
        Ok(())
    }

    /// The words all queue pairs work on, fetched by adding nothing to them.
    ///
    /// # Errors
    /// The fabric.
    pub(crate) fn words(&mut self, control: &Control) -> Result<Vec<u64>, Failure> {
        let walk = Layout::words();
        let all = (0..self.connection.pairs.len()).flat_map(|i| (0..walk.places()).map(move |n| (i, walk.place(n))));
        all.map(|(i, place)| self.once(i, Verb::FetchAdd { add: 0 }, place, control)).collect()
    }

    /// One atomic on queue pair `i`, on the word at offset `place` of its half; answers what it brought back.
    fn once(&mut self, i: usize, verb: Verb, place: u64, control: &Control) -> Result<u64, Failure> {
        let batches = Batches { list: 1, signal_every: 1, inline: 0 };
        let like = self.template(i, Op::AtomicFadd, 8, Walk::default(), batches)?;
        let (local, remote) = (like.local + place, like.remote + place);
        let mut sends = self.ring(i, Template { verb, local, remote, ..like })?;
        self.move_once(std::slice::from_mut(&mut sends), Stage::Verify, control)?;
        self.resources.region.backing().word(local)
    }
}

/// `Err` unless the words changed by exactly what was done to them.
///
/// # Errors
/// [`Kind::Corruption`]: operations were lost or done twice.
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
