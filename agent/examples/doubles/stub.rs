//! A device that completes everything at once: what is left of a loop's time is our own cost per message. Used by
//! `bench/fast-path` only; no link can open it.

use std::{
    any::Any,
    ffi::c_int,
    mem, ptr,
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

/// The device, with one queue pair and one completion queue.
pub struct Stub(Box<State>);

impl Stub {
    /// A device, and whether a peer behind it answers every message.
    pub fn new(answers: bool) -> Self {
        // SAFETY: all zero (null pointers, numbers, no functions) is a valid value of all three.
        let (context, queue_pair, queue) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        let mut state = Box::new(State {
            context,
            queue_pair,
            queue,
            done: [(0, 0); ROOM],
            head: 0,
            tail: 0,
            answers,
            incoming: Default::default(),
            outgoing: Default::default(),
            buffer: vec![0; BUFFER],
        });
        let at = ptr::from_mut(&mut *state);
        state.context.ops.post_send = Some(post_send);
        state.context.ops.poll_cq = Some(poll_cq);
        state.queue_pair.context = &raw mut state.context;
        state.queue_pair.qp_context = at.cast();
        state.queue.context = &raw mut state.context;
        state.queue.cq_context = at.cast();
        Self(state)
    }

    /// A ring of requests on its queue pair.
    pub fn sends(&mut self, template: Template) -> Sends {
        let nothing: Arc<dyn Any + Send + Sync> = Arc::new(());
        let base = self.0.buffer.as_ptr() as u64;
        // SAFETY: the stub never looks at the payload, and whoever drives the ring keeps the stub until it is done.
        unsafe { Sends::from_raw(&raw mut self.0.queue_pair, base, 0, [nothing.clone(), nothing], template) }
    }

    pub fn poller(&mut self) -> Poller {
        // SAFETY: as above.
        unsafe { Poller::from_raw(&raw mut self.0.queue, "stub", Arc::new(())) }
    }

    /// First and last byte of the outgoing and of the incoming message, of 64 bytes each.
    pub fn beats(&self) -> (Beat, Beat) {
        let beat = |[first, last]: &[Arc<AtomicU8>; 2]| Beat::new(Flag::own(first), Flag::own(last), 64);
        (beat(&self.0.outgoing), beat(&self.0.incoming))
    }
}

/// Takes a list of requests; those that are signalled are complete at once.
unsafe extern "C" fn post_send(qp: *mut ibv_qp, mut wr: *mut ibv_send_wr, _bad: *mut *mut ibv_send_wr) -> c_int {
    // SAFETY: the context of this queue pair is the state that holds it.
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
    // SAFETY: the context of this queue is the state that holds it.
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
