//! Whether somebody interrupted a kit, asked between the steps of packing it: nothing else listens for signals then.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Whether the work shall end. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks for the end.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Goes on only if nobody asked.
    ///
    /// # Errors
    /// Somebody did.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.is_set() {
            true => Err(io::Error::other("interrupted")),
            false => Ok(()),
        }
    }
}
