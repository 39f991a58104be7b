//! Whose turn it is in a case that the two ends lead by themselves: a word of the mailbox counts the turns that its writer gave.
//! Letters wake nobody, so whoever waits looks for them.

use std::{
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle, Thread},
    time::{Duration, Instant},
};

use railgauge_wire::failure::{Failure, Kind, Stage};

use super::mailbox::{Mailbox, Slot};
use crate::{
    bench::control::Control,
    system::{affinity, workers},
};

/// How long a turn is looked for without a pause.
const SPIN: Duration = Duration::from_micros(50);
const SHORT: Duration = Duration::from_micros(50);
/// The same for an end that may be part of what is measured.
const QUIET: Duration = Duration::from_millis(1);
/// Longest pause of an end that has nothing else to do.
const IDLE: Duration = Duration::from_millis(1);
/// Longest pause of an end that may be part of what is measured. The pauses grow with the time that has passed, so that the looks
/// grow rare: being woken costs the processor of whoever answers pings, and ten times a second made reads 15 % slower
/// (docs/measured.md).
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

    /// Waits for the peer's turn and takes it.
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

    /// Ends a step when the peer gives the turn, or has failed. Nothing of that is expected before so much time has passed.
    pub(crate) fn watch(&self, mailbox: &Mailbox, control: &Control, not_before: Duration) -> Result<Watcher, Failure> {
        let (reader, taken, control) = (mailbox.reader(), self.taken, control.clone());
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let held = affinity::allowed().unwrap_or_default();
        let look = move || {
            // Beside a loop that never sleeps, on the same core, either would wait for the other's time slice. A kernel that refuses
            // leaves it there.
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
        let handle = workers::start("turn", look).map_err(|error| {
            Failure::new(Stage::Measure, Kind::Configuration, format!("no thread to look for the peer's turn: {error}"))
        })?;
        Ok(Watcher { over, thread: handle.thread().clone(), handle: Some(handle) })
    }
}

/// A pause that is an eighth of the time that has passed: noticing takes no more than that share longer.
fn pause(passed: Duration, naps: RangeInclusive<Duration>) -> Duration {
    (passed / 8).clamp(*naps.start(), *naps.end())
}

/// Looks for the peer's turn while it lives.
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
