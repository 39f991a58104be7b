//! Host memory: page-aligned, present before it is used, on huge pages if asked for.

use std::{io, ptr::NonNull};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use super::available;
use crate::system::tree::Tree;

/// Size of a huge page in bytes: the default one of x86-64 and of arm64 with 4 KiB pages.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// An anonymous mapping of its own. Page-aligned; never moves; read and written as plain bytes.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
    mapped: usize,
}

// SAFETY: the mapping belongs to this value alone, and bytes have no thread affinity.
unsafe impl Send for Buffer {}
// SAFETY: through a shared reference the bytes can only be read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Maps `length` bytes of zeros and touches every page from the calling thread, so that they lie on its NUMA node.
    ///
    /// # Errors
    /// Less memory is available than that, or fewer huge pages.
    pub fn new(length: u64, huge: bool) -> Result<Self, Failure> {
        let refused = |cause: String| Failure::new(Stage::Open, Kind::Configuration, cause);
        if let Some(available) = available::bytes(&Tree::host()).filter(|available| length > *available) {
            let cause = format!("a buffer of {length} bytes was asked for, {available} bytes of memory are available");
            return Err(refused(cause).remedy(remedy::SMALLER_BUFFERS));
        }
        let page = if huge { HUGE_PAGE } else { 4096 };
        // A length that does not fit an address cannot be available either; mmap then says so.
        let length = usize::try_from(length).unwrap_or(usize::MAX / 2);
        let mapped = length.max(1).next_multiple_of(page);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let flags = if huge { flags | libc::MAP_HUGETLB } else { flags };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), mapped, access, flags, -1, 0) };
        let start = (start != libc::MAP_FAILED).then(|| NonNull::new(start.cast::<u8>())).flatten();
        let Some(start) = start else {
            let error = io::Error::last_os_error();
            let pages = mapped / page;
            let remedy = match huge {
                true => remedy::RESERVE_HUGE_PAGES.with([("pages", pages.to_string())]),
                false => remedy::SMALLER_BUFFERS.into(),
            };
            return Err(refused(format!("a buffer of {length} bytes could not be mapped: {error}")).remedy(remedy));
        };
        Ok(Self { start, length, mapped })
    }

    /// The address, for registration with a device.
    pub fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bytes. Not while a device may write to them: read those with [`Buffer::address`] and volatile loads.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `length` bytes from `start` are mapped, initialised by the kernel, and live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// The bytes, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this length, and no reference to it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_writable_to_its_last_byte() {
        let mut buffer = Buffer::new(5_000, false).unwrap();
        assert_eq!((buffer.address() as usize % 4096, buffer.len()), (0, 5_000));
        buffer.bytes_mut().fill(7);
        assert!(buffer.bytes().iter().all(|byte| *byte == 7));
    }

    #[test]
    fn more_than_there_is_gives_an_error_before_the_kernel_runs_out() {
        let failure = Buffer::new(1 << 60, false).unwrap_err();
        assert!(failure.cause.contains("available"), "{failure}");
    }
}
