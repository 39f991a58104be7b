//! Host memory that a device writes and a loop watches: a byte, or an array of words.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering, fence},
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

/// Words shared with a device. Each has one writer.
#[derive(Clone)]
pub(crate) struct Words(Arc<Region>);

impl Words {
    /// Bytes of a word.
    pub(crate) const SIZE: u64 = 8;

    /// All of `region` as words. `None` if it is not host memory.
    pub(crate) fn new(region: &Arc<Region>) -> Option<Self> {
        region.backing().host().then(|| Self(region.clone()))
    }

    /// Word number `place`.
    ///
    /// # Panics
    /// There is none.
    #[inline]
    pub(crate) fn load(&self, place: u64) -> u64 {
        self.word(place).load(Ordering::Acquire)
    }

    /// Puts a word there, visible to the device before anything posted later.
    ///
    /// # Panics
    /// There is none.
    #[inline]
    pub(crate) fn store(&self, place: u64, value: u64) {
        self.word(place).store(value, Ordering::Release);
        fence(Ordering::Release);
    }

    #[inline]
    fn word(&self, place: u64) -> &AtomicU64 {
        assert!((place + 1) * Self::SIZE <= self.0.length() as u64, "word {place} is outside of the region");
        // SAFETY: the region is host memory that starts at a page and holds this word; words are only touched as
        // atomics, by us and by the device.
        unsafe { &*((self.0.address() + place * Self::SIZE) as *const AtomicU64) }
    }
}
