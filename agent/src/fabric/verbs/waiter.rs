//! What a loop does while nothing has completed: spin, give the processor away, or sleep until the device wakes it.

use std::{os::fd::AsFd, sync::Arc, time::Duration};

use railgauge_wire::failure::{Failure, Stage};

use crate::{
    fabric::Control,
    system::wait::{READABLE, wait},
    verbs::completion::CompletionQueue,
};

/// Empty polls between two looks at the flags and the deadline.
const LOOK_EVERY: u32 = 1024;

/// Longest sleep in event mode. The mailbox wakes nobody, so it is looked at this often.
const NAP: Duration = Duration::from_millis(2);

/// How to wait on one completion queue.
pub struct Waiter {
    control: Control,
    stage: Stage,
    /// Only one processor to run on: whoever makes progress for us needs it.
    alone: bool,
    idle: u32,
    sleeping: Option<Arc<CompletionQueue>>,
    armed: bool,
    /// An event was seen and not taken yet.
    event: bool,
}

impl Waiter {
    /// Waits on `queue`: by polling, or sleeping if it has a channel.
    pub fn new(queue: &Arc<CompletionQueue>, control: &Control, stage: Stage) -> Self {
        let mut waiter = Self::polling(control, stage);
        waiter.sleeping = queue.channel().is_some().then(|| queue.clone());
        waiter
    }

    /// Waits by polling.
    pub fn polling(control: &Control, stage: Stage) -> Self {
        let alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
        Self { control: control.clone(), stage, alone, idle: 0, sleeping: None, armed: false, event: false }
    }

    /// Whether it sleeps instead of polling.
    #[inline]
    pub fn sleeps(&self) -> bool {
        self.sleeping.is_some()
    }

    /// Something completed.
    #[inline]
    pub fn progress(&mut self) {
        self.idle = 0;
    }

    /// Nothing has completed: waits a little. Call it after every empty poll, then poll again.
    ///
    /// # Errors
    /// Aborted, past the deadline, or the queue is broken.
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
        if self.idle.is_multiple_of(LOOK_EVERY) { self.control.check(self.stage) } else { Ok(()) }
    }

    /// Whether the controller wants a `Serve` step to end.
    #[inline]
    pub fn stopped(&self) -> bool {
        self.control.stopped()
    }

    /// Arms the queue first and lets the caller poll once more, for what came in between; then sleeps.
    ///
    /// What woke us is acknowledged here, before the next sleep, and not on waking: by then the completion has been
    /// dealt with and the next message is on its way, so that these calls are no part of a latency.
    fn sleep(&mut self) -> Result<(), Failure> {
        let Some(queue) = &self.sleeping else { return Ok(()) };
        if !self.armed {
            if self.event {
                queue.take_event()?;
                self.event = false;
            }
            queue.arm()?;
            self.armed = true;
            return Ok(());
        }
        if let Some(channel) = queue.channel() {
            let refused = |error: std::io::Error| {
                let kind = railgauge_wire::failure::Kind::Internal;
                Failure::new(self.stage, kind, format!("sleeping on completions failed: {error}"))
            };
            let came = match self.control.bell() {
                Some(bell) => {
                    let [came, rung] =
                        wait([(channel.as_fd(), READABLE), (bell.as_fd(), READABLE)], Some(NAP)).map_err(refused)?;
                    // Flags are looked at after the bell is quiet, so that none is missed.
                    if rung != 0 {
                        bell.quiet();
                    }
                    came
                }
                None => wait([(channel.as_fd(), READABLE)], Some(NAP)).map_err(refused)?[0],
            };
            if came != 0 {
                // An armed queue tells once.
                (self.event, self.armed) = (true, false);
            }
        }
        self.control.check(self.stage)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // An event that nobody takes would keep the queue from being destroyed.
        if let Some(queue) = &self.sleeping {
            while let Ok(true) = queue.take_event() {}
        }
    }
}
