//! Send work requests, built once and posted many times.
//!
//! A ring of ready-made requests is linked into lists; posting one list is one call through the context's own
//! function pointer, as `ibv_post_send` of `<infiniband/verbs.h>` does. Devices copy requests while they are posted,
//! so that a list may be posted again at once. Nothing here allocates after `new`.

use std::{
    any::Any,
    cell::UnsafeCell,
    mem,
    ops::Range,
    ptr::{self, NonNull},
    sync::Arc,
};

use rdma_sys::*;

use super::{Address, QueuePair, Region, completion::sided};

#[derive(Debug, Clone)]
pub enum Verb {
    Write,
    WriteImmediate,
    Read,
    Send,
    SendTo { address: Arc<Address>, queue_pair: u32, queue_key: u32 },
    FetchAdd { add: u64 },
    CompareSwap { compare: u64, swap: u64 },
}

/// Steps from one message to the next, and back to the start at `span`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Walk {
    /// Bytes from one message to the next; 0 stays in place.
    pub step: u64,
    /// Offsets stay below this, which is a multiple of `step`.
    pub span: u64,
}

impl Walk {
    pub fn places(&self) -> u64 {
        self.span.checked_div(self.step).unwrap_or(1).max(1)
    }

    pub fn place(&self, n: u64) -> u64 {
        n % self.places() * self.step
    }

    /// Whether messages of `size` bytes that start at `first` stay below `length`.
    pub fn fits(&self, first: u64, size: u64, length: u64) -> bool {
        let end = first.checked_add(self.place(self.places() - 1)).and_then(|last| last.checked_add(size));
        end.is_some_and(|end| end <= length)
    }
}

#[derive(Debug, Clone)]
pub struct Template {
    pub verb: Verb,
    pub size: u32,
    /// Offset of the first local byte in its region.
    pub local: u64,
    /// The peer's address of the first byte.
    pub remote: u64,
    pub remote_key: u32,
    pub walk: Walk,
    pub inline: bool,
    pub list: u32,
    /// One completion per this many requests; a multiple of `list`, or `list` a multiple of it.
    pub signal_every: u32,
    /// Comes back in the upper half of every completion's `wr_id`.
    pub tag: u32,
}

/// Entries that point to each other, and that the library reads by these pointers while a list is posted. A box would claim to have the
/// only pointer to them, whenever it moves.
pub(super) struct Linked<T>(NonNull<[UnsafeCell<T>]>);

impl<T> Linked<T> {
    pub(super) fn new(entries: impl Iterator<Item = T>) -> Self {
        Self(Box::leak(entries.map(UnsafeCell::new).collect::<Box<[_]>>()).into())
    }

    #[inline]
    fn all(&self) -> &[UnsafeCell<T>] {
        // SAFETY: the box of `new`, which is freed in `drop` alone.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Valid for as long as this value lives.
    #[inline]
    pub(super) fn pointer(&self, i: usize) -> *mut T {
        self.all()[i].get()
    }

    #[inline]
    pub(super) fn range(&mut self, range: Range<usize>) -> impl Iterator<Item = &mut T> {
        // SAFETY: the only references to entries come from here, and `self` is borrowed while they live.
        self.all()[range].iter().map(|entry| unsafe { &mut *entry.get() })
    }

    pub(super) fn entry(&mut self, i: usize) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.pointer(i) }
    }
}

impl<T> Drop for Linked<T> {
    fn drop(&mut self) {
        // SAFETY: the box of `new`; nothing follows its pointers any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Kept alive while requests may be posted.
pub(crate) type Alive = Arc<dyn Any + Send + Sync>;

/// A ring of requests on one queue pair. Its length is the larger of list and signalling interval, so that the last request of the ring
/// always completes, and unconfirmed requests are those before `next`.
pub struct Sends {
    queue_pair: *mut ibv_qp,
    requests: Linked<ibv_send_wr>,
    elements: Linked<ibv_sge>,
    template: Template,
    /// Local address of the first message.
    start: u64,
    next: usize,
    at: u64,
    posted: u64,
    completed: u64,
    _alive: [Alive; 2],
}

// SAFETY: a queue pair may be posted to from any thread, and only this value has its pointers.
unsafe impl Send for Sends {}

impl Sends {
    /// `None` if the payload would leave the region.
    pub fn new(queue_pair: &Arc<QueuePair>, region: &Arc<Region>, template: Template) -> Option<Self> {
        if !template.walk.fits(template.local, u64::from(template.size), region.length() as u64) {
            return None;
        }
        let (raw, base, key) = (queue_pair.raw(), region.address(), region.local_key());
        let alive: [Alive; 2] = [queue_pair.clone(), region.clone()];
        // SAFETY: the queue pair and the region are kept alive, and the payload lies inside the region.
        Some(unsafe { Self::from_raw(raw, base, key, alive, template) })
    }

    /// For [`Sends::new`], and for the stub that measures our own cost per message.
    ///
    /// # Safety
    /// `queue_pair` must be one whose context can post, and `base` and `key` must allow the template's payload to be
    /// read and written, for as long as `alive` lives.
    pub unsafe fn from_raw(
        queue_pair: *mut ibv_qp,
        base: u64,
        key: u32,
        alive: [Alive; 2],
        template: Template,
    ) -> Self {
        let template = Template { list: template.list.max(1), signal_every: template.signal_every.max(1), ..template };
        let length = template.list.max(template.signal_every) as usize;
        let start = base + template.local;
        let mut ring = Self {
            queue_pair,
            requests: Linked::new((0..length).map(|_| request(&template))),
            elements: Linked::new((0..length).map(|_| ibv_sge { addr: start, length: template.size, lkey: key })),
            template,
            start,
            next: 0,
            at: 0,
            posted: 0,
            completed: 0,
            _alive: alive,
        };
        for i in 0..length {
            ring.requests.entry(i).sg_list = ring.elements.pointer(i);
            ring.link(i);
        }
        ring
    }

    /// Links request `i` to its successor and sets whether it completes, as it belongs in a full list.
    fn link(&mut self, i: usize) {
        let (list, every) = (self.template.list as usize, self.template.signal_every);
        let last = (i + 1).is_multiple_of(list);
        let next = if last { ptr::null_mut() } else { self.requests.pointer(i + 1) };
        self.requests.entry(i).next = next;
        let covers = (i as u32 + 1).is_multiple_of(every).then_some(every);
        self.signal(i, covers);
    }

    fn signal(&mut self, i: usize, covers: Option<u32>) {
        let flag = ibv_send_flags::IBV_SEND_SIGNALED.0;
        let tag = self.template.tag;
        let request = self.requests.entry(i);
        request.send_flags = if covers.is_some() { request.send_flags | flag } else { request.send_flags & !flag };
        request.wr_id = sided(tag, covers.unwrap_or(0));
    }

    /// Requests posted and not known to be complete.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.posted - self.completed
    }

    /// Requests posted since the last one that completes.
    #[inline]
    pub fn silent(&self) -> u64 {
        self.next as u64 % u64::from(self.template.signal_every)
    }

    #[inline]
    pub fn signal_every(&self) -> u64 {
        u64::from(self.template.signal_every)
    }

    #[inline]
    pub fn posted(&self) -> u64 {
        self.posted
    }

    #[inline]
    pub fn list(&self) -> u32 {
        self.template.list
    }

    /// Takes note of a completion that covered so many requests.
    #[inline]
    pub fn complete(&mut self, requests: u32) {
        self.completed += u64::from(requests);
    }

    #[inline]
    pub fn post(&mut self) -> Result<(), i32> {
        let (first, list) = (self.next, self.template.list as usize);
        if self.template.walk.step != 0 {
            self.walk(first, list);
        }
        self.hand_over(first)?;
        self.posted += list as u64;
        self.next = if first + list >= self.requests.len() { 0 } else { first + list };
        Ok(())
    }

    /// Posts at most `count` requests, never more than a list, and the last completes; the ring restarts after them. For the end of a
    /// pass.
    pub fn post_last(&mut self, count: u64) -> Result<(), i32> {
        let (first, count) = (self.next, count.min(u64::from(self.template.list)) as usize);
        if count == 0 {
            return Ok(());
        }
        if self.template.walk.step != 0 {
            self.walk(first, count);
        }
        let last = first + count - 1;
        self.signal(last, Some(last as u32 % self.template.signal_every + 1));
        self.requests.entry(last).next = ptr::null_mut();
        let handed = self.hand_over(first);
        self.link(last);
        handed?;
        self.posted += count as u64;
        self.next = 0;
        Ok(())
    }

    /// Posts one more request if the last one posted would never complete, so that all of them can be waited for.
    pub fn settle(&mut self) -> Result<(), i32> {
        if self.next == 0 { Ok(()) } else { self.post_last(1) }
    }

    #[inline]
    fn hand_over(&mut self, first: usize) -> Result<(), i32> {
        let mut refused = ptr::null_mut();
        // SAFETY: the queue pair is alive; from `first` on the list is linked, ends in null, and points to elements
        // of this ring.
        match unsafe { ibv_post_send(self.queue_pair, self.requests.pointer(first), &raw mut refused) } {
            0 => Ok(()),
            errno => Err(errno),
        }
    }

    /// Moves `count` requests from `first` on to the next places of the walk.
    #[inline]
    fn walk(&mut self, first: usize, count: usize) {
        let Template { walk: Walk { step, span }, remote, remote_key, .. } = self.template;
        let (rdma, atomic) = match self.template.verb {
            Verb::Write | Verb::WriteImmediate | Verb::Read => (true, false),
            Verb::FetchAdd { .. } | Verb::CompareSwap { .. } => (false, true),
            Verb::Send | Verb::SendTo { .. } => (false, false),
        };
        let mut at = self.at;
        let range = first..first + count;
        for (request, element) in self.requests.range(range.clone()).zip(self.elements.range(range)) {
            element.addr = self.start + at;
            if rdma {
                request.wr.rdma = rdma_t { remote_addr: remote + at, rkey: remote_key };
            }
            if atomic {
                request.wr.atomic.remote_addr = remote + at;
            }
            at += step;
            if at >= span {
                at = 0;
            }
        }
        self.at = at;
    }
}

fn request(template: &Template) -> ibv_send_wr {
    use ibv_wr_opcode as op;
    let (remote_addr, rkey) = (template.remote, template.remote_key);
    // SAFETY: all zero (null pointers, numbers) is a valid value of this structure.
    let mut request: ibv_send_wr = unsafe { mem::zeroed() };
    request.num_sge = 1;
    request.send_flags = if template.inline { ibv_send_flags::IBV_SEND_INLINE.0 } else { 0 };
    let (opcode, wr) = match &template.verb {
        Verb::Write => (op::IBV_WR_RDMA_WRITE, wr_t { rdma: rdma_t { remote_addr, rkey } }),
        Verb::WriteImmediate => (op::IBV_WR_RDMA_WRITE_WITH_IMM, wr_t { rdma: rdma_t { remote_addr, rkey } }),
        Verb::Read => (op::IBV_WR_RDMA_READ, wr_t { rdma: rdma_t { remote_addr, rkey } }),
        Verb::Send => (op::IBV_WR_SEND, request.wr),
        Verb::SendTo { address, queue_pair, queue_key } => {
            let to = ud_t { ah: address.raw(), remote_qpn: *queue_pair, remote_qkey: *queue_key };
            (op::IBV_WR_SEND, wr_t { ud: to })
        }
        Verb::FetchAdd { add } => {
            let atomic = atomic_t { remote_addr, compare_add: *add, swap: 0, rkey };
            (op::IBV_WR_ATOMIC_FETCH_AND_ADD, wr_t { atomic })
        }
        Verb::CompareSwap { compare, swap } => {
            let atomic = atomic_t { remote_addr, compare_add: *compare, swap: *swap, rkey };
            (op::IBV_WR_ATOMIC_CMP_AND_SWP, wr_t { atomic })
        }
    };
    request.opcode = opcode;
    request.wr = wr;
    request
}
