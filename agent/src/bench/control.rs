//! Control of a running step from outside.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use railgauge_wire::{Failure, Kind, Nanoseconds, Stage};

use crate::system::wait::{Doorbell, Interrupted};

/// Hot loops call [`Control::halted`] once in a while: two relaxed loads, no system call. Sleepers in poll(2) add [`Control::bell`].
#[derive(Clone)]
pub struct Control {
    stop: Arc<AtomicBool>,
    abort: Arc<AtomicBool>,
    pub deadline: Instant,
    ready: Option<Arc<dyn Fn() + Send + Sync>>,
    pub led: Option<Duration>,
    bell: Option<Arc<Doorbell>>,
    /// Last completion on the agent's clock; 0 before.
    progress: Arc<AtomicU64>,
}

impl Control {
    pub fn new(stop: Arc<AtomicBool>, abort: Arc<AtomicBool>, deadline: Instant) -> Self {
        Self { stop, abort, deadline, ready: None, led: None, bell: None, progress: Arc::default() }
    }

    /// Sets the callback of [`Control::ready`].
    #[must_use]
    pub fn on_ready(mut self, ready: impl Fn() + Send + Sync + 'static) -> Self {
        self.ready = Some(Arc::new(ready));
        self
    }

    /// For a `Serve` step that the initiator leads: it learns when this end is ready, and its next turn ends the step, not before the
    /// given time.
    #[must_use]
    pub fn led_by_peer(mut self, not_before: Duration) -> Self {
        self.led = Some(not_before);
        self
    }

    /// Sets a doorbell that rings whenever a flag is set.
    #[must_use]
    pub fn ringing(mut self, bell: Arc<Doorbell>) -> Self {
        self.bell = Some(bell);
        self
    }

    /// A `Serve` step is ready: the initiator may start.
    pub fn ready(&self) {
        if let Some(ready) = &self.ready {
            ready();
        }
    }

    /// Rings when a flag is set, for loops that sleep in poll(2). Quiet it first, then check the flags.
    pub fn bell(&self) -> Option<&Doorbell> {
        self.bell.as_deref()
    }

    /// Makes the doorbell interrupt the calling thread's system calls; `None` without a doorbell.
    pub fn interrupting(&self) -> io::Result<Option<Interrupted>> {
        self.bell.as_ref().map(Doorbell::interrupting).transpose()
    }

    #[inline]
    pub fn progressed(&self, now: Nanoseconds) {
        self.progress.store(now.0, Ordering::Relaxed);
    }

    /// `None` without completions, or if the loop does not report them.
    pub fn progress(&self) -> Option<Nanoseconds> {
        Some(Nanoseconds(self.progress.load(Ordering::Relaxed))).filter(|at| !at.is_zero())
    }

    /// Ends a `Serve` step well, as the controller does.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.bell().inspect(|bell| bell.ring());
    }

    pub fn abort(&self) {
        self.abort.store(true, Ordering::Relaxed);
        self.stop();
    }

    #[inline]
    pub fn halted(&self) -> bool {
        self.stopped() || self.aborted()
    }

    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn aborted(&self) -> bool {
        self.abort.load(Ordering::Relaxed)
    }

    /// `Err` if aborted or past the deadline. Reads the clock.
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
