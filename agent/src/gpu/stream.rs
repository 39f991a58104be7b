//! Order on a GPU: streams, graphs of what was captured on them, and copies.

use std::{ffi::c_void, sync::Arc};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use super::{
    buffer::Buffer,
    device::Device,
    driver::{Handle, NOT_READY, SUCCESS},
};
use crate::memory::host;

/// `CU_STREAM_NON_BLOCKING`, `hipStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`, `hipStreamCaptureModeThreadLocal`.
const CAPTURE_THREAD_LOCAL: i32 = 1;

pub struct Stream {
    device: Arc<Device>,
    handle: Handle,
}

// SAFETY: streams may be used from any thread; the handle is only a number to this process.
unsafe impl Send for Stream {}

impl Stream {
    pub fn new(device: &Arc<Device>) -> Result<Self, Failure> {
        device.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes.
        let status = unsafe { (device.driver().stream_create)(&raw mut handle, NON_BLOCKING) };
        device.check(status, "making a stream")?;
        Ok(Self { device: Arc::clone(device), handle })
    }

    /// `CUstream`, which is `cudaStream_t`; or `hipStream_t`.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub fn is_done(&self) -> Result<bool, Failure> {
        // SAFETY: the stream lives.
        match unsafe { (self.device.driver().stream_query)(self.handle) } {
            SUCCESS => Ok(true),
            NOT_READY => Ok(false),
            status => self.device.check(status, "waiting for the GPU").map(|()| true),
        }
    }

    pub fn wait(&self) -> Result<(), Failure> {
        // SAFETY: the stream lives.
        self.device.check(unsafe { (self.device.driver().stream_synchronize)(self.handle) }, "waiting for the GPU")
    }

    /// Queues a copy of host bytes to the device. The caller waits before it touches them again.
    pub fn to_device(&self, to: &Buffer, at: u64, from: &[u8]) -> Result<(), Failure> {
        fits(to, at, from.len() as u64)?;
        // SAFETY: both ranges are valid for this length, checked above; the caller keeps `from` until it has waited.
        let status = unsafe {
            let (from, length) = (from.as_ptr().cast::<c_void>(), from.len());
            (self.device.driver().copy_to_device)(to.address() + at, from, length, self.handle)
        };
        self.device.check(status, "copying to the GPU")
    }

    /// Queues a copy of device bytes to the host. The caller waits before it reads them.
    pub fn to_host(&self, to: &mut [u8], from: &Buffer, at: u64) -> Result<(), Failure> {
        fits(from, at, to.len() as u64)?;
        // SAFETY: as in `to_device`.
        let status = unsafe {
            (self.device.driver().copy_to_host)(to.as_mut_ptr().cast(), from.address() + at, to.len(), self.handle)
        };
        self.device.check(status, "copying from the GPU")
    }

    /// Queues a copy of device bytes to the same offset in page-locked host memory, which devices may read meanwhile.
    pub fn fetch(&self, to: &Pinned, from: &Buffer, at: u64, length: u64) -> Result<(), Failure> {
        fits(from, at, length)?;
        within(to.buffer.len() as u64, at, length)?;
        // SAFETY: both ranges are valid for this length, checked above; no reference is made to the host's bytes.
        let status = unsafe {
            let to = to.address().add(at as usize).cast::<c_void>();
            (self.device.driver().copy_to_host)(to, from.address() + at, length as usize, self.handle)
        };
        self.device.check(status, "copying from the GPU")
    }

    /// Queues a copy of page-locked host memory, which devices may write meanwhile, to the same offset on the device.
    pub fn deliver(&self, to: &Buffer, from: &Pinned, at: u64, length: u64) -> Result<(), Failure> {
        fits(to, at, length)?;
        within(from.buffer.len() as u64, at, length)?;
        // SAFETY: as in `fetch`.
        let status = unsafe {
            let from = from.address().add(at as usize).cast::<c_void>();
            (self.device.driver().copy_to_device)(to.address() + at, from, length as usize, self.handle)
        };
        self.device.check(status, "copying to the GPU")
    }

    /// Queues a copy between two buffers on this device.
    pub fn on_device(&self, to: &Buffer, from: &Buffer, length: u64) -> Result<(), Failure> {
        fits(to, 0, length)?;
        fits(from, 0, length)?;
        // SAFETY: both ranges are valid for this length, checked above.
        let status = unsafe {
            (self.device.driver().copy_on_device)(to.address(), from.address(), length as usize, self.handle)
        };
        self.device.check(status, "copying on the GPU")
    }

    /// Queues setting every byte of a part of a buffer.
    pub fn set(&self, buffer: &Buffer, byte: u8, length: u64) -> Result<(), Failure> {
        fits(buffer, 0, length)?;
        // SAFETY: the range is valid, checked above.
        let status = unsafe { (self.device.driver().set_bytes)(buffer.address(), byte, length as usize, self.handle) };
        self.device.check(status, "setting bytes on the GPU")
    }

    /// Captures what `work` queues on this stream into a graph.
    pub fn capture(&self, work: impl FnOnce() -> Result<(), Failure>) -> Result<Graph, Failure> {
        let driver = self.device.driver();
        let functions = (driver.capture_begin, driver.capture_end, driver.graph_instantiate, driver.graph_destroy);
        let (Some(begin), Some(end), Some(instantiate), Some(destroy)) = functions else {
            let cause = format!("GPU {}: this driver has no graphs", self.device.index());
            return Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::LEAVE_GRAPH_OUT));
        };
        // SAFETY: the stream lives and is not being captured: only this function does so, and ends it below.
        self.device.check(unsafe { begin(self.handle, CAPTURE_THREAD_LOCAL) }, "beginning to capture a graph")?;
        let worked = work();
        let mut graph = std::ptr::null_mut();
        // SAFETY: `graph` is valid for writes; the capture was begun above.
        let status = unsafe { end(self.handle, &raw mut graph) };
        worked?;
        self.device.check(status, "capturing a graph")?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes; `graph` was made above and is not used after its destruction.
        let status = unsafe {
            let status = instantiate(&raw mut handle, graph, 0);
            destroy(graph);
            status
        };
        self.device.check(status, "making a graph executable")?;
        Ok(Graph { device: Arc::clone(&self.device), handle })
    }
}

fn fits(buffer: &Buffer, at: u64, length: u64) -> Result<(), Failure> {
    within(buffer.len(), at, length)
}

fn within(room: u64, at: u64, length: u64) -> Result<(), Failure> {
    if at.checked_add(length).is_some_and(|end| end <= room) {
        return Ok(());
    }
    let cause = format!("{length} bytes at {at} of a buffer of {room}");
    Err(Failure::new(Stage::Measure, Kind::Internal, cause))
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: the stream of `new`, destroyed once.
            unsafe { (self.device.driver().stream_destroy)(self.handle) };
        }
    }
}

pub struct Graph {
    device: Arc<Device>,
    handle: Handle,
}

// SAFETY: as for streams.
unsafe impl Send for Graph {}

impl Graph {
    pub fn launch(&self, stream: &Stream) -> Result<(), Failure> {
        let Some(launch) = self.device.driver().graph_launch else {
            return Err(Failure::new(Stage::Measure, Kind::Unsupported, "this driver has no graphs"));
        };
        // SAFETY: graph and stream live.
        self.device.check(unsafe { launch(self.handle, stream.handle) }, "launching a graph")
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if let (Some(destroy), Ok(())) = (self.device.driver().graph_exec_destroy, self.device.enter()) {
            // SAFETY: the graph of `capture`, destroyed once.
            unsafe { destroy(self.handle) };
        }
    }
}

/// Host memory that the GPU reaches without a bounce: page-locked for as long as this lives.
pub struct Pinned {
    device: Arc<Device>,
    buffer: host::Buffer,
}

impl Pinned {
    /// Locks a host buffer's pages for the device.
    pub fn new(device: &Arc<Device>, mut buffer: host::Buffer) -> Result<Self, Failure> {
        device.enter()?;
        let bytes = buffer.bytes_mut();
        let (start, length) = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the mapping lives as long as `buffer`, which moves into `self` without moving its bytes.
        let status = unsafe { (device.driver().host_register)(start.cast(), length, 0) };
        device.check(status, &format!("locking {length} bytes of host memory"))?;
        Ok(Self { device: Arc::clone(device), buffer })
    }

    /// Where the bytes start.
    pub fn address(&self) -> *mut u8 {
        self.buffer.address()
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// The bytes, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.bytes_mut()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: registered in `new`, still mapped: the buffer is dropped after this.
            unsafe { (self.device.driver().host_unregister)(self.buffer.bytes_mut().as_mut_ptr().cast()) };
        }
    }
}
