//! One byte of host memory that a device writes and a loop watches.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering, fence},
    },
};

use super::region::Region;

/// A byte shared with a device.
pub struct Flag {
    byte: *const AtomicU8,
    _alive: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the byte is only touched as an atomic.
unsafe impl Send for Flag {}

impl Flag {
    /// The byte at offset `at` of `region`. `None` if there is none, or if it is not host memory.
    pub fn new(region: &Arc<Region>, at: u64) -> Option<Self> {
        let inside = at < region.length() as u64 && region.backing().host();
        let byte = (region.address() + at) as *const AtomicU8;
        inside.then(|| Self { byte, _alive: region.clone() })
    }

    /// A byte of this process's own memory, for the stub that measures our own cost per message.
    pub fn own(byte: &Arc<AtomicU8>) -> Self {
        Self { byte: Arc::as_ptr(byte), _alive: byte.clone() }
    }

    /// What is there now.
    #[inline]
    pub fn load(&self) -> u8 {
        // SAFETY: the byte is alive. What the device wrote before it becomes visible with it (acquire).
        unsafe { (*self.byte).load(Ordering::Acquire) }
    }

    /// Puts a value there, visible to the device before anything posted later.
    #[inline]
    pub fn store(&self, value: u8) {
        // SAFETY: as above.
        unsafe { (*self.byte).store(value, Ordering::Release) };
        fence(Ordering::Release);
    }
}
