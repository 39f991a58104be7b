//! How a running step is ended from outside.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    unit::Nanoseconds,
};

use crate::system::wait::{Doorbell, Interrupted};

/// How the conversation reaches into a running step. Hot loops ask [`Control::halted`] once in a while: two relaxed
/// loads, no system call. Whoever sleeps in poll(2) instead adds [`Control::bell`].
#[derive(Clone)]
pub struct Control {
    stop: Arc<AtomicBool>,
    abort: Arc<AtomicBool>,
    deadline: Instant,
    ready: Option<Arc<dyn Fn() + Send + Sync>>,
    led: Option<Duration>,
    bell: Option<Arc<Doorbell>>,
    /// When something completed last, on the agent's clock; 0 before.
    progress: Arc<AtomicU64>,
}

impl Control {
    /// Flags shared with the conversation, and when to give up.
    pub fn new(stop: Arc<AtomicBool>, abort: Arc<AtomicBool>, deadline: Instant) -> Self {
        Self { stop, abort, deadline, ready: None, led: None, bell: None, progress: Arc::default() }
    }

    /// The same, with something to do at [`Control::ready`].
    #[must_use]
    pub fn on_ready(mut self, ready: impl Fn() + Send + Sync + 'static) -> Self {
        self.ready = Some(Arc::new(ready));
        self
    }

    /// The same for a `Serve` step that the initiator leads in place of the controller: it is told when this end is ready, and
    /// its next turn ends the step. That is not expected before so much time has passed.
    #[must_use]
    pub fn led_by_peer(mut self, not_before: Duration) -> Self {
        self.led = Some(not_before);
        self
    }

    /// Whether the initiator leads a `Serve` step, and for how long it takes nothing but that.
    pub fn led(&self) -> Option<Duration> {
        self.led
    }

    /// The same, with a doorbell that is rung whenever a flag is set.
    #[must_use]
    pub fn ringing(mut self, bell: Arc<Doorbell>) -> Self {
        self.bell = Some(bell);
        self
    }

    /// Tells the controller that a `Serve` step is armed: the initiator may start.
    pub fn ready(&self) {
        if let Some(ready) = &self.ready {
            ready();
        }
    }

    /// Rung when a flag is set: for loops that sleep in poll(2). Quiet it first, then look at the flags.
    pub fn bell(&self) -> Option<&Doorbell> {
        self.bell.as_deref()
    }

    /// Makes the doorbell interrupt the calling thread's system calls; `None` without a doorbell.
    pub fn interrupting(&self) -> io::Result<Option<Interrupted>> {
        self.bell.as_ref().map(Doorbell::interrupting).transpose()
    }

    /// Something has completed by `now`, on the agent's clock.
    #[inline]
    pub fn progressed(&self, now: Nanoseconds) {
        self.progress.store(now.0, Ordering::Relaxed);
    }

    /// When something completed last; `None` if nothing has, or if the loop does not say.
    pub fn progress(&self) -> Option<Nanoseconds> {
        Some(Nanoseconds(self.progress.load(Ordering::Relaxed))).filter(|at| !at.is_zero())
    }

    /// Ends a `Serve` step well, as the controller does.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.bell().inspect(|bell| bell.ring());
    }

    /// Ends every step of the link, now and later, as closing it does: a part of the link is gone.
    pub fn abort(&self) {
        self.abort.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// Whether a loop has to end, well or not: stopped or aborted.
    #[inline]
    pub fn halted(&self) -> bool {
        self.stopped() || self.aborted()
    }

    /// Whether the controller asked a `Serve` step to end well.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the link is being closed under a running step.
    #[inline]
    pub fn aborted(&self) -> bool {
        self.abort.load(Ordering::Relaxed)
    }

    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// `Err` if the step must end now: aborted, or past its deadline. Reads the clock.
    pub fn check(&self, stage: Stage) -> Result<(), Failure> {
        if self.aborted() {
            return Err(Failure::new(stage, Kind::Aborted, "ended by the controller"));
        }
        if Instant::now() > self.deadline {
            return Err(Failure::new(stage, Kind::Deadline, "no progress before the deadline"));
        }
        Ok(())
    }
}
