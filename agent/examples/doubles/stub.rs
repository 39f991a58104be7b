//! A device that completes everything at once: what is left of a loop's time is our own cost per message. Used by
//! `bench/fast-path` only; no link can open it.

use std::{
    cell::UnsafeCell,
    ffi::c_int,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use rdma_sys::*;

use crate::parts::{Beat, Flag, Poller, Sends, Template};

const ROOM: usize = 1024;

/// Bytes messages are sent from.
const BUFFER: usize = 1 << 20;

struct State {
    context: ibv_context,
    queue_pair: ibv_qp,
    queue: ibv_cq,
    done: [(u64, ibv_wc_opcode::Type); ROOM],
    head: usize,
    tail: usize,
    /// Whether the peer answers every message with one whose first and last byte are the same.
    answers: bool,
    incoming: [Arc<AtomicU8>; 2],
    outgoing: [Arc<AtomicU8>; 2],
    buffer: Vec<u8>,
}

/// What the library's functions change, reached by its address alone.
struct Shared(Box<UnsafeCell<State>>);

// SAFETY: a ring and a poller are used by the thread that made them, as neither is cloned or given to another here.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// The device, with one queue pair and one completion queue. Rings and pollers keep it.
pub struct Stub {
    shared: Arc<Shared>,
    incoming: [Arc<AtomicU8>; 2],
    outgoing: [Arc<AtomicU8>; 2],
}

impl Stub {
    /// A device, and whether a peer behind it answers every message.
    pub fn new(answers: bool) -> Self {
        let (incoming, outgoing): ([Arc<AtomicU8>; 2], [Arc<AtomicU8>; 2]) = Default::default();
        // SAFETY: all zero (null pointers, numbers, no functions) is a valid value of all three.
        let (context, queue_pair, queue) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        let shared = Arc::new(Shared(Box::new(UnsafeCell::new(State {
            context,
            queue_pair,
            queue,
            done: [(0, 0); ROOM],
            head: 0,
            tail: 0,
            answers,
            incoming: incoming.clone(),
            outgoing: outgoing.clone(),
            buffer: vec![0; BUFFER],
        }))));
        let at = shared.0.get();
        // SAFETY: nothing else uses the state yet.
        unsafe {
            (*at).context.ops.post_send = Some(post_send);
            (*at).context.ops.poll_cq = Some(poll_cq);
            (*at).queue_pair.context = &raw mut (*at).context;
            (*at).queue_pair.qp_context = at.cast();
            (*at).queue.context = &raw mut (*at).context;
            (*at).queue.cq_context = at.cast();
        }
        Self { shared, incoming, outgoing }
    }

    /// A ring of requests on its queue pair.
    pub fn sends(&self, template: Template) -> Sends {
        let at = self.shared.0.get();
        // SAFETY: the ring keeps the state, and the functions of the state never look at the payload.
        unsafe {
            let base = (*at).buffer.as_ptr() as u64;
            Sends::from_raw(&raw mut (*at).queue_pair, base, 0, [self.shared.clone(), self.shared.clone()], template)
        }
    }

    pub fn poller(&self) -> Poller {
        // SAFETY: as above.
        unsafe { Poller::from_raw(&raw mut (*self.shared.0.get()).queue, "stub", self.shared.clone()) }
    }

    /// First and last byte of the outgoing and of the incoming message, of 64 bytes each.
    pub fn beats(&self) -> (Beat, Beat) {
        let beat = |[first, last]: &[Arc<AtomicU8>; 2]| Beat::new(Flag::own(first), Flag::own(last), 64);
        (beat(&self.outgoing), beat(&self.incoming))
    }
}

/// Takes a list of requests; those that are signalled are complete at once.
unsafe extern "C" fn post_send(qp: *mut ibv_qp, mut wr: *mut ibv_send_wr, _bad: *mut *mut ibv_send_wr) -> c_int {
    // SAFETY: the context of this queue pair is the state that holds it, which no other call uses at the same time.
    let state = unsafe { &mut *(*qp).qp_context.cast::<State>() };
    // SAFETY: the list is linked and ends in null.
    while let Some(request) = unsafe { wr.as_ref() } {
        if request.send_flags & ibv_send_flags::IBV_SEND_SIGNALED.0 != 0 {
            state.done[state.tail % ROOM] = (request.wr_id, ibv_wc_opcode::IBV_WC_RDMA_WRITE);
            state.tail += 1;
        }
        wr = request.next;
    }
    if state.answers {
        for (from, to) in state.outgoing.iter().zip(&state.incoming) {
            to.store(from.load(Ordering::Relaxed), Ordering::Release);
        }
    }
    0
}

unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, most: c_int, into: *mut ibv_wc) -> c_int {
    // SAFETY: as in `post_send`.
    let state = unsafe { &mut *(*cq).cq_context.cast::<State>() };
    let mut taken = 0;
    while taken < most && state.head < state.tail {
        let (wr_id, opcode) = state.done[state.head % ROOM];
        let entry = ibv_wc {
            wr_id,
            status: ibv_wc_status::IBV_WC_SUCCESS,
            opcode,
            vendor_err: 0,
            byte_len: 0,
            imm_data_invalidated_rkey_union: imm_data_invalidated_rkey_union_t { imm_data: 0 },
            qp_num: 0,
            src_qp: 0,
            wc_flags: 0,
            pkey_index: 0,
            slid: 0,
            sl: 0,
            dlid_path_bits: 0,
        };
        // SAFETY: there is room for `most` entries.
        unsafe { into.add(taken as usize).write(entry) };
        state.head += 1;
        taken += 1;
    }
    taken
}
