//! Host memory that a device writes and a loop polls: a byte, a span of bytes, or an array of words.

use std::{
    any::Any,
    ops::Deref,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering, fence},
    },
};

use super::Region;
use crate::memory::shared::parts;

/// A part of what an owner holds, which it keeps alive.
struct Held<T: ?Sized> {
    part: NonNull<T>,
    owner: Arc<dyn Any + Send + Sync>,
}

impl<T: ?Sized> Held<T> {
    fn new<O: Send + Sync + 'static>(owner: &Arc<O>, part: impl FnOnce(&O) -> Option<&T>) -> Option<Self> {
        part(owner).map(|part| Self { part: part.into(), owner: owner.clone() })
    }
}

// SAFETY: it is a shared reference, and its owner may be dropped by any thread.
unsafe impl<T: ?Sized + Sync> Send for Held<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for Held<T> {}

impl<T: ?Sized> Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: lent by the owner for as long as it is shared, and an `Arc` of it is here.
        unsafe { self.part.as_ref() }
    }
}

impl<T: ?Sized> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self { part: self.part, owner: self.owner.clone() }
    }
}

pub struct Flag(Held<AtomicU8>);

impl Flag {
    /// `None` outside the region, or if it is not host memory.
    pub fn new(region: &Arc<Region>, at: u64) -> Option<Self> {
        Held::new(region, |region| region.backing().cells()?.get(usize::try_from(at).ok()?)).map(Self)
    }

    /// A byte of this process's own memory, for the stub that measures our own cost per message.
    pub fn own(byte: &Arc<AtomicU8>) -> Self {
        Self(Held { part: (&**byte).into(), owner: byte.clone() })
    }

    /// What the device wrote before this byte is visible with it.
    #[inline]
    pub fn load(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }

    #[inline]
    pub fn store(&self, value: u8) {
        self.0.store(value, Ordering::Release);
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

pub(crate) struct Span(Held<[AtomicU8]>);

impl Span {
    /// `None` outside the region, or if it is not host memory.
    pub(crate) fn new(region: &Arc<Region>, at: u64, length: u64) -> Option<Self> {
        let (at, length) = (usize::try_from(at).ok()?, usize::try_from(length).ok()?);
        Held::new(region, |region| region.backing().cells()?.get(at..at.checked_add(length)?)).map(Self)
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub(crate) fn fill(&self, value: u8) {
        let (head, words, tail) = parts(&self.0);
        words.iter().for_each(|word| word.store(u64::from_ne_bytes([value; 8]), Ordering::Relaxed));
        head.iter().chain(tail).for_each(|byte| byte.store(value, Ordering::Relaxed));
        fence(Ordering::Release);
    }

    /// The place of a byte with another value. The first and the middle one are read first, then all of them from the end: late ones are
    /// not there yet.
    pub(crate) fn other_than(&self, value: u8) -> Option<u64> {
        let (head, words, tail) = parts(&self.0);
        let whole = u64::from_ne_bytes([value; 8]);
        let word = |at: usize| {
            let found = words[at].load(Ordering::Relaxed);
            let other = || found.to_ne_bytes().iter().position(|byte| *byte != value).unwrap_or(0);
            (found != whole).then(|| head.len() + at * 8 + other())
        };
        let other = |bytes: &[AtomicU8]| bytes.iter().rposition(|byte| byte.load(Ordering::Relaxed) != value);
        let last = words.len();
        let early = [0, last / 2].into_iter().filter(|at| *at < last).find_map(word);
        let late = || other(tail).map(|at| head.len() + last * 8 + at);
        let found = early.or_else(late).or_else(|| (0..last).rev().find_map(word)).or_else(|| other(head));
        found.map(|at| at as u64)
    }
}

#[derive(Clone)]
pub(crate) struct Words(Held<[AtomicU64]>);

impl Words {
    pub(crate) const SIZE: u64 = 8;

    /// All of `region` as words. `None` if it is not host memory.
    pub(crate) fn new(region: &Arc<Region>) -> Option<Self> {
        Held::new(region, |region| region.backing().cells().map(|cells| parts(cells).1)).map(Self)
    }

    /// Word number `place`.
    ///
    /// # Panics
    /// There is none.
    #[inline]
    pub(crate) fn load(&self, place: u64) -> u64 {
        self.0[place as usize].load(Ordering::Acquire)
    }

    /// Visible to the device before anything posted later.
    ///
    /// # Panics
    /// There is none.
    #[inline]
    pub(crate) fn store(&self, place: u64, value: u64) {
        self.0[place as usize].store(value, Ordering::Release);
        fence(Ordering::Release);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::memory::{backing::Backing, shared::Shared};

    /// Memory that a device would share.
    pub(crate) struct Bytes(Shared);

    impl Bytes {
        fn cells(&self) -> &[AtomicU8] {
            self.0.cells().unwrap()
        }

        pub(crate) fn store(&self, at: u64, value: u8) {
            self.cells()[at as usize].store(value, Ordering::Relaxed);
        }

        pub(crate) fn load(&self, at: u64) -> u8 {
            self.cells()[at as usize].load(Ordering::Relaxed)
        }

        pub(crate) fn fill(&self, value: u8) {
            self.cells().iter().for_each(|byte| byte.store(value, Ordering::Relaxed));
        }
    }

    pub(crate) fn memory(length: u64) -> (Arc<Bytes>, Span) {
        let bytes = Arc::new(Bytes(Shared::new(length, false).unwrap()));
        let span = Held::new(&bytes, |bytes| Some(bytes.cells())).map(Span).unwrap();
        (bytes, span)
    }

    #[test]
    fn every_byte_of_a_span_is_written_and_looked_at() {
        for length in [1, 7, 8, 9, 63, 64, 65] {
            for at in 0..length {
                let (bytes, span) = memory(length);
                span.fill(3);
                assert_eq!(span.other_than(3), None);
                bytes.store(at, 4);
                assert_eq!(span.other_than(3), Some(at), "{length} bytes");
            }
        }
    }

    #[test]
    fn a_span_outlives_every_other_owner_of_its_bytes() {
        let (bytes, span) = memory(64);
        drop(bytes);
        span.fill(7);
        assert_eq!(span.other_than(7), None);
    }
}
