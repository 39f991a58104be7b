//! GPU memory as a NIC reaches it: by itself (GPUDirect RDMA), or through page-locked host memory in front of it.

use std::{
    fmt,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    sync::Arc,
};

use parking_lot::Mutex;
use railgauge_wire::{
    failure::Failure,
    step::{Checked, Pattern},
};

use super::{Buffer, Device, Mapping, Pinned, Stream, buffer::unreachable_by_nics, kernels, maker::Maker};
use crate::memory::{backing::Backing, host};

/// Device memory and the stream its work is queued on.
struct Place {
    buffer: Buffer,
    // One link, one thread: the lock is there because a backing may be shared, not because anybody waits for it.
    stream: Mutex<Stream>,
}

impl Place {
    fn new(device: &Arc<Device>, length: u64) -> Result<Self, Failure> {
        Ok(Self { stream: Mutex::new(Stream::new(device)?), buffer: Buffer::new(device, length)? })
    }

    fn fill(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        kernels::fill(&self.stream.lock(), &self.buffer, at, pattern, qp)
    }

    fn poison(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        kernels::poison(&self.stream.lock(), &self.buffer, at, pattern, qp)
    }

    fn check(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<Checked, Failure> {
        kernels::check(&self.stream.lock(), &self.buffer, at, pattern, qp)
    }

    fn word(&self, at: u64) -> Result<u64, Failure> {
        let mut word = [0; 8];
        let stream = self.stream.lock();
        stream.device().enter()?;
        stream.to_host(&mut word, &self.buffer, at)?;
        stream.wait()?;
        Ok(u64::from_ne_bytes(word))
    }
}

/// Whether NICs may reach the memory of a GPU at all.
pub(crate) fn by_nics(device: &Device) -> Result<(), Failure> {
    if device.maker() == Maker::Amd { Err(unreachable_by_nics(device)) } else { Ok(()) }
}

/// GPU memory that the NIC reads and writes itself.
pub(crate) struct Direct {
    place: Place,
    dma_buf: Option<OwnedFd>,
}

impl Direct {
    /// Takes `length` bytes of a GPU for a NIC.
    pub(crate) fn new(device: &Arc<Device>, length: u64) -> Result<Self, Failure> {
        by_nics(device)?;
        let place = Place::new(device, length)?;
        place.buffer.synchronous()?;
        Ok(Self { place, dma_buf: None })
    }

    /// The same, to be registered by its dma-buf; mapped by PCIe if that is wanted and offered.
    pub(crate) fn exported(self, pcie: bool) -> Result<(Self, Mapping), Failure> {
        let (descriptor, _, mapping) = self.place.buffer.dma_buf(pcie)?;
        Ok((Self { dma_buf: Some(descriptor), ..self }, mapping))
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Direct").field("length", &self.place.buffer.len()).field("dma_buf", &self.dma_buf).finish()
    }
}

// SAFETY: the allocation is the buffer's own and stays until it is dropped; the CPU never touches it.
unsafe impl Backing for Direct {
    fn address(&self) -> u64 {
        self.place.buffer.address()
    }

    fn length(&self) -> usize {
        self.place.buffer.len() as usize
    }

    fn fill(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        self.place.fill(at, pattern, qp)
    }

    fn poison(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        self.place.poison(at, pattern, qp)
    }

    fn check(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<Checked, Failure> {
        // A completion on the CPU does not say that the GPU sees the bytes yet.
        self.place.buffer.device().flush_writes()?;
        self.place.check(at, pattern, qp)
    }

    fn word(&self, at: u64) -> Result<u64, Failure> {
        self.place.buffer.device().flush_writes()?;
        self.place.word(at)
    }

    fn dma_buf(&self) -> Option<RawFd> {
        self.dma_buf.as_ref().map(AsRawFd::as_raw_fd)
    }
}

/// GPU memory behind host memory of the same layout: what is sent is fetched before, what came is delivered after.
pub(crate) struct Bounced {
    host: Pinned,
    place: Place,
}

impl Bounced {
    /// Takes `length` bytes on both sides.
    pub(crate) fn new(device: &Arc<Device>, length: u64, huge: bool) -> Result<Self, Failure> {
        Ok(Self { host: Pinned::new(device, host::Buffer::new(length, huge)?)?, place: Place::new(device, length)? })
    }
}

impl fmt::Debug for Bounced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounced").field("length", &self.place.buffer.len()).finish()
    }
}

// SAFETY: the pages are locked and stay until this is dropped; devices, the driver's copies and nobody else use them.
unsafe impl Backing for Bounced {
    fn address(&self) -> u64 {
        self.host.address() as u64
    }

    fn length(&self) -> usize {
        self.host.bytes().len()
    }

    fn fill(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        self.place.fill(at, pattern, qp)
    }

    fn poison(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<(), Failure> {
        self.place.poison(at, pattern, qp)
    }

    fn check(&self, at: u64, pattern: &Pattern, qp: u32) -> Result<Checked, Failure> {
        self.place.check(at, pattern, qp)
    }

    fn word(&self, at: u64) -> Result<u64, Failure> {
        self.place.word(at)
    }

    fn fetch(&self, at: u64, length: u64) -> Result<(), Failure> {
        let stream = self.place.stream.lock();
        stream.device().enter()?;
        stream.fetch(&self.host, &self.place.buffer, at, length)?;
        stream.wait()
    }

    fn deliver(&self, at: u64, length: u64) -> Result<(), Failure> {
        let stream = self.place.stream.lock();
        stream.device().enter()?;
        stream.deliver(&self.place.buffer, &self.host, at, length)?;
        stream.wait()
    }
}
