//! Host memory that devices and threads write at any time. It is only lent as atomics, words where they are aligned: a slice of plain bytes
//! would promise that there is no other writer.
//!
//! Atomics of both sizes may touch the same bytes, each where the other does not at that time: a link's memory is used by its thread.

use std::{
    fmt, slice,
    sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed},
};

use railgauge_wire::{Checked, Failure, Pattern};

use super::{backing::Backing, host::Buffer, pattern};

pub(crate) struct Shared(Buffer);

impl Shared {
    /// As [`Buffer::new`].
    pub(crate) fn new(length: u64, huge: bool) -> Result<Self, Failure> {
        Buffer::new(length, huge).map(Self)
    }

    fn all(&self) -> &[AtomicU8] {
        // SAFETY: the buffer has as many initialised bytes for as long as `self` lives, and is lent in no other way.
        unsafe { slice::from_raw_parts(self.0.address().cast(), self.0.len()) }
    }

    /// Panics if they do not fit, as the others below.
    fn part(&self, at: u64, length: usize) -> &[AtomicU8] {
        &self.all()[usize::try_from(at).unwrap_or(usize::MAX)..][..length]
    }

    fn put(&self, at: u64, pattern: &Pattern, qp: u32, bytes: fn(&mut [u8], &Pattern, u32)) {
        let mut all = vec![0; pattern.size.as_usize()];
        bytes(&mut all, pattern, qp);
        put(self.part(at, all.len()), &all);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Bytes up to the first aligned word, words, and the bytes after them.
pub(crate) fn parts(cells: &[AtomicU8]) -> (&[AtomicU8], &[AtomicU64], &[AtomicU8]) {
    // SAFETY: eight atomic bytes that are aligned are an atomic word, as any bits are one.
    unsafe { cells.align_to() }
}

fn put(cells: &[AtomicU8], bytes: &[u8]) {
    let (head, words, tail) = parts(cells);
    let (first, rest) = bytes.split_at(head.len());
    let (whole, last) = rest.as_chunks();
    words.iter().zip(whole).for_each(|(cell, word)| cell.store(u64::from_ne_bytes(*word), Relaxed));
    head.iter().chain(tail).zip(first.iter().chain(last)).for_each(|(cell, byte)| cell.store(*byte, Relaxed));
}

fn get(cells: &[AtomicU8], bytes: &mut [u8]) {
    let (head, words, tail) = parts(cells);
    let (first, rest) = bytes.split_at_mut(head.len());
    let (whole, last) = rest.as_chunks_mut();
    whole.iter_mut().zip(words).for_each(|(word, cell)| *word = cell.load(Relaxed).to_ne_bytes());
    first.iter_mut().chain(last).zip(head.iter().chain(tail)).for_each(|(byte, cell)| *byte = cell.load(Relaxed));
}

// SAFETY: the mapping is the buffer's own and stays until it is dropped; nothing lends its bytes but as atomics, which
// others may write.
unsafe impl Backing for Shared {
    fn address(&self) -> u64 {
        self.0.address() as u64
    }

    fn length(&self) -> usize {
        self.0.len()
    }

    fn fill(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        self.put(at, pattern, qp, pattern::fill);
        Ok(())
    }

    fn poison(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        self.put(at, pattern, qp, pattern::poison);
        Ok(())
    }

    fn check(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<Checked, Failure> {
        let mut bytes = vec![0; pattern.size.as_usize()];
        get(self.part(at, bytes.len()), &mut bytes);
        Ok(pattern::check(&bytes, pattern, qp))
    }

    fn word(&self, at: u64) -> Result<u64, Failure> {
        let mut word = [0; 8];
        get(self.part(at, 8), &mut word);
        Ok(u64::from_ne_bytes(word))
    }

    fn cells(&self) -> Option<&[AtomicU8]> {
        Some(self.all())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use railgauge_wire::Bytes;

    use super::*;

    #[test]
    fn a_pattern_is_found_where_it_was_put_and_nowhere_else() {
        let shared = Shared::new(4096, false).unwrap();
        let pattern = Pattern { size: Bytes(101), seed: 3, iteration: 1 };
        shared.fill(512, &pattern, 2).unwrap();
        assert_eq!(
            shared.check(512, &pattern, 2).unwrap(),
            Checked { verified: Bytes(101), wrong: Bytes::ZERO, first_wrong: None }
        );
        assert!(shared.check(520, &pattern, 2).unwrap().wrong > Bytes(80));
        shared.poison(512, &pattern, 2).unwrap();
        assert_eq!(shared.check(512, &pattern, 2).unwrap().wrong, Bytes(101));
        assert_eq!(shared.word(0).unwrap(), 0);
    }

    #[test]
    fn bytes_come_back_from_every_offset_and_length_and_touch_no_others() {
        let shared = Shared::new(64, false).unwrap();
        for at in 0..16 {
            for length in 0..32 {
                put(shared.part(0, 64), &[0xee; 64]);
                let bytes: Vec<u8> = (1..=length).collect();
                put(shared.part(at, bytes.len()), &bytes);
                let mut all = [0; 64];
                get(shared.part(0, 64), &mut all);
                let (before, rest) = all.split_at(at as usize);
                let (back, after) = rest.split_at(bytes.len());
                assert_eq!(back, bytes);
                assert!(before.iter().chain(after).all(|byte| *byte == 0xee), "{at} {length}");
            }
        }
    }

    /// Under Miri this is a data race wherever bytes are touched other than as atomics.
    #[test]
    fn a_thread_reads_what_another_one_writes_at_the_same_time() {
        let shared = Arc::new(Shared::new(4096, false).unwrap());
        let pattern = Pattern { size: Bytes(100), seed: 3, iteration: 1 };
        let writer = std::thread::spawn({
            let shared = shared.clone();
            move || (0..20).for_each(|_| shared.fill(0, &pattern, 0).unwrap())
        });
        while shared.check(0, &pattern, 0).unwrap().wrong > Bytes::ZERO {
            std::thread::yield_now();
        }
        writer.join().unwrap();
    }
}
