//! GPU memory as NICs reach it: by itself (GPUDirect RDMA), or through page-locked host memory in front of it.

use std::{
    fmt,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    sync::Arc,
};

use parking_lot::Mutex;
use railgauge_wire::{Checked, Failure, Pattern};

use super::{Buffer, Device, Stream, buffer::by_nics, kernels, stream::Pinned};
use crate::memory::{backing::Backing, host};

/// Device memory, the stream of its work, and how NICs reach it.
pub(crate) struct Reached {
    // Uncontended: one link has one thread, but a backing may be shared.
    stream: Mutex<Stream>,
    buffer: Buffer,
    way: Way,
}

enum Way {
    Direct,
    Exported(OwnedFd),
    /// Host memory of the same layout is in front of it: sends are fetched before, arrivals delivered after.
    Staged(Pinned),
}

impl Reached {
    pub(crate) fn direct(device: &Arc<Device>, length: u64) -> Result<Self, Failure> {
        by_nics(device)?;
        let memory = Self::new(device, length, Way::Direct)?;
        memory.buffer.synchronous()?;
        Ok(memory)
    }

    /// For registration by its dma-buf; mapped by PCIe if wanted and offered.
    pub(crate) fn exported(device: &Arc<Device>, length: u64, pcie: bool) -> Result<(Self, &'static str), Failure> {
        let memory = Self::direct(device, length)?;
        let (descriptor, _, mapping) = memory.buffer.dma_buf(pcie)?;
        Ok((Self { way: Way::Exported(descriptor), ..memory }, mapping))
    }

    pub(crate) fn staged(device: &Arc<Device>, length: u64, huge: bool) -> Result<Self, Failure> {
        let front = Pinned::new(device, host::Buffer::new(length, huge)?)?;
        Self::new(device, length, Way::Staged(front))
    }

    fn new(device: &Arc<Device>, length: u64, way: Way) -> Result<Self, Failure> {
        Ok(Self { stream: Mutex::new(Stream::new(device)?), buffer: Buffer::new(device, length)?, way })
    }

    /// A completion on the CPU does not mean that the GPU sees the bytes yet.
    fn arrive(&self) -> Result<(), Failure> {
        if let Way::Staged(_) = self.way { Ok(()) } else { self.buffer.device().flush_writes() }
    }

    fn copy(&self, copy: impl FnOnce(&Stream, &Pinned) -> Result<(), Failure>) -> Result<(), Failure> {
        let Way::Staged(front) = &self.way else { return Ok(()) };
        let stream = self.stream.lock();
        stream.device().enter()?;
        copy(&stream, front)?;
        stream.wait()
    }
}

impl fmt::Debug for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reached").field("length", &self.buffer.len()).finish_non_exhaustive()
    }
}

// SAFETY: the allocation is the buffer's own and stays until it is dropped, and so are the pages in front of it. The CPU touches neither:
// devices and the driver's copies do.
unsafe impl Backing for Reached {
    fn address(&self) -> u64 {
        match &self.way {
            Way::Direct | Way::Exported(_) => self.buffer.address(),
            Way::Staged(front) => front.address() as u64,
        }
    }

    fn length(&self) -> usize {
        self.buffer.len() as usize
    }

    fn fill(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        kernels::fill(&self.stream.lock(), &self.buffer, at, pattern, qp)
    }

    fn poison(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        kernels::poison(&self.stream.lock(), &self.buffer, at, pattern, qp)
    }

    fn check(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<Checked, Failure> {
        self.arrive()?;
        kernels::check(&self.stream.lock(), &self.buffer, at, pattern, qp)
    }

    fn word(&self, at: u64) -> Result<u64, Failure> {
        self.arrive()?;
        let mut word = [0; 8];
        self.stream.lock().to_host(&mut word, &self.buffer, at)?;
        Ok(u64::from_ne_bytes(word))
    }

    fn dma_buf(&self) -> Option<RawFd> {
        if let Way::Exported(descriptor) = &self.way { Some(descriptor.as_raw_fd()) } else { None }
    }

    fn fetch(&self, at: u64, length: u64) -> Result<(), Failure> {
        self.copy(|stream, front| stream.fetch(front, &self.buffer, at, length))
    }

    fn deliver(&self, at: u64, length: u64) -> Result<(), Failure> {
        self.copy(|stream, front| stream.deliver(&self.buffer, front, at, length))
    }
}
