//! Bytes that devices reach: host memory, GPU memory, or host memory in front of GPU memory.

use std::{fmt, os::fd::RawFd, sync::atomic::AtomicU8};

use railgauge_wire::{Checked, Failure, Pattern};

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

    /// The data itself, where it is in host memory at `address`: the CPU sees a device's writes as they land.
    fn cells(&self) -> Option<&[AtomicU8]> {
        None
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
