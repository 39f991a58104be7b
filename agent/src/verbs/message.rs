//! Messages of any length on a connected queue pair, one request at a time, each with a word beside its payload.
//!
//! Payload goes out of and comes into slots of one registered region; whoever uses this keeps account of which are
//! free.

use std::{mem, ptr, sync::Arc};

use rdma_sys::*;

use super::{queue_pair::QueuePair, region::Region, send::sided};

pub(crate) struct Messages {
    queue_pair: Arc<QueuePair>,
    region: Arc<Region>,
    /// Offset of the first slot in the region, and bytes of each.
    first: u64,
    size: u32,
    slots: u32,
    tag: u32,
}

impl Messages {
    /// `slots` slots of `size` bytes from offset `first` of `region` on; `tag` comes back in every completion. `None`
    /// if they would leave the region.
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

    /// Sends the first `length` bytes of a slot, and a word beside them. Completes for one request.
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

    /// Lets a message come into a slot; the slot's number comes back in [`super::poll::Completion::covered`].
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

    /// The first `length` bytes of a slot, which must be one.
    fn element(&self, slot: u32, length: u32) -> Result<ibv_sge, i32> {
        if slot >= self.slots || length > self.size {
            return Err(libc::EINVAL);
        }
        Ok(ibv_sge { addr: self.region.address() + self.place(slot), length, lkey: self.region.local_key() })
    }
}
