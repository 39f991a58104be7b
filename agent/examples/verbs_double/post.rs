//! Work requests as they are posted: what a provider refuses at once, it refuses here; what a device finds later is
//! found by `requester`.

use std::{ffi::c_int, slice, sync::Arc};

use rdma_sys::*;

use crate::{
    address::Address,
    event, memory,
    queue_pair::{Pair, Payload, Receive, Work, pair},
    settings::{Settings, settings},
};

/// The context's own operation, as `ibv_post_send` of the headers calls it.
///
/// # Safety
/// The queue pair is alive, the list linked, and what it points to is there.
pub unsafe extern "C" fn send(qp: *mut ibv_qp, mut wr: *mut ibv_send_wr, refused: *mut *mut ibv_send_wr) -> c_int {
    event::began();
    // SAFETY: the caller vouches for the queue pair.
    let pair = unsafe { pair(qp) };
    // SAFETY: the list is linked and ends in null.
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: handed on to the caller.
        let taken = unsafe { work(pair, request) }.and_then(|work| queue(pair, work));
        if let Err(errno) = taken {
            // SAFETY: the caller gives a place for it.
            unsafe { *refused = wr };
            pair.posted.notify_all();
            return errno;
        }
        wr = request.next;
    }
    pair.posted.notify_all();
    0
}

/// Puts a request into the send queue.
fn queue(pair: &Arc<Pair>, mut work: Work) -> Result<(), c_int> {
    let mut inner = pair.inner.lock();
    match inner.state {
        ibv_qp_state::IBV_QPS_RTS | ibv_qp_state::IBV_QPS_ERR => {}
        // InfiniBand Architecture Specification 10.3.1: an immediate error before RTS.
        _ => return Err(libc::EINVAL),
    }
    // A request that was not signalled keeps its room until a later completion was polled (R mlx5/qp.c mlx5_wq_overflow).
    if pair.room(inner.posted) == 0 {
        return Err(libc::ENOMEM);
    }
    inner.posted += 1;
    work.number = inner.posted;
    inner.sends.push_back(work);
    if inner.state == ibv_qp_state::IBV_QPS_ERR {
        pair.flush(&mut inner);
    }
    Ok(())
}

/// A copy of a request.
///
/// # Safety
/// Its elements are there, its inline payload is readable, its address handle alive.
unsafe fn work(pair: &Pair, request: &ibv_send_wr) -> Result<Work, c_int> {
    use ibv_wr_opcode as op;
    let Some(Settings { profile, .. }) = settings() else { return Err(libc::EIO) };
    let count = usize::try_from(request.num_sge).map_err(|_| libc::EINVAL)?;
    if count > pair.capacity.max_send_sge as usize {
        return Err(libc::EINVAL);
    }
    let (rc, ud) = (pair.service == ibv_qp_type::IBV_QPT_RC, pair.service == ibv_qp_type::IBV_QPT_UD);
    let (send_immediate, write_immediate) = profile.immediate;
    let offered = match request.opcode {
        op::IBV_WR_SEND => true,
        op::IBV_WR_SEND_WITH_IMM => send_immediate,
        op::IBV_WR_RDMA_WRITE => !ud,
        op::IBV_WR_RDMA_WRITE_WITH_IMM => !ud && write_immediate,
        op::IBV_WR_RDMA_READ => rc,
        op::IBV_WR_ATOMIC_CMP_AND_SWP | op::IBV_WR_ATOMIC_FETCH_AND_ADD => {
            rc && profile.limits.atomics != ibv_atomic_cap::IBV_ATOMIC_NONE
        }
        _ => false,
    };
    if !offered {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller vouches for so many elements.
    let elements = if count == 0 { &[] } else { unsafe { slice::from_raw_parts(request.sg_list, count) } };
    let length = elements.iter().map(|element| u64::from(element.length)).sum();
    let brings = matches!(
        request.opcode,
        op::IBV_WR_RDMA_READ | op::IBV_WR_ATOMIC_CMP_AND_SWP | op::IBV_WR_ATOMIC_FETCH_AND_ADD
    );
    let payload = if request.send_flags & ibv_send_flags::IBV_SEND_INLINE.0 != 0 {
        if brings || length > u64::from(pair.capacity.max_inline_data) {
            return Err(libc::EINVAL);
        }
        let mut bytes = Vec::new();
        for element in elements {
            // SAFETY: the caller vouches for it; inline payload needs no registration.
            unsafe { memory::take(element.addr, element.length as usize, &mut bytes) };
        }
        Payload::Inline(bytes)
    } else {
        memory::used(elements, pair.number);
        Payload::Elements(elements.to_vec())
    };
    // SAFETY: the members that are read are those of the service and the operation; all are plain numbers.
    let (remote, rkey, operand, swap, datagram) = unsafe {
        match request.opcode {
            _ if ud => {
                let to = request.wr.ud;
                (0, 0, 0, 0, Some(((*to.ah.cast::<Address>()).path, to.remote_qpn, to.remote_qkey)))
            }
            op::IBV_WR_ATOMIC_CMP_AND_SWP | op::IBV_WR_ATOMIC_FETCH_AND_ADD => {
                let atomic = request.wr.atomic;
                (atomic.remote_addr, atomic.rkey, atomic.compare_add, atomic.swap, None)
            }
            op::IBV_WR_SEND | op::IBV_WR_SEND_WITH_IMM => (0, 0, 0, 0, None),
            _ => (request.wr.rdma.remote_addr, request.wr.rdma.rkey, 0, 0, None),
        }
    };
    Ok(Work {
        wr_id: request.wr_id,
        opcode: request.opcode,
        signalled: pair.every_signalled || request.send_flags & ibv_send_flags::IBV_SEND_SIGNALED.0 != 0,
        // SAFETY: both members of the union are 32 bits, and any bits are a number.
        immediate: unsafe { request.imm_data_invalidated_rkey_union.imm_data },
        payload,
        length,
        remote,
        rkey,
        operand,
        swap,
        datagram,
        number: 0,
    })
}

/// The context's own operation, as `ibv_post_recv` calls it.
///
/// # Safety
/// As [`send`].
pub unsafe extern "C" fn receive(qp: *mut ibv_qp, mut wr: *mut ibv_recv_wr, refused: *mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: the caller vouches for the queue pair.
    let pair = unsafe { pair(qp) };
    let mut inner = pair.inner.lock();
    // SAFETY: the list is linked and ends in null.
    while let Some(request) = unsafe { wr.as_ref() } {
        let count = usize::try_from(request.num_sge).unwrap_or(usize::MAX);
        let errno = if inner.state == ibv_qp_state::IBV_QPS_RESET || count > pair.capacity.max_recv_sge as usize {
            libc::EINVAL
        } else if inner.receives.len() >= pair.capacity.max_recv_wr as usize {
            libc::ENOMEM
        } else {
            0
        };
        if errno != 0 {
            // SAFETY: the caller gives a place for it.
            unsafe { *refused = wr };
            return errno;
        }
        // SAFETY: the caller vouches for so many elements.
        let elements = if count == 0 { &[] } else { unsafe { slice::from_raw_parts(request.sg_list, count) } };
        memory::used(elements, pair.number);
        let elements = elements.to_vec();
        inner.receives.push_back(Receive { wr_id: request.wr_id, elements });
        wr = request.next;
    }
    if inner.state == ibv_qp_state::IBV_QPS_ERR {
        pair.flush(&mut inner);
    }
    pair.received.notify_all();
    0
}
