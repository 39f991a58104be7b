//! Streams on a GPU, graphs captured on them, and copies.

use std::{cell::RefCell, marker::PhantomData, sync::Arc};

use railgauge_wire::{Failure, Kind, Nanoseconds, Stage, remedy};

use super::{Buffer, Device, Handle, SUCCESS, Status, driver::NOT_READY};
use crate::memory::host;

/// `CU_STREAM_NON_BLOCKING`, `hipStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`, `hipStreamCaptureModeThreadLocal`.
const CAPTURE_THREAD_LOCAL: i32 = 1;

/// Destroyed once, with its context current.
struct Owned {
    device: Arc<Device>,
    handle: Handle,
    destroy: unsafe extern "C" fn(Handle) -> Status,
}

// SAFETY: these may be used from any thread; the handle is only a number to this process.
unsafe impl Send for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the driver made the handle for the owner, who has given it this function.
        self.device.end("ending a stream, an event or a graph", || unsafe { (self.destroy)(self.handle) });
    }
}

/// Waits for its work when it is dropped.
pub struct Stream {
    own: Owned,
    /// What queued copies still use.
    busy: RefCell<Vec<Arc<Pages>>>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A failed stream has no running work: its error ended the context's.
        let _ = self.device().enter().and_then(|()| self.wait());
    }
}

impl Stream {
    pub fn new(device: &Arc<Device>) -> Result<Self, Failure> {
        device.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes.
        let status = unsafe { (device.driver().stream_create)(&raw mut handle, NON_BLOCKING) };
        device.check(status, "making a stream")?;
        let own = Owned { device: Arc::clone(device), handle, destroy: device.driver().stream_destroy };
        Ok(Self { own, busy: RefCell::default() })
    }

    /// `CUstream`, which is `cudaStream_t`; or `hipStream_t`.
    pub fn handle(&self) -> Handle {
        self.own.handle
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.own.device
    }

    pub fn is_done(&self) -> Result<bool, Failure> {
        // SAFETY: the stream lives.
        match unsafe { (self.own.device.driver().stream_query)(self.own.handle) } {
            NOT_READY => Ok(false),
            status => self.settled(status).map(|()| true),
        }
    }

    pub fn wait(&self) -> Result<(), Failure> {
        // SAFETY: the stream lives.
        self.settled(unsafe { (self.own.device.driver().stream_synchronize)(self.own.handle) })
    }

    fn settled(&self, status: Status) -> Result<(), Failure> {
        self.own.device.check(status, "waiting for the GPU")?;
        self.busy.borrow_mut().clear();
        Ok(())
    }

    /// Keeps memory until its copies are done.
    fn keep(&self, pinned: &Pinned) {
        let mut busy = self.busy.borrow_mut();
        if !busy.iter().any(|kept| Arc::ptr_eq(kept, &pinned.0)) {
            busy.push(pinned.0.clone());
        }
    }

    /// Copies host bytes to the device, and waits until that is done.
    pub fn to_device(&self, to: &Buffer, at: u64, from: &[u8]) -> Result<(), Failure> {
        self.own.device.enter()?;
        // SAFETY: `from` is borrowed until the copy is done: if waiting fails, the error has ended all work.
        unsafe { self.copy_in(to, at, from.as_ptr(), from.len() as u64) }?;
        self.wait()
    }

    /// Copies device bytes to the host, and waits until that is done.
    pub fn to_host(&self, to: &mut [u8], from: &Buffer, at: u64) -> Result<(), Failure> {
        self.own.device.enter()?;
        // SAFETY: as in `to_device`.
        unsafe { self.copy_out(to.as_mut_ptr(), from, at, to.len() as u64) }?;
        self.wait()
    }

    /// Queues a copy of device bytes to the same offset in page-locked host memory, which devices may read meanwhile.
    pub fn fetch(&self, to: &Pinned, from: &Buffer, at: u64, length: u64) -> Result<(), Failure> {
        within(to.len(), at, length)?;
        self.keep(to);
        // SAFETY: the range is inside of the pages, checked above, which are kept and lent to nobody until the copy is done.
        unsafe { self.copy_out(to.address().add(at as usize), from, at, length) }
    }

    /// Queues a copy of page-locked host memory, which devices may write meanwhile, to the same offset on the device.
    pub fn deliver(&self, to: &Buffer, from: &Pinned, at: u64, length: u64) -> Result<(), Failure> {
        within(from.len(), at, length)?;
        self.keep(from);
        // SAFETY: as in `fetch`.
        unsafe { self.copy_in(to, at, from.address().add(at as usize), length) }
    }

    /// # Safety
    /// `from` is valid for reads of `length` bytes until the copy is done.
    unsafe fn copy_in(&self, to: &Buffer, at: u64, from: *const u8, length: u64) -> Result<(), Failure> {
        fits(to, at, length)?;
        // SAFETY: the caller's promise, and the range on the device is valid, checked above.
        let status = unsafe {
            (self.own.device.driver().copy_to_device)(to.address() + at, from.cast(), length as usize, self.own.handle)
        };
        self.own.device.check(status, "copying to the GPU")
    }

    /// # Safety
    /// `to` is valid for writes of `length` bytes until the copy is done.
    unsafe fn copy_out(&self, to: *mut u8, from: &Buffer, at: u64, length: u64) -> Result<(), Failure> {
        fits(from, at, length)?;
        // SAFETY: as in `copy_in`.
        let status = unsafe {
            (self.own.device.driver().copy_to_host)(to.cast(), from.address() + at, length as usize, self.own.handle)
        };
        self.own.device.check(status, "copying from the GPU")
    }

    pub fn on_device(&self, to: &Buffer, from: &Buffer, length: u64) -> Result<(), Failure> {
        fits(to, 0, length)?;
        fits(from, 0, length)?;
        // SAFETY: both ranges are valid for this length, checked above.
        let status = unsafe {
            (self.own.device.driver().copy_on_device)(to.address(), from.address(), length as usize, self.own.handle)
        };
        self.own.device.check(status, "copying on the GPU")
    }

    pub fn set(&self, buffer: &Buffer, byte: u8, length: u64) -> Result<(), Failure> {
        fits(buffer, 0, length)?;
        // SAFETY: the range is valid, checked above.
        let status =
            unsafe { (self.own.device.driver().set_bytes)(buffer.address(), byte, length as usize, self.own.handle) };
        self.own.device.check(status, "setting bytes on the GPU")
    }

    /// # Safety
    /// The memory that `work` queues work on, page-locked host memory too, lives for `'b`.
    pub(crate) unsafe fn capture<'b>(&self, work: impl FnOnce() -> Result<(), Failure>) -> Result<Graph<'b>, Failure> {
        let (device, stream) = (&self.own.device, self.own.handle);
        let driver = device.driver();
        let capture = (driver.capture_begin, driver.capture_end);
        let graph = (driver.graph_instantiate, driver.graph_destroy, driver.graph_exec_destroy);
        let ((Some(begin), Some(end)), (Some(instantiate), Some(destroy), Some(exec_destroy))) = (capture, graph)
        else {
            let cause = format!("GPU {}: this driver has no graphs", device.index());
            return Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::LEAVE_GRAPH_OUT));
        };
        // SAFETY: the stream lives and is not being captured: only this function does so, and ends it below.
        device.check(unsafe { begin(stream, CAPTURE_THREAD_LOCAL) }, "beginning to capture a graph")?;
        let worked = work();
        let mut graph = std::ptr::null_mut();
        // SAFETY: `graph` is valid for writes; the capture was begun above.
        device.check(unsafe { end(stream, &raw mut graph) }, "capturing a graph")?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes; `graph` was made above.
        let status = if worked.is_ok() { unsafe { instantiate(&raw mut handle, graph, 0) } } else { SUCCESS };
        // SAFETY: it was made above and is not used afterwards.
        device.end("ending a captured graph", || unsafe { destroy(graph) });
        worked?;
        device.check(status, "making a graph executable")?;
        Ok(Graph(Owned { device: Arc::clone(device), handle, destroy: exec_destroy }, PhantomData))
    }
}

pub(crate) fn fits(buffer: &Buffer, at: u64, length: u64) -> Result<(), Failure> {
    within(buffer.len(), at, length)
}

fn within(room: u64, at: u64, length: u64) -> Result<(), Failure> {
    if at.checked_add(length).is_some_and(|end| end <= room) {
        return Ok(());
    }
    let cause = format!("{length} bytes at {at} of a buffer of {room}");
    Err(Failure::new(Stage::Measure, Kind::Internal, cause))
}

/// Queued operations on memory that lives for `'b`, to be repeated.
pub(crate) struct Graph<'b>(Owned, PhantomData<&'b Buffer>);

impl Graph<'_> {
    pub(crate) fn launch(&self, stream: &Stream) -> Result<(), Failure> {
        let Some(launch) = self.0.device.driver().graph_launch else {
            return Err(Failure::new(Stage::Measure, Kind::Unsupported, "this driver has no graphs"));
        };
        // SAFETY: graph and stream live.
        self.0.device.check(unsafe { launch(self.0.handle, stream.handle()) }, "launching a graph")
    }
}

/// Host memory that the GPU reaches without a bounce: page-locked for as long as this lives, or a copy uses it.
pub struct Pinned(Arc<Pages>);

struct Pages {
    device: Arc<Device>,
    buffer: host::Buffer,
}

impl Pinned {
    pub fn new(device: &Arc<Device>, buffer: host::Buffer) -> Result<Self, Failure> {
        device.enter()?;
        let (start, length) = (buffer.address(), buffer.len());
        // SAFETY: the mapping lives as long as `buffer`, which moves into `self` without moving its bytes.
        let status = unsafe { (device.driver().host_register)(start.cast(), length, 0) };
        device.check(status, &format!("locking {length} bytes of host memory"))?;
        Ok(Self(Arc::new(Pages { device: Arc::clone(device), buffer })))
    }

    pub fn address(&self) -> *mut u8 {
        self.0.buffer.address()
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.buffer.len() as u64
    }

    /// `Err` while a queued copy may use them: wait for its stream first.
    pub fn bytes(&mut self) -> Result<&mut [u8], Failure> {
        let pages = Arc::get_mut(&mut self.0).ok_or_else(|| {
            Failure::new(Stage::Measure, Kind::Internal, "a copy of a GPU still uses the memory that is to be read")
        })?;
        Ok(pages.buffer.bytes_mut())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: registered in `new`, still mapped: the buffer is dropped after this.
        let unregister = || unsafe { (self.device.driver().host_unregister)(self.buffer.address().cast()) };
        self.device.end("unlocking host memory", unregister);
    }
}

/// A point in a stream: when everything queued before it is done.
pub(crate) struct Event(Owned);

impl Event {
    /// Times are recorded; no thread sleeps for it.
    pub(crate) fn new(device: &Arc<Device>) -> Result<Self, Failure> {
        device.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: `handle` is valid for writes; no flag is set.
        let status = unsafe { (device.driver().event_create)(&raw mut handle, 0) };
        device.check(status, "making an event")?;
        Ok(Self(Owned { device: Arc::clone(device), handle, destroy: device.driver().event_destroy }))
    }

    pub(crate) fn record(&self, stream: &Stream) -> Result<(), Failure> {
        // SAFETY: event and stream live, and are of one context.
        self.0.device.check(
            unsafe { (self.0.device.driver().event_record)(self.0.handle, stream.handle()) },
            "recording an event",
        )
    }

    /// Work that is queued on `stream` afterwards waits for this event, which was recorded before.
    pub(crate) fn holds_back(&self, stream: &Stream) -> Result<(), Failure> {
        let Some(wait) = self.0.device.driver().stream_wait_event else {
            return Err(Failure::new(Stage::Measure, Kind::Unsupported, "this driver cannot order streams by events"));
        };
        // SAFETY: event and stream live, and are of one context; no flag is set.
        self.0.device.check(unsafe { wait(stream.handle(), self.0.handle, 0) }, "waiting for an event")
    }

    pub(crate) fn wait(&self) -> Result<(), Failure> {
        // SAFETY: the event lives.
        self.0.device.check(unsafe { (self.0.device.driver().event_synchronize)(self.0.handle) }, "waiting for the GPU")
    }

    /// Both events must have happened.
    pub(crate) fn since(&self, earlier: &Self) -> Result<Nanoseconds, Failure> {
        let mut milliseconds = 0.0_f32;
        // SAFETY: `milliseconds` is valid for writes, and both events live.
        let status =
            unsafe { (self.0.device.driver().event_elapsed)(&raw mut milliseconds, earlier.0.handle, self.0.handle) };
        self.0.device.check(status, "reading the time between two events")?;
        Ok(Nanoseconds((f64::from(milliseconds) * 1e6).round() as u64))
    }
}
