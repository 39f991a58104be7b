//! What the initiator is about to do, told to the responder through the mailbox and acknowledged by it, so that both
//! ends always run halves of the same loop.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use super::{
    mailbox::{Mailbox, Slot},
    waiter::Waiter,
};
use crate::bench::control::Control;

/// What comes next on the measured queue pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// One message per queue pair.
    Transfer,
    /// A stream of messages that is not counted (warm-up).
    Stream,
    /// The same stream, counted from here on.
    Counted,
    /// The end of what is counted.
    Over,
    PingPong,
    /// As [`Phase::Stream`], in both directions at once.
    BothWays,
}

impl Phase {
    const ALL: [Self; 6] = [Self::Transfer, Self::Stream, Self::Counted, Self::Over, Self::PingPong, Self::BothWays];

    fn word(self, number: u64) -> u64 {
        let code = Self::ALL.iter().position(|phase| *phase == self).unwrap_or(0) as u64;
        number << 3 | code
    }

    fn of(word: u64) -> Option<Self> {
        if word == 0 { None } else { Self::ALL.get((word & 7) as usize).copied() }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Announcer {
    number: u64,
}

impl Announcer {
    /// Announces a phase and waits until the responder has taken notice.
    pub(crate) fn announce(&mut self, phase: Phase, mailbox: &mut Mailbox, control: &Control) -> Result<(), Failure> {
        // Letters wake nobody: polled even where completions are slept on.
        let mut waiter = Waiter::polling(control, Stage::Measure);
        self.number += 1;
        let word = phase.word(self.number);
        mailbox.write(Slot::Phase, word)?;
        while mailbox.read(Slot::Seen) != word {
            mailbox.reap()?;
            mailbox.reader().check(Stage::Measure)?;
            waiter.pause().map_err(|failure| match failure.kind {
                Kind::Deadline => {
                    Failure::new(Stage::Measure, Kind::Deadline, "the peer's agent did not take its part")
                        .remedy(remedy::PEER_CPU_TIME)
                }
                _ => failure,
            })?;
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Listener {
    seen: u64,
}

impl Listener {
    /// The phase that was announced since the last call, if any. It is to be acknowledged once its part is ready.
    #[inline]
    pub(crate) fn news(&mut self, mailbox: &Mailbox) -> Option<Phase> {
        let word = mailbox.read(Slot::Phase);
        if word == self.seen {
            return None;
        }
        self.seen = word;
        Phase::of(word)
    }

    /// Tells the initiator that it may go on.
    pub(crate) fn acknowledge(&self, mailbox: &mut Mailbox) -> Result<(), Failure> {
        mailbox.write(Slot::Seen, self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_read_back_and_never_repeat() {
        for (number, phase) in (1..).zip(Phase::ALL) {
            assert_eq!(Phase::of(phase.word(number)), Some(phase));
            assert_ne!(phase.word(number), phase.word(number + 1));
        }
        assert_eq!(Phase::of(0), None);
    }
}
