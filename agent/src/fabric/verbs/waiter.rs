//! What a loop does while nothing has completed: spin, give the processor away, or sleep until the device wakes it.

use std::{sync::Arc, time::Duration};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
    unit::Nanoseconds,
};

use super::mailbox::Reader;
use crate::{
    bench::control::Control,
    system::wait::{Alarm, Interrupted},
    verbs::{completion::CompletionQueue, events::Watch},
};

/// Empty polls between two looks at the flags and the deadline.
const LOOK_EVERY: u32 = 1024;

/// Time between two looks where something completes all the time: a look is a system call.
const LOOK_AFTER: Nanoseconds = Nanoseconds::from_millis(100);

/// Longest sleep in event mode. Neither the mailbox nor a flag wakes anybody, so they are looked at this often.
const NAP: Duration = Duration::from_millis(2);

/// The same where there is no mailbox to look at: the controller's word interrupts the sleep, and this is for the deadline
/// and for a word that came a moment before it. Being woken for nothing is part of the samples: ten times a second made
/// reads of 430 µs some 15 % slower, in the median too.
const LONG_NAP: Duration = Duration::from_secs(1);

pub struct Waiter {
    control: Control,
    stage: Stage,
    /// Only one processor to run on: whoever makes progress for us needs it.
    alone: bool,
    idle: u32,
    /// When a loop that never pauses looks next; zero before its first completion.
    next: Nanoseconds,
    sleeping: Option<Arc<CompletionQueue>>,
    armed: bool,
    events: u32,
    nap: Duration,
    woken: Option<Woken>,
    watch: Option<(Arc<Watch>, Reader)>,
}

struct Woken {
    _alarm: Alarm,
    _controller: Option<Interrupted>,
}

impl Waiter {
    /// Waits on `queue`: by polling, or sleeping if it has a channel.
    pub fn new(queue: &Arc<CompletionQueue>, control: &Control, stage: Stage) -> Self {
        let mut waiter = Self::polling(control, stage);
        waiter.sleeping = queue.channel().is_some().then(|| queue.clone());
        waiter
    }

    /// The same where nothing but completions has to be noticed soon.
    #[must_use]
    pub fn undisturbed(mut self) -> Self {
        self.nap = LONG_NAP;
        self
    }

    pub fn polling(control: &Control, stage: Stage) -> Self {
        let alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
        Self {
            control: control.clone(),
            stage,
            alone,
            idle: 0,
            next: Nanoseconds::ZERO,
            sleeping: None,
            armed: false,
            events: 0,
            nap: NAP,
            woken: None,
            watch: None,
        }
    }

    /// The same, ended by events that concern the link and by a failure of the peer, too.
    #[must_use]
    pub(crate) fn watching(mut self, watch: &Arc<Watch>, peer: Reader) -> Self {
        self.watch = Some((watch.clone(), peer));
        self
    }

    #[cold]
    pub fn look(&self) -> Result<(), Failure> {
        self.control.check(self.stage)?;
        self.watch
            .as_ref()
            .map_or(Ok(()), |(watch, peer)| watch.check(self.stage).and_then(|()| peer.check(self.stage)))
    }

    pub fn stage(&self) -> Stage {
        self.stage
    }

    #[inline]
    pub fn sleeps(&self) -> bool {
        self.sleeping.is_some()
    }

    /// Messages of a pass have completed by `now`. A loop that is never idle looks here, now and then.
    #[inline]
    pub fn completed(&mut self, now: Nanoseconds) -> Result<(), Failure> {
        self.control.progressed(now);
        if self.is_due(now) { self.look() } else { Ok(()) }
    }

    /// Whether it looks by now, though it was never idle. What a look takes belongs to no sample: a loop that records them
    /// asks first, then calls [`look`](Self::look) and begins its next sample after it.
    #[inline]
    pub fn is_due(&mut self, now: Nanoseconds) -> bool {
        if now < self.next {
            return false;
        }
        std::mem::replace(&mut self.next, now.saturating_add(LOOK_AFTER)) != Nanoseconds::ZERO
    }

    #[inline]
    pub fn progress(&mut self) {
        self.idle = 0;
    }

    /// Nothing has completed: waits a little. Call it after every empty poll, then poll again.
    #[inline]
    pub fn pause(&mut self) -> Result<(), Failure> {
        if self.sleeping.is_some() {
            return self.sleep();
        }
        self.idle = self.idle.wrapping_add(1);
        // No hint to the processor that this is a spin: its pause (140 cycles since Skylake, a way out of the guest on
        // an emulated one) would be part of every latency.
        if self.alone {
            std::thread::yield_now();
        }
        if self.idle.is_multiple_of(LOOK_EVERY) { self.look() } else { Ok(()) }
    }

    /// A message is on its way, and everything that had completed before was taken: sleeps at once if the queue is armed,
    /// instead of looking at what cannot be there yet.
    #[inline]
    pub fn rest(&mut self) -> Result<(), Failure> {
        if self.armed { self.sleep() } else { Ok(()) }
    }

    /// Whether the controller wants a `Serve` step to end.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.control.stopped()
    }

    /// Arms the queue first and lets the caller poll once more, for what came in between; then sleeps.
    ///
    /// Waiting for an event and taking it are one call, and the queue is armed anew on waking. A message that follows
    /// is then posted to an armed queue, and this thread sleeps at once after it: a fabric whose work the kernel does
    /// gets this processor, and not another one that has to wake up first.
    fn sleep(&mut self) -> Result<(), Failure> {
        let Some(queue) = &self.sleeping else { return Ok(()) };
        if !self.armed {
            queue.arm()?;
            self.armed = true;
            return Ok(());
        }
        if self.woken.is_none() {
            self.woken = Some(block(queue, self.nap, &self.control).map_err(|error| {
                Failure::new(self.stage, Kind::Configuration, format!("no timer to be woken by: {error}"))
                    .remedy(remedy::RAISE_PENDING_SIGNALS)
            })?);
        }
        // An armed queue tells once.
        if queue.take_event()? {
            queue.arm()?;
            self.events = self.events.wrapping_add(1);
            // The alarm leads to a look as a rule, but not where this thread hardly sleeps.
            if !self.events.is_multiple_of(LOOK_EVERY) {
                return Ok(());
            }
        }
        self.look()
    }
}

/// Makes taking an event wait for it, and something end the wait: the controller's word, and every `nap`.
fn block(queue: &CompletionQueue, nap: Duration, control: &Control) -> std::io::Result<Woken> {
    let woken = Woken { _alarm: Alarm::every(nap)?, _controller: control.interrupting()? };
    queue.channel().map_or(Ok(()), |channel| channel.set_blocking(true))?;
    Ok(woken)
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // An event that nobody takes would keep the queue from being destroyed.
        if let Some(queue) = &self.sleeping
            && queue.channel().is_some_and(|channel| channel.set_blocking(false).is_ok())
        {
            while let Ok(true) = queue.take_event() {}
        }
    }
}
