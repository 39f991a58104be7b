//! Who does what next: phases that the initiator announces through the mailbox and the responder acknowledges, and turns in a case that the
//! ends run by themselves.

use std::{
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle, Thread},
    time::{Duration, Instant},
};

use railgauge_wire::{Failure, Kind, Stage, remedy};

use super::{Mailbox, Slot, Waiter};
use crate::{bench::control::Control, system::affinity, worker};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// One message per queue pair.
    Transfer,
    /// A stream of messages that is not counted (warm-up).
    Stream,
    Counted,
    Over,
    PingPong,
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
        // Polled even where completions are slept on, since letters do not wake a thread.
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
    /// The phase announced since the last call, if any. Acknowledge it once its part is ready.
    #[inline]
    pub(crate) fn news(&mut self, mailbox: &Mailbox) -> Option<Phase> {
        let word = mailbox.read(Slot::Phase);
        if word == self.seen {
            return None;
        }
        self.seen = word;
        Phase::of(word)
    }

    pub(crate) fn acknowledge(&self, mailbox: &mut Mailbox) -> Result<(), Failure> {
        mailbox.write(Slot::Seen, self.seen)
    }
}

/// Busy time before the first pause.
const SPIN: Duration = Duration::from_micros(50);
const SHORT: Duration = Duration::from_micros(50);
/// The same for an end that may be part of what is measured.
const QUIET: Duration = Duration::from_millis(1);
/// Longest pause of an end that has nothing else to do.
const IDLE: Duration = Duration::from_millis(1);
/// Longest pause of an end that may be part of what is measured. Pauses grow with the elapsed time, so that polls become rare: wake-ups
/// cost the processor that answers pings, and ten per second made reads 15 % slower.
const MEASURED: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Turns {
    given: u64,
    taken: u64,
}

impl Turns {
    pub(crate) fn give(&mut self, mailbox: &mut Mailbox) -> Result<(), Failure> {
        self.given += 1;
        mailbox.write(Slot::Turn, self.given)
    }

    pub(crate) fn take(&mut self, mailbox: &mut Mailbox, control: &Control) -> Result<(), Failure> {
        let begun = Instant::now();
        while mailbox.read(Slot::Turn) <= self.taken {
            mailbox.reap()?;
            mailbox.reader().check(Stage::Measure)?;
            control.check(Stage::Measure)?;
            let waited = begun.elapsed();
            if waited < SPIN { thread::yield_now() } else { thread::sleep(pause(waited, SHORT..=IDLE)) }
        }
        self.taken += 1;
        Ok(())
    }

    /// Ends a step when the peer gives the turn, or has failed. Neither is expected before the given time.
    pub(crate) fn watch(&self, mailbox: &Mailbox, control: &Control, not_before: Duration) -> Result<Watcher, Failure> {
        let (reader, taken, control) = (mailbox.reader(), self.taken, control.clone());
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let held = affinity::allowed().unwrap_or_default();
        let look = move || {
            // On the same core as a loop that never sleeps, either would wait for the other's time slice. A kernel that refuses leaves it
            // there.
            let _ = affinity::leave(&held);
            let begun = Instant::now();
            while !seen.load(Ordering::Relaxed) {
                if reader.read(Slot::Turn) > taken || reader.read(Slot::Failed) > 0 {
                    control.stop();
                    return;
                }
                let past = begun.elapsed();
                let naps = if not_before.is_zero() { SHORT..=IDLE } else { QUIET..=MEASURED };
                thread::park_timeout(match past.checked_sub(not_before) {
                    None => not_before - past,
                    Some(over) => pause(over, naps),
                });
            }
        };
        let handle = worker::start("turn", look).map_err(|error| {
            Failure::new(Stage::Measure, Kind::Configuration, format!("no thread to look for the peer's turn: {error}"))
        })?;
        Ok(Watcher { over, thread: handle.thread().clone(), handle: Some(handle) })
    }
}

/// A pause that is an eighth of the time that has passed: noticing takes no more than that share longer.
fn pause(passed: Duration, naps: RangeInclusive<Duration>) -> Duration {
    (passed / 8).clamp(*naps.start(), *naps.end())
}

pub(crate) struct Watcher {
    over: Arc<AtomicBool>,
    thread: Thread,
    handle: Option<JoinHandle<()>>,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.unpark();
        if let Some(handle) = self.handle.take() {
            // It does nothing that could panic.
            let _ = handle.join();
        }
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
