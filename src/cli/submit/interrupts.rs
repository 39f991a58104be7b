//! Ctrl-C, `kill` and hang-up while a job is submitted and watched.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether somebody wants an end.
pub(super) struct Interrupts(Arc<AtomicBool>);

impl Interrupts {
    /// From now on signals are noted, and end nothing by themselves: a job that was submitted must not be left behind.
    pub(super) fn noted() -> Self {
        let heard = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Where it cannot be caught, it ends this process and leaves the job.
            let _ = signal_hook::flag::register(signal, Arc::clone(&heard));
        }
        Self(heard)
    }

    /// Whether there was one.
    pub(super) fn is_heard(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
