//! A completion queue, and its channel for sleeping loops.

use std::{
    any::Any,
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd},
    ptr,
    sync::Arc,
};

use railgauge_wire::{Failure, Stage};
use rdma_sys::*;
use rustix::fs::{OFlags, fcntl_setfl};

use super::{
    Device, Doing,
    words::{self},
};
use crate::system::library::Owned;

/// A descriptor that becomes readable when an armed queue has an entry.
#[derive(Debug)]
pub struct Channel {
    handle: Owned<ibv_comp_channel>,
    _device: Arc<Device>,
}

impl Channel {
    fn new(device: &Arc<Device>) -> Result<Self, Failure> {
        let (library, failed) = (device.library, || words::last(Stage::Open, Doing::Completions, device.name()));
        // SAFETY: the context is open.
        let handle = unsafe {
            Owned::new((library.ibv_create_comp_channel)(device.context()), library.ibv_destroy_comp_channel)
        };
        let channel = Self { handle: handle.ok_or_else(failed)?, _device: Arc::clone(device) };
        channel.set_blocking(false).map_err(|_| failed())?;
        Ok(channel)
    }

    /// Whether taking a missing event blocks, until a signal. A new channel does not block.
    pub fn set_blocking(&self, blocking: bool) -> io::Result<()> {
        Ok(fcntl_setfl(self, if blocking { OFlags::empty() } else { OFlags::NONBLOCK })?)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open for as long as the channel lives.
        unsafe { BorrowedFd::borrow_raw(self.handle.as_ref().fd) }
    }
}

#[derive(Debug)]
pub struct CompletionQueue {
    handle: Owned<ibv_cq>,
    device: Arc<Device>,
    channel: Option<Channel>,
}

impl CompletionQueue {
    /// For at least `entries` completions, with a channel if `sleeping`.
    pub fn new(device: &Arc<Device>, entries: u32, sleeping: bool) -> Result<Arc<Self>, Failure> {
        let channel = if sleeping { Some(Channel::new(device)?) } else { None };
        let on = channel.as_ref().map_or(ptr::null_mut(), |channel| channel.handle.as_ptr());
        let (context, entries) = (device.context(), i32::try_from(entries).unwrap_or(i32::MAX));
        // SAFETY: context and channel are alive; vector 0 exists on every device.
        let handle = unsafe {
            let queue = (device.library.ibv_create_cq)(context, entries, ptr::null_mut(), on, 0);
            Owned::new(queue, device.library.ibv_destroy_cq)
        };
        let handle = handle.ok_or_else(|| {
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

    pub fn arm(&self) -> Result<(), Failure> {
        // SAFETY: the queue is alive; this calls the context's own operation.
        match unsafe { ibv_req_notify_cq(self.raw(), 0) } {
            0 => Ok(()),
            errno => Err(words::verb(Stage::Measure, Doing::Completions, self.device.name(), errno)),
        }
    }

    /// Takes and acknowledges one event; returns whether there was one. Blocks only if the channel does, and until a signal at most.
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

/// The part of a completion's `wr_id` that counts requests; see [`super::send::Template::tag`] for the other part.
#[inline]
pub(super) const fn covered(wr_id: u64) -> u32 {
    wr_id as u32
}

#[inline]
pub(super) const fn sided(tag: u32, covered: u32) -> u64 {
    (tag as u64) << 32 | covered as u64
}

#[inline]
pub(super) const fn tag(wr_id: u64) -> u32 {
    (wr_id >> 32) as u32
}

#[derive(Clone, Copy)]
pub struct Completion<'a>(&'a ibv_wc);

impl Completion<'_> {
    #[inline]
    pub fn is_receive(&self) -> bool {
        self.0.opcode & ibv_wc_opcode::IBV_WC_RECV != 0
    }

    #[inline]
    pub fn tag(&self) -> usize {
        tag(self.0.wr_id) as usize
    }

    #[inline]
    pub fn covered(&self) -> u32 {
        covered(self.0.wr_id)
    }

    /// The word sent with a message (receives of [`super::receive::Messages`] only).
    #[inline]
    pub fn word(&self) -> u32 {
        // SAFETY: both members of the union are 32 bits, and any bits are a number.
        u32::from_be(unsafe { self.0.imm_data_invalidated_rkey_union.imm_data })
    }

    pub(super) fn queue_pair(&self) -> u32 {
        self.0.qp_num
    }

    #[inline]
    pub fn bytes(&self) -> u64 {
        u64::from(self.0.byte_len)
    }
}

pub(crate) const BATCH: usize = 32;

/// Does not allocate after `new`, except for errors.
pub struct Poller {
    queue: *mut ibv_cq,
    entries: Box<[MaybeUninit<ibv_wc>; BATCH]>,
    device: String,
    failed: Option<usize>,
    _alive: Arc<dyn Any + Send + Sync>,
}

// SAFETY: a queue may be polled from any thread, and the entries are this value's own.
unsafe impl Send for Poller {}

impl Poller {
    pub fn new(queue: &Arc<CompletionQueue>) -> Self {
        // SAFETY: the queue is kept alive.
        unsafe { Self::from_raw(queue.raw(), queue.device().name(), queue.clone()) }
    }

    /// For [`Poller::new`], and for the stub that measures our own cost per message.
    ///
    /// # Safety
    /// `queue` must be one whose context can poll, for as long as `alive` lives.
    pub unsafe fn from_raw(queue: *mut ibv_cq, device: &str, alive: Arc<dyn Any + Send + Sync>) -> Self {
        let entries = Box::new([const { MaybeUninit::uninit() }; BATCH]);
        Self { queue, entries, device: device.to_owned(), failed: None, _alive: alive }
    }

    /// Takes at most [`BATCH`] completions, and returns their number.
    #[inline]
    pub fn poll(&mut self, mut each: impl FnMut(Completion<'_>)) -> Result<usize, Failure> {
        let into = self.entries.as_mut_ptr().cast::<ibv_wc>();
        // SAFETY: the queue is alive and there is room for as many entries as are asked for.
        let taken = unsafe { ibv_poll_cq(self.queue, BATCH as i32, into) };
        let Ok(taken) = usize::try_from(taken) else { return Err(self.broken(taken)) };
        for entry in &self.entries[..taken.min(BATCH)] {
            // SAFETY: the queue has written the first `taken` entries.
            let completion = unsafe { entry.assume_init_ref() };
            if completion.status != ibv_wc_status::IBV_WC_SUCCESS {
                self.failed = Some(tag(completion.wr_id) as usize);
                return Err(words::completion(Stage::Measure, &self.device, completion));
            }
            each(Completion(completion));
        }
        Ok(taken)
    }

    pub fn failed(&self) -> Option<usize> {
        self.failed
    }

    #[cold]
    fn broken(&self, rc: i32) -> Failure {
        words::verb(Stage::Measure, Doing::Poll, &self.device, if rc == -1 { libc::EIO } else { rc })
    }
}
