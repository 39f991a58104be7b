//! How bytes travel. A fabric opens links; a link is one end of a measured connection and lives on a thread of its
//! own, so that several rails of a host are measured at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::Instant;

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    link::{Endpoint, Opened},
    step::{Step, Stepped},
};

/// One end of a measured connection.
pub trait Link {
    /// What was opened; asked once, before `join`.
    fn opened(&self) -> Opened;

    /// Joins this end with its peer's.
    ///
    /// # Errors
    /// The peer cannot be reached or does not fit.
    fn join(&mut self, peer: &Endpoint, control: &Control) -> Result<(), Failure>;

    /// Does one step and answers when it is over.
    ///
    /// `Serve` calls [`Control::ready`] as soon as the initiator may start, and is over when [`Control::stopped`]
    /// says so; what it returns answers the `Stop` request.
    ///
    /// # Errors
    /// The device, the fabric or the deadline.
    fn step(&mut self, step: &Step, control: &Control) -> Result<Stepped, Failure>;
}

/// How the conversation reaches into a running step. Hot loops ask [`Control::halted`] once in a while: one relaxed
/// load, no system call.
#[derive(Debug, Clone)]
pub struct Control {
    stop: Arc<AtomicBool>,
    abort: Arc<AtomicBool>,
    deadline: Instant,
    ready: Option<std::sync::mpsc::Sender<()>>,
}

impl Control {
    /// Flags shared with the conversation, and when to give up.
    pub fn new(stop: Arc<AtomicBool>, abort: Arc<AtomicBool>, deadline: Instant) -> Self {
        Self { stop, abort, deadline, ready: None }
    }

    /// The same, with somebody waiting for [`Control::ready`].
    #[must_use]
    pub fn announcing(mut self, ready: std::sync::mpsc::Sender<()>) -> Self {
        self.ready = Some(ready);
        self
    }

    /// Tells the controller that a `Serve` step is armed: the initiator may start.
    pub fn ready(&self) {
        if let Some(ready) = &self.ready {
            // Nobody waits any more once the conversation is over.
            let _ = ready.send(());
        }
    }

    /// Whether the controller asked a `Serve` step to end well.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the link is being closed under a running step.
    pub fn aborted(&self) -> bool {
        self.abort.load(Ordering::Relaxed)
    }

    /// When the step gives up by itself.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// `Err` if the step must end now: aborted, or past its deadline. Reads the clock.
    ///
    /// # Errors
    /// [`Kind::Aborted`] or [`Kind::Deadline`].
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
