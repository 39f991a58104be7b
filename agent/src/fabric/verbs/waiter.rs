//! Idle behaviour of loops: spin, yield, or sleep until the device wakes the thread.

use std::{sync::Arc, time::Duration};

use railgauge_wire::{Failure, Kind, Nanoseconds, Stage, remedy};

use super::Reader;
use crate::{
    bench::control::Control,
    system::wait::{Alarm, Interrupted},
    verbs::{CompletionQueue, Watch},
};

const LOOK_EVERY: u32 = 1024;

/// Time between checks in a busy loop: a check is a system call.
const LOOK_AFTER: Nanoseconds = Nanoseconds::from_millis(100);

/// Longest sleep in event mode. Neither the mailbox nor a flag wakes a thread, so they are polled this often.
const NAP: Duration = Duration::from_millis(2);

/// The same without a mailbox: the controller interrupts the sleep, and this is for the deadline and for a race with the controller.
/// Wake-ups are part of the samples: ten per second made reads of 430 µs some 15 % slower, in the median too.
const LONG_NAP: Duration = Duration::from_secs(1);

pub struct Waiter {
    control: Control,
    pub stage: Stage,
    /// Only one processor to run on: threads that work for us need it.
    alone: bool,
    idle: u32,
    /// Next check of a loop that never pauses; zero before its first completion.
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
    /// Polls, or sleeps if the queue has a channel.
    pub fn new(queue: &Arc<CompletionQueue>, control: &Control, stage: Stage) -> Self {
        let mut waiter = Self::polling(control, stage);
        waiter.sleeping = queue.channel().is_some().then(|| queue.clone());
        waiter
    }

    /// For loops where only completions matter soon.
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

    /// Also ends on events of the link and on a failure of the peer.
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

    #[inline]
    pub fn sleeps(&self) -> bool {
        self.sleeping.is_some()
    }

    /// Messages completed by `now`. A loop that is never idle checks here.
    #[inline]
    pub fn completed(&mut self, now: Nanoseconds) -> Result<(), Failure> {
        self.control.progressed(now);
        if self.is_due(now) { self.look() } else { Ok(()) }
    }

    /// Whether a busy loop must check by now. The check is not part of a sample: a loop that records samples asks first, then calls
    /// [`look`](Self::look) and begins its next sample after it.
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

    /// Call it after every empty poll, then poll again.
    #[inline]
    pub fn pause(&mut self) -> Result<(), Failure> {
        if self.sleeping.is_some() {
            return self.sleep();
        }
        self.idle = self.idle.wrapping_add(1);
        // No spin hint to the processor: its pause (140 cycles since Skylake, a guest exit on an emulated one) would be part of every
        // latency.
        if self.alone {
            std::thread::yield_now();
        }
        if self.idle.is_multiple_of(LOOK_EVERY) { self.look() } else { Ok(()) }
    }

    /// A message is on its way, and all earlier completions were taken: sleeps at once if the queue is armed.
    #[inline]
    pub fn rest(&mut self) -> Result<(), Failure> {
        if self.armed { self.sleep() } else { Ok(()) }
    }

    #[inline]
    pub fn stopped(&self) -> bool {
        self.control.stopped()
    }

    /// Arms the queue first and lets the caller poll once more, for completions in between; then sleeps.
    ///
    /// Waiting for an event and taking it are one call, and the queue is armed again on waking. So the next message is posted to an armed
    /// queue, and this thread sleeps at once after it: a fabric that uses the kernel gets this processor, not another one that must wake
    /// up first.
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
        // An armed queue reports once.
        if queue.take_event()? {
            queue.arm()?;
            self.events = self.events.wrapping_add(1);
            // The alarm usually leads to a check, but not if this thread hardly sleeps.
            if !self.events.is_multiple_of(LOOK_EVERY) {
                return Ok(());
            }
        }
        self.look()
    }
}

/// Makes taking an event block; the controller and every `nap` interrupt it.
fn block(queue: &CompletionQueue, nap: Duration, control: &Control) -> std::io::Result<Woken> {
    let woken = Woken { _alarm: Alarm::every(nap)?, _controller: control.interrupting()? };
    queue.channel().map_or(Ok(()), |channel| channel.set_blocking(true))?;
    Ok(woken)
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // An untaken event would prevent the queue's destruction.
        if let Some(queue) = &self.sleeping
            && queue.channel().is_some_and(|channel| channel.set_blocking(false).is_ok())
        {
            while let Ok(true) = queue.take_event() {}
        }
    }
}
