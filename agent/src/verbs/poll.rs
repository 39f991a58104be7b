//! Taking completions from a queue, a batch at a time.

use std::{any::Any, mem::MaybeUninit, sync::Arc};

use railgauge_wire::failure::{Failure, Stage};
use rdma_sys::*;

use super::{
    completion::CompletionQueue,
    send,
    words::{self, Doing},
};

#[derive(Clone, Copy)]
pub struct Completion<'a>(&'a ibv_wc);

impl Completion<'_> {
    /// Whether a receive was consumed; else a send completed.
    #[inline]
    pub fn is_receive(&self) -> bool {
        self.0.opcode & ibv_wc_opcode::IBV_WC_RECV != 0
    }

    /// The tag of the ring that posted the work.
    #[inline]
    pub fn tag(&self) -> usize {
        send::tag(self.0.wr_id) as usize
    }

    #[inline]
    pub fn covered(&self) -> u32 {
        send::covered(self.0.wr_id)
    }

    /// The word that came beside a message (receives of [`super::message::Messages`] only).
    #[inline]
    pub fn word(&self) -> u32 {
        // SAFETY: both members of the union are 32 bits, and any bits are a number.
        u32::from_be(unsafe { self.0.imm_data_invalidated_rkey_union.imm_data })
    }

    /// Bytes that arrived (receives only).
    #[inline]
    pub fn bytes(&self) -> u64 {
        u64::from(self.0.byte_len)
    }
}

/// Completions taken at once.
pub(crate) const BATCH: usize = 32;

/// Takes completions. Nothing here allocates after `new`, unless something went wrong.
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
    /// A poller of `queue`.
    pub fn new(queue: &Arc<CompletionQueue>) -> Self {
        // SAFETY: the queue is kept alive.
        unsafe { Self::from_raw(queue.raw(), queue.device().name(), queue.clone()) }
    }

    /// A poller of any queue: what [`Poller::new`] uses, and the stub that measures our own cost per message.
    ///
    /// # Safety
    /// `queue` must be one whose context can poll, for as long as `alive` lives.
    pub unsafe fn from_raw(queue: *mut ibv_cq, device: &str, alive: Arc<dyn Any + Send + Sync>) -> Self {
        let entries = Box::new([const { MaybeUninit::uninit() }; BATCH]);
        Self { queue, entries, device: device.to_owned(), failed: None, _alive: alive }
    }

    /// Takes what is there, at most [`BATCH`], and passes each completion on. Returns how many there were.
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
                self.failed = Some(send::tag(completion.wr_id) as usize);
                return Err(words::completion(Stage::Measure, &self.device, completion));
            }
            each(Completion(completion));
        }
        Ok(taken)
    }

    /// The tag of the ring whose work failed.
    pub fn failed(&self) -> Option<usize> {
        self.failed
    }

    #[cold]
    fn broken(&self, rc: i32) -> Failure {
        words::verb(Stage::Measure, Doing::Poll, &self.device, if rc == -1 { libc::EIO } else { rc })
    }
}
