//! Receive work requests, posted ahead and replaced in batches; and messages with a word next to each payload in slots of one region.

use std::{any::Any, mem, ptr, slice, sync::Arc};

use railgauge_wire::Failure;
use rdma_sys::*;

use super::{Access, Completion, Domain, QueuePair, Region, Walk, completion::sided, send::Linked};
use crate::memory::shared::Shared;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Landing {
    pub first: u64,
    pub size: u32,
    pub walk: Walk,
}

pub(crate) struct Receives {
    queue_pair: *mut ibv_qp,
    requests: Linked<ibv_recv_wr>,
    elements: Linked<ibv_sge>,
    landing: Landing,
    base: u64,
    batch: u32,
    posted: u64,
    consumed: u64,
    _alive: [Arc<dyn Any + Send + Sync>; 2],
}

// SAFETY: a queue pair may be posted to from any thread, and only this value has its pointers.
unsafe impl Send for Receives {}

impl Receives {
    /// `tag` is in every completion. `None` if the receives would leave `region`.
    pub(crate) fn new(
        queue_pair: &Arc<QueuePair>,
        region: &Arc<Region>,
        landing: Landing,
        batch: u32,
        tag: u32,
    ) -> Option<Self> {
        if !landing.walk.fits(landing.first, u64::from(landing.size), region.length() as u64) {
            return None;
        }
        let batch = batch.max(1);
        let element =
            ibv_sge { addr: region.address() + landing.first, length: landing.size, lkey: region.local_key() };
        let elements = Linked::new((0..batch).map(|_| element));
        let request = |i| {
            let sg_list = elements.pointer(i as usize);
            ibv_recv_wr { wr_id: sided(tag, 0), next: ptr::null_mut(), sg_list, num_sge: 1 }
        };
        let mut requests = Linked::new((0..batch).map(request));
        for i in 1..requests.len() {
            requests.entry(i - 1).next = requests.pointer(i);
        }
        Some(Self {
            queue_pair: queue_pair.raw(),
            requests,
            elements,
            landing,
            base: region.address(),
            batch,
            posted: 0,
            consumed: 0,
            _alive: [queue_pair.clone(), region.clone()],
        })
    }

    #[inline]
    pub(crate) fn posted(&self) -> u64 {
        self.posted
    }

    #[inline]
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// In the region; `n` counts from 0 over the life of the queue pair.
    pub(crate) fn place(&self, n: u64) -> u64 {
        self.landing.first + self.landing.walk.place(n)
    }

    /// Counts consumed receives and posts new ones in batches. Returns whether it posted.
    #[inline]
    pub(crate) fn consume(&mut self, receives: u64, ahead: u64) -> Result<bool, i32> {
        self.consumed += receives;
        let mut fresh = false;
        while self.posted - self.consumed + u64::from(self.batch) <= ahead {
            self.post()?;
            fresh = true;
        }
        Ok(fresh)
    }

    fn post(&mut self) -> Result<(), i32> {
        if self.landing.walk.step != 0 {
            for i in 0..self.batch as usize {
                self.elements.entry(i).addr = self.base + self.place(self.posted + i as u64);
            }
        }
        let mut refused = ptr::null_mut();
        // SAFETY: the queue pair is alive; the list is linked, ends in null and points to elements of this value, and
        // every element lies in the region (checked in `new`), which is kept alive.
        match unsafe { ibv_post_recv(self.queue_pair, self.requests.pointer(0), &raw mut refused) } {
            0 => {
                self.posted += u64::from(self.batch);
                Ok(())
            }
            errno => Err(errno),
        }
    }
}

/// Registered memory that is cut into slots of messages.
pub(crate) struct Slots {
    region: Arc<Region>,
    size: u32,
    taken: usize,
}

impl Slots {
    pub(crate) fn new(domain: &Arc<Domain>, count: u64, size: u32, huge: bool) -> Result<Self, Failure> {
        let memory = Arc::new(Shared::new(count * u64::from(size), huge)?);
        Ok(Self { region: Arc::new(Region::register(domain, memory, Access::default())?), size, taken: 0 })
    }

    /// In bytes.
    pub(crate) fn length(&self) -> usize {
        self.region.length()
    }

    /// The next `count` slots. `tag` is in every completion. `None` if there are no more.
    pub(crate) fn next(&mut self, queue_pair: &Arc<QueuePair>, count: u32, tag: u32) -> Option<Messages> {
        let length = count as usize * self.size as usize;
        let bytes = self.region.backing().cells()?.get(self.taken..self.taken + length)?.as_ptr().cast_mut().cast();
        self.taken += length;
        let posted = vec![false; count as usize].into();
        Some(Messages {
            queue_pair: queue_pair.clone(),
            region: self.region.clone(),
            bytes,
            size: self.size,
            tag,
            posted,
        })
    }
}

/// Messages of a queue pair. A slot is the device's from posting to completion, and this value's otherwise.
pub(crate) struct Messages {
    queue_pair: Arc<QueuePair>,
    region: Arc<Region>,
    /// Its slots, which nothing else reaches.
    bytes: *mut u8,
    size: u32,
    tag: u32,
    posted: Box<[bool]>,
}

// SAFETY: only this value has the pointer.
unsafe impl Send for Messages {}

impl Messages {
    /// `Err` if the device has the slot.
    pub(crate) fn slot(&mut self, slot: u32) -> Result<&mut [u8], i32> {
        if self.posted.get(slot as usize) != Some(&false) {
            return Err(libc::EINVAL);
        }
        let (at, size) = (slot as usize * self.size as usize, self.size as usize);
        // SAFETY: one of its slots, which the device has not got and which is borrowed with `self`.
        Ok(unsafe { slice::from_raw_parts_mut(self.bytes.add(at), size) })
    }

    pub(crate) fn send(&mut self, slot: u32, bytes: &[u8], word: u32) -> Result<(), i32> {
        self.slot(slot)?.get_mut(..bytes.len()).ok_or(libc::EINVAL)?.copy_from_slice(bytes);
        // A slot's size is an u32.
        let mut element = self.element(slot, bytes.len() as u32);
        // SAFETY: all zero (null pointers, numbers) is a valid value of this structure.
        let mut request: ibv_send_wr = unsafe { mem::zeroed() };
        request.wr_id = sided(self.tag, slot);
        request.sg_list = &raw mut element;
        request.num_sge = i32::from(!bytes.is_empty());
        request.opcode = ibv_wr_opcode::IBV_WR_SEND_WITH_IMM;
        request.send_flags = ibv_send_flags::IBV_SEND_SIGNALED.0;
        request.imm_data_invalidated_rkey_union = imm_data_invalidated_rkey_union_t { imm_data: word.to_be() };
        let mut refused = ptr::null_mut();
        // SAFETY: the queue pair is alive, the request and its element outlive the call, which copies them, and the
        // slot lies in the region, which lives as long as this value, and is not touched before its completion.
        let errno = unsafe { ibv_post_send(self.queue_pair.raw(), &raw mut request, &raw mut refused) };
        self.handed(slot, errno)
    }

    pub(crate) fn receive(&mut self, slot: u32) -> Result<(), i32> {
        self.slot(slot)?;
        let mut element = self.element(slot, self.size);
        let mut request =
            ibv_recv_wr { wr_id: sided(self.tag, slot), next: ptr::null_mut(), sg_list: &raw mut element, num_sge: 1 };
        let mut refused = ptr::null_mut();
        // SAFETY: as in `send`.
        let errno = unsafe { ibv_post_recv(self.queue_pair.raw(), &raw mut request, &raw mut refused) };
        self.handed(slot, errno)
    }

    fn handed(&mut self, slot: u32, errno: i32) -> Result<(), i32> {
        self.posted[slot as usize] = errno == 0;
        if errno == 0 { Ok(()) } else { Err(errno) }
    }

    /// Takes the slot of a completion back; `None` if it is not one of these messages.
    pub(crate) fn complete(&mut self, completion: &Completion<'_>) -> Option<u32> {
        let slot = completion.covered();
        let is_own = completion.queue_pair() == self.queue_pair.number();
        let posted = self.posted.get_mut(slot as usize).filter(|posted| is_own && **posted)?;
        *posted = false;
        Some(slot)
    }

    fn element(&self, slot: u32, length: u32) -> ibv_sge {
        let addr = self.bytes.expose_provenance() as u64 + u64::from(slot) * u64::from(self.size);
        ibv_sge { addr, length, lkey: self.region.local_key() }
    }
}
