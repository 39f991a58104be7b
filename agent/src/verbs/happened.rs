//! What a context's asynchronous events said: read once for all who watch it.
//!
//! A context has one stream of events for all its links. Each reader drains it without waiting, and keeps the events for the others.
//! librdmacm has one context of a device for all its connections, so several devices may share a context: they share what was read.

use std::{
    ptr::NonNull,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use rdma_sys::{ibv_async_event, ibv_context};

use super::Library;

/// An `enum ibv_event_type` of <infiniband/verbs.h>: its number, its name, and its meaning.
pub(super) type Event = (u32, &'static str, &'static str);

pub(super) const CQ_ERR: u32 = 0;
pub(super) const QP_FATAL: u32 = 1;
pub(super) const QP_REQ_ERR: u32 = 2;
pub(super) const QP_ACCESS_ERR: u32 = 3;
pub(super) const DEVICE_FATAL: u32 = 8;
pub(super) const PORT_ERR: u32 = 10;
pub(super) const LID_CHANGE: u32 = 11;
pub(super) const PKEY_CHANGE: u32 = 12;
pub(super) const GID_CHANGE: u32 = 18;

/// Events of faults and changes. Omitted: established, drained, migrated, active, another subnet manager, and those of shared queues,
/// which we do not use.
pub(super) static EVENTS: [Event; 9] = [
    (CQ_ERR, "CQ_ERR", "a completion queue ran over or broke"),
    (QP_FATAL, "QP_FATAL", "the device stopped a queue pair after an error of its own"),
    (QP_REQ_ERR, "QP_REQ_ERR", "the peer sent a request that a queue pair cannot take"),
    (QP_ACCESS_ERR, "QP_ACCESS_ERR", "the peer asked for memory that it may not touch"),
    (DEVICE_FATAL, "DEVICE_FATAL", "the device failed and will be reset"),
    (PORT_ERR, "PORT_ERR", "the port went down"),
    (LID_CHANGE, "LID_CHANGE", "the subnet manager gave the port another LID"),
    (PKEY_CHANGE, "PKEY_CHANGE", "the subnet manager changed the port's partitions"),
    (GID_CHANGE, "GID_CHANGE", "the GID in use was taken away or changed"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum On {
    Device,
    Port(u8),
    QueuePair(u32),
    CompletionQueue(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) event: Event,
    pub(super) on: On,
}

#[derive(Debug)]
pub(super) struct Happened {
    /// Open while this lives.
    pub(super) context: NonNull<ibv_context>,
    library: &'static Library,
    seen: Mutex<Vec<Seen>>,
}

// SAFETY: libibverbs allows every call on a context from any thread.
unsafe impl Send for Happened {}
// SAFETY: as above.
unsafe impl Sync for Happened {}

/// Events of contexts that librdmacm has opened, by the context's address.
static SHARED: Mutex<Vec<(usize, Weak<Happened>)>> = Mutex::new(Vec::new());

impl Happened {
    /// For a context with other users: one for all of them.
    ///
    /// # Safety
    /// The context stays open while the returned value lives, so that its address is not reused.
    pub(super) unsafe fn shared(context: NonNull<ibv_context>, library: &'static Library) -> Arc<Self> {
        let (mut shared, address) = (SHARED.lock(), context.as_ptr().expose_provenance());
        shared.retain(|(_, happened)| happened.strong_count() > 0);
        let known = shared.iter().find(|(known, _)| *known == address).and_then(|(_, happened)| happened.upgrade());
        known.unwrap_or_else(|| {
            // SAFETY: the caller's promise.
            let new = Arc::new(unsafe { Self::new(context, library) });
            shared.push((address, Arc::downgrade(&new)));
            new
        })
    }

    /// # Safety
    /// As [`Happened::shared`].
    pub(super) unsafe fn new(context: NonNull<ibv_context>, library: &'static Library) -> Self {
        // SAFETY: the context is open, and so is its descriptor; the calls take no pointers.
        unsafe {
            let descriptor = (*context.as_ptr()).async_fd;
            let flags = libc::fcntl(descriptor, libc::F_GETFL);
            libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK);
        }
        Self { context, library, seen: Mutex::default() }
    }

    /// Takes what has come, and returns how much came so far.
    pub(super) fn drain(&self) -> usize {
        let (context, library) = (self.context.as_ptr(), self.library);
        // SAFETY: the context is open.
        let mut ready = libc::pollfd { fd: unsafe { (*context).async_fd }, events: libc::POLLIN, revents: 0 };
        // Locked from poll to push, so that an event that one thread takes is visible to all.
        let mut seen = self.seen.lock();
        // SAFETY: `ready` is one valid entry. Asked first, since a provider may make its descriptor block again.
        while unsafe { libc::poll(&raw mut ready, 1, 0) } == 1 && ready.revents & libc::POLLIN != 0 {
            let mut event = std::mem::MaybeUninit::<ibv_async_event>::uninit();
            // SAFETY: the context is open and `event` valid for writing.
            if unsafe { (library.ibv_get_async_event)(context, event.as_mut_ptr()) } != 0 {
                break;
            }
            // SAFETY: as above. The event's number is read as one: a library newer than the bindings may have others.
            let code = unsafe { (&raw const (*event.as_ptr()).event_type).cast::<u32>().read() };
            let known = EVENTS.iter().find(|event| event.0 == code);
            // SAFETY: the library has filled in the member that belongs to this kind of event; what it points to lives
            // until the event is acknowledged, right below.
            let new = known.map(|known| Seen { event: *known, on: unsafe { about(code, &*event.as_ptr()) } });
            // SAFETY: acknowledged once; nothing of it is used afterwards.
            unsafe { (library.ibv_ack_async_event)(event.as_mut_ptr()) };
            if let Some(new) = new {
                seen.push(new);
            }
        }
        seen.len()
    }

    pub(super) fn since(&self, first: usize) -> Vec<Seen> {
        self.seen.lock().get(first..).unwrap_or_default().to_vec()
    }
}

/// # Safety
/// `event` is one of the library's of this kind, one of [`EVENTS`], not acknowledged yet.
unsafe fn about(code: u32, event: &ibv_async_event) -> On {
    // SAFETY: as the caller vouches, this is the member that is set.
    unsafe {
        match code {
            CQ_ERR => On::CompletionQueue(event.element.cq as usize),
            QP_FATAL | QP_REQ_ERR | QP_ACCESS_ERR => On::QueuePair((*event.element.qp).qp_num),
            PORT_ERR | LID_CHANGE | PKEY_CHANGE | GID_CHANGE => {
                On::Port(u8::try_from(event.element.port_num).unwrap_or(0))
            }
            _ => On::Device,
        }
    }
}
