//! Host memory that a device writes and a loop polls: a byte, a span of bytes, or an array of words.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering, fence},
    },
};

use super::region::Region;

pub struct Flag {
    byte: *const AtomicU8,
    _alive: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the byte is only touched as an atomic.
unsafe impl Send for Flag {}

impl Flag {
    /// `None` outside the region, or if it is not host memory.
    pub fn new(region: &Arc<Region>, at: u64) -> Option<Self> {
        let inside = at < region.length() as u64 && region.backing().host();
        let byte = (region.address() + at) as *const AtomicU8;
        inside.then(|| Self { byte, _alive: region.clone() })
    }

    /// A byte of this process's own memory, for the stub that measures our own cost per message.
    pub fn own(byte: &Arc<AtomicU8>) -> Self {
        Self { byte: Arc::as_ptr(byte), _alive: byte.clone() }
    }

    #[inline]
    pub fn load(&self) -> u8 {
        // SAFETY: the byte is alive. What the device wrote before it becomes visible with it (acquire).
        unsafe { (*self.byte).load(Ordering::Acquire) }
    }

    #[inline]
    pub fn store(&self, value: u8) {
        // SAFETY: as above.
        unsafe { (*self.byte).store(value, Ordering::Release) };
        fence(Ordering::Release);
    }
}

/// The first and the last byte of a message, which both carry its beat. They coincide in a message of one byte.
pub struct Beat {
    first: Flag,
    last: Flag,
    length: u64,
}

impl Beat {
    /// `length` is that of the message.
    pub const fn new(first: Flag, last: Flag, length: u64) -> Self {
        Self { first, last, length }
    }

    pub(crate) fn of(region: &Arc<Region>, at: u64, length: u64) -> Option<Self> {
        let last = at.checked_add(length.max(1))? - 1;
        Some(Self::new(Flag::new(region, at)?, Flag::new(region, last)?, length))
    }

    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    #[inline]
    pub(crate) fn last(&self) -> u8 {
        self.last.load()
    }

    #[inline]
    pub(crate) fn first(&self) -> u8 {
        self.first.load()
    }

    #[inline]
    pub(crate) fn store(&self, value: u8) {
        self.first.store(value);
        self.last.store(value);
    }
}

pub(crate) struct Span {
    bytes: *const AtomicU8,
    length: u64,
    _alive: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the bytes are only touched as atomics.
unsafe impl Send for Span {}

impl Span {
    /// `None` outside the region, or if it is not host memory.
    pub(crate) fn new(region: &Arc<Region>, at: u64, length: u64) -> Option<Self> {
        let inside = at.checked_add(length)? <= region.length() as u64 && region.backing().host();
        let bytes = (region.address() + at) as *const AtomicU8;
        inside.then(|| Self { bytes, length, _alive: region.clone() })
    }

    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    /// Words from the first byte on, and the bytes after them; words only where the first byte is aligned.
    fn parts(&self) -> (&[AtomicU64], &[AtomicU8]) {
        let length = self.length as usize;
        let words = if self.bytes.cast::<AtomicU64>().is_aligned() { length / 8 } else { 0 };
        // SAFETY: so many bytes are alive, aligned where they are words, and only touched as atomics, by us and by the
        // device; each is in one part only.
        unsafe {
            (
                std::slice::from_raw_parts(self.bytes.cast::<AtomicU64>(), words),
                std::slice::from_raw_parts(self.bytes.add(words * 8), length - words * 8),
            )
        }
    }

    pub(crate) fn fill(&self, value: u8) {
        let (words, bytes) = self.parts();
        words.iter().for_each(|word| word.store(u64::from_ne_bytes([value; 8]), Ordering::Relaxed));
        bytes.iter().for_each(|byte| byte.store(value, Ordering::Relaxed));
        fence(Ordering::Release);
    }

    /// The place of a byte with another value. The first and the middle one are read first, then all of them from the end: late ones are
    /// not there yet.
    pub(crate) fn other_than(&self, value: u8) -> Option<u64> {
        let (words, bytes) = self.parts();
        let whole = u64::from_ne_bytes([value; 8]);
        let word = |at: usize| {
            let found = words[at].load(Ordering::Relaxed);
            let other = || found.to_ne_bytes().iter().position(|byte| *byte != value).unwrap_or(0);
            (found != whole).then(|| (at * 8 + other()) as u64)
        };
        let last = words.len();
        let early = [0, last / 2].into_iter().filter(|at| *at < last).find_map(word);
        let tail = || (0..bytes.len()).rev().find(|at| bytes[*at].load(Ordering::Relaxed) != value);
        let found = early.or_else(|| tail().map(|at| (last * 8 + at) as u64));
        found.or_else(|| (0..last).rev().find_map(word))
    }
}

#[derive(Clone)]
pub(crate) struct Words(Arc<Region>);

impl Words {
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

    /// Visible to the device before anything posted later.
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

/// Bytes of this process's own, as a device would share them, and the span of them.
#[cfg(test)]
pub(crate) fn tests_memory(length: u64) -> (tests::Bytes, Span) {
    let words: Arc<[AtomicU64]> = (0..length.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
    let bytes = tests::Bytes(words.clone(), length);
    let span = Span { bytes: words.as_ptr().cast(), length, _alive: Arc::new(words) };
    (bytes, span)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) struct Bytes(pub(super) Arc<[AtomicU64]>, pub(super) u64);

    impl Bytes {
        fn byte(&self, at: u64) -> &AtomicU8 {
            assert!(at < self.1);
            // SAFETY: inside of the words, which live as long as this, and only touched as atomics.
            unsafe { &*self.0.as_ptr().cast::<AtomicU8>().add(at as usize) }
        }

        pub(crate) fn store(&self, at: u64, value: u8) {
            self.byte(at).store(value, Ordering::Relaxed);
        }

        pub(crate) fn load(&self, at: u64) -> u8 {
            self.byte(at).load(Ordering::Relaxed)
        }

        pub(crate) fn fill(&self, value: u8) {
            (0..self.1).for_each(|at| self.store(at, value));
        }
    }

    #[test]
    fn every_byte_of_a_span_is_written_and_looked_at() {
        for length in [1, 7, 8, 9, 63, 64, 65] {
            for at in 0..length {
                let (bytes, span) = tests_memory(length);
                span.fill(3);
                assert_eq!(span.other_than(3), None);
                bytes.store(at, 4);
                assert_eq!(span.other_than(3), Some(at), "{length} bytes");
            }
        }
    }
}
