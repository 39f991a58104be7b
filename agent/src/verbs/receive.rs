//! Receive work requests, posted ahead and replaced in batches; and messages with a word next to each payload in slots of one region,
//! whose free slots the caller tracks.

use std::{any::Any, mem, ptr, sync::Arc};

use rdma_sys::*;

use super::{
    queue_pair::QueuePair,
    region::Region,
    send::{Walk, sided},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Landing {
    pub first: u64,
    pub size: u32,
    pub walk: Walk,
}

pub(crate) struct Receives {
    queue_pair: *mut ibv_qp,
    requests: Box<[ibv_recv_wr]>,
    elements: Box<[ibv_sge]>,
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
        let mut elements = vec![element; batch as usize].into_boxed_slice();
        let blank = ibv_recv_wr { wr_id: 0, next: ptr::null_mut(), sg_list: ptr::null_mut(), num_sge: 1 };
        let mut requests = vec![blank; batch as usize].into_boxed_slice();
        for i in 0..requests.len() {
            requests[i].sg_list = &raw mut elements[i];
            requests[i].wr_id = u64::from(tag) << 32;
            requests[i].next = requests.get_mut(i + 1).map_or(ptr::null_mut(), ptr::from_mut);
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
                self.elements[i].addr = self.base + self.place(self.posted + i as u64);
            }
        }
        let mut refused = ptr::null_mut();
        // SAFETY: the queue pair is alive; the list is linked, ends in null and points to elements of this value, and
        // every element lies in the region (checked in `new`), which is kept alive.
        match unsafe { ibv_post_recv(self.queue_pair, self.requests.as_mut_ptr(), &raw mut refused) } {
            0 => {
                self.posted += u64::from(self.batch);
                Ok(())
            }
            errno => Err(errno),
        }
    }
}

pub(crate) struct Messages {
    queue_pair: Arc<QueuePair>,
    region: Arc<Region>,
    first: u64,
    size: u32,
    slots: u32,
    tag: u32,
}

impl Messages {
    /// `tag` is in every completion. `None` if the slots would leave the region.
    pub(crate) fn new(
        queue_pair: &Arc<QueuePair>,
        region: &Arc<Region>,
        (first, size, slots): (u64, u32, u32),
        tag: u32,
    ) -> Option<Self> {
        let end = u64::from(size).checked_mul(slots.into())?.checked_add(first)?;
        let inside = end <= region.length() as u64;
        inside.then(|| Self { queue_pair: queue_pair.clone(), region: region.clone(), first, size, slots, tag })
    }

    pub(crate) fn place(&self, slot: u32) -> u64 {
        self.first + u64::from(slot) * u64::from(self.size)
    }

    pub(crate) fn send(&self, slot: u32, length: u32, word: u32) -> Result<(), i32> {
        let mut element = self.element(slot, length)?;
        // SAFETY: all zero (null pointers, numbers) is a valid value of this structure.
        let mut request: ibv_send_wr = unsafe { mem::zeroed() };
        request.wr_id = sided(self.tag, 1);
        request.sg_list = &raw mut element;
        request.num_sge = i32::from(length > 0);
        request.opcode = ibv_wr_opcode::IBV_WR_SEND_WITH_IMM;
        request.send_flags = ibv_send_flags::IBV_SEND_SIGNALED.0;
        request.imm_data_invalidated_rkey_union = imm_data_invalidated_rkey_union_t { imm_data: word.to_be() };
        let mut refused = ptr::null_mut();
        // SAFETY: the queue pair is alive, the request and its element outlive the call, which copies them, and the
        // payload lies in the region (see `element`), which lives as long as this value.
        match unsafe { ibv_post_send(self.queue_pair.raw(), &raw mut request, &raw mut refused) } {
            0 => Ok(()),
            errno => Err(errno),
        }
    }

    pub(crate) fn receive(&self, slot: u32) -> Result<(), i32> {
        let mut element = self.element(slot, self.size)?;
        let mut request =
            ibv_recv_wr { wr_id: sided(self.tag, slot), next: ptr::null_mut(), sg_list: &raw mut element, num_sge: 1 };
        let mut refused = ptr::null_mut();
        // SAFETY: as in `send`.
        match unsafe { ibv_post_recv(self.queue_pair.raw(), &raw mut request, &raw mut refused) } {
            0 => Ok(()),
            errno => Err(errno),
        }
    }

    fn element(&self, slot: u32, length: u32) -> Result<ibv_sge, i32> {
        if slot >= self.slots || length > self.size {
            return Err(libc::EINVAL);
        }
        Ok(ibv_sge { addr: self.region.address() + self.place(slot), length, lkey: self.region.local_key() })
    }
}
