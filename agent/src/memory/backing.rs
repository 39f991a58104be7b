//! Bytes that devices reach: host memory, GPU memory, or host memory in front of GPU memory.

use std::{fmt, os::fd::RawFd};

use railgauge_wire::{
    failure::Failure,
    step::{Checked, Pattern},
};

use super::{host::Buffer, pattern};

/// Bytes that do not move while this value lives.
///
/// # Safety
/// `address` must be valid for reads and writes of `length` bytes until the value is dropped, by anybody: the CPU (if
/// it is host memory) and every device it is registered with, at the same time.
pub unsafe trait Backing: fmt::Debug + Send + Sync {
    fn address(&self) -> u64;

    fn length(&self) -> usize;

    /// Offsets are multiples of 8. Writes where the data is, not to a copy in front of it.
    fn fill(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure>;

    fn poison(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure>;

    fn check(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<Checked, Failure>;

    /// In this host's byte order.
    fn word(&self, at: u64) -> Result<u64, Failure>;

    /// Whether the data is in host memory at `address`, where the CPU sees a device's writes as they land.
    fn host(&self) -> bool {
        false
    }

    /// `Some` where devices reach the bytes by a dma-buf that starts with the first one.
    fn dma_buf(&self) -> Option<RawFd> {
        None
    }

    /// Copies bytes from the data to where devices read them, if these differ.
    fn fetch(&self, _at: u64, _length: u64) -> Result<(), Failure> {
        Ok(())
    }

    /// Copies bytes from where devices wrote them to the data.
    fn deliver(&self, _at: u64, _length: u64) -> Result<(), Failure> {
        Ok(())
    }
}

impl Buffer {
    /// Panics if they do not fit.
    pub fn put(&self, at: u64, bytes: &[u8]) {
        let at = self.inside(at, bytes.len());
        // SAFETY: the range was just checked, and `bytes` is no part of the mapping.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address().add(at), bytes.len()) };
    }

    /// Panics if there are too few.
    pub fn get(&self, at: u64, bytes: &mut [u8]) {
        let at = self.inside(at, bytes.len());
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(self.address().add(at), bytes.as_mut_ptr(), bytes.len()) };
    }

    fn inside(&self, at: u64, length: usize) -> usize {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        assert!(at <= self.len() && length <= self.len() - at, "outside of the buffer");
        at
    }
}

// SAFETY: the mapping is the buffer's own and stays until it is dropped; devices and the CPU share it by raw access
// only, because nothing here makes references to its bytes.
unsafe impl Backing for Buffer {
    fn address(&self) -> u64 {
        Self::address(self) as u64
    }

    fn length(&self) -> usize {
        self.len()
    }

    fn fill(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        let mut bytes = vec![0; pattern.size.as_usize()];
        pattern::fill(&mut bytes, pattern, qp);
        self.put(at, &bytes);
        Ok(())
    }

    fn poison(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        let mut bytes = vec![0; pattern.size.as_usize()];
        pattern::poison(&mut bytes, pattern, qp);
        self.put(at, &bytes);
        Ok(())
    }

    fn check(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<Checked, Failure> {
        let mut bytes = vec![0; pattern.size.as_usize()];
        self.get(at, &mut bytes);
        Ok(pattern::check(&bytes, pattern, qp))
    }

    fn word(&self, at: u64) -> Result<u64, Failure> {
        let mut word = [0; 8];
        self.get(at, &mut word);
        Ok(u64::from_ne_bytes(word))
    }

    fn host(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use railgauge_wire::unit::Bytes;

    use super::*;

    #[test]
    fn a_pattern_is_found_where_it_was_put_and_nowhere_else() {
        let buffer = Buffer::new(4096, false).unwrap();
        let pattern = Pattern { size: Bytes(101), seed: 3, iteration: 1 };
        buffer.fill(512, &pattern, 2).unwrap();
        assert_eq!(
            buffer.check(512, &pattern, 2).unwrap(),
            Checked { verified: Bytes(101), wrong: Bytes::ZERO, first_wrong: None }
        );
        assert!(buffer.check(520, &pattern, 2).unwrap().wrong > Bytes(80));
        buffer.poison(512, &pattern, 2).unwrap();
        assert_eq!(buffer.check(512, &pattern, 2).unwrap().wrong, Bytes(101));
        assert_eq!(buffer.word(0).unwrap(), 0);
    }
}
