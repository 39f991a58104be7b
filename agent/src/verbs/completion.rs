//! A completion queue, and the channel that announces its entries where a loop sleeps instead of polling.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    ptr::{self, NonNull},
    sync::Arc,
};

use railgauge_wire::failure::{Failure, Stage};
use rdma_sys::*;

use super::{
    device::Device,
    words::{self, Doing},
};

/// A completion channel: a descriptor that becomes readable when an armed queue has an entry.
#[derive(Debug)]
pub struct Channel {
    handle: NonNull<ibv_comp_channel>,
    device: Arc<Device>,
}

impl Channel {
    fn new(device: &Arc<Device>) -> Result<Self, Failure> {
        // SAFETY: the context is open.
        let handle = unsafe { (device.library.ibv_create_comp_channel)(device.context.as_ptr()) };
        let handle = NonNull::new(handle).ok_or_else(|| words::last(Stage::Open, Doing::Completions, device.name()))?;
        let channel = Self { handle, device: Arc::clone(device) };
        channel.set_blocking(false).map_err(|_| words::last(Stage::Open, Doing::Completions, device.name()))?;
        Ok(channel)
    }

    /// Whether taking an event that is not there waits for it, until a signal comes. A new channel does not wait.
    pub fn set_blocking(&self, blocking: bool) -> io::Result<()> {
        let flags = if blocking { 0 } else { libc::O_NONBLOCK };
        // SAFETY: the descriptor is open and owned by the channel; the call takes no pointer.
        match unsafe { libc::fcntl(self.handle.as_ref().fd, libc::F_SETFL, flags) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open for as long as the channel lives.
        unsafe { BorrowedFd::borrow_raw(self.handle.as_ref().fd) }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: came from ibv_create_comp_channel; its queue is destroyed before (see `CompletionQueue::drop`).
        unsafe { (self.device.library.ibv_destroy_comp_channel)(self.handle.as_ptr()) };
    }
}

#[derive(Debug)]
pub struct CompletionQueue {
    handle: NonNull<ibv_cq>,
    device: Arc<Device>,
    channel: Option<Channel>,
}

impl CompletionQueue {
    /// A queue for at least `entries` completions, with a channel if it is to be slept on.
    pub fn new(device: &Arc<Device>, entries: u32, sleeping: bool) -> Result<Arc<Self>, Failure> {
        let channel = if sleeping { Some(Channel::new(device)?) } else { None };
        let on = channel.as_ref().map_or(ptr::null_mut(), |channel| channel.handle.as_ptr());
        let (context, entries) = (device.context.as_ptr(), i32::try_from(entries).unwrap_or(i32::MAX));
        // SAFETY: context and channel are alive; vector 0 exists on every device.
        let handle = unsafe { (device.library.ibv_create_cq)(context, entries, ptr::null_mut(), on, 0) };
        let handle = NonNull::new(handle).ok_or_else(|| {
            let failure = words::last(Stage::Open, Doing::Completions, device.name());
            Failure { cause: format!("{} (a queue of {entries} entries)", failure.cause), ..failure }
        })?;
        Ok(Arc::new(Self { handle, device: Arc::clone(device), channel }))
    }

    pub(super) fn raw(&self) -> *mut ibv_cq {
        self.handle.as_ptr()
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub fn channel(&self) -> Option<&Channel> {
        self.channel.as_ref()
    }

    /// Asks for an event at the next completion.
    pub fn arm(&self) -> Result<(), Failure> {
        // SAFETY: the queue is alive; this calls the context's own operation.
        match unsafe { ibv_req_notify_cq(self.raw(), 0) } {
            0 => Ok(()),
            errno => Err(words::verb(Stage::Measure, Doing::Completions, self.device.name(), errno)),
        }
    }

    /// Takes and acknowledges one event; whether there was one. Waits for it only if the channel blocks, and then until
    /// a signal comes.
    pub fn take_event(&self) -> Result<bool, Failure> {
        let Some(channel) = &self.channel else { return Ok(false) };
        let (mut queue, mut context) = (ptr::null_mut(), ptr::null_mut());
        let library = self.device.library;
        // SAFETY: the channel is alive, and both results are valid for writing.
        let rc = unsafe { (library.ibv_get_cq_event)(channel.handle.as_ptr(), &raw mut queue, &raw mut context) };
        if rc == 0 {
            // SAFETY: this event was just taken from that queue.
            unsafe { (library.ibv_ack_cq_events)(queue, 1) };
            return Ok(true);
        }
        match io::Error::last_os_error().kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
            _ => Err(words::last(Stage::Measure, Doing::Completions, self.device.name())),
        }
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: came from ibv_create_cq; queue pairs using it hold an Arc of this; all events are acknowledged.
        unsafe { (self.device.library.ibv_destroy_cq)(self.handle.as_ptr()) };
    }
}

// SAFETY: libibverbs allows every call on a queue from any thread.
unsafe impl Send for CompletionQueue {}
// SAFETY: as above.
unsafe impl Sync for CompletionQueue {}
