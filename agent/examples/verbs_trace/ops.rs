//! What goes through a context's table: posting, polling, arming, and creating extended queue pairs.

use std::{collections::HashMap, ffi::c_int, mem::offset_of, sync::OnceLock};

use parking_lot::Mutex;
use rdma_sys::{
    ibv_context, ibv_context_ops, ibv_cq, ibv_qp, ibv_qp_init_attr_ex, ibv_recv_wr, ibv_send_wr, ibv_sge, ibv_wc,
    verbs_context,
};
use serde_json::json;

use crate::{
    builder, lines,
    posts::{Request, Shape},
    verbs,
};

type CreateEx = unsafe extern "C" fn(*mut ibv_context, *mut ibv_qp_init_attr_ex) -> *mut ibv_qp;

/// A context's functions as they were.
#[derive(Clone, Copy)]
struct Originals {
    ops: ibv_context_ops,
    create_qp_ex: Option<CreateEx>,
}

fn originals() -> &'static Mutex<HashMap<usize, Originals>> {
    static ORIGINALS: OnceLock<Mutex<HashMap<usize, Originals>>> = OnceLock::new();
    ORIGINALS.get_or_init(|| Mutex::new(HashMap::new()))
}

fn original(context: *mut ibv_context) -> Originals {
    let found = originals().lock().get(&context.addr()).copied();
    // Only contexts of this map have our functions in their tables.
    found.unwrap_or_else(|| std::process::abort())
}

/// The extended structure around a context, if it has one that is long enough to create extended queue pairs
/// (`verbs_get_ctx_op` of `<infiniband/verbs.h>`).
///
/// # Safety
/// The context is open.
unsafe fn extended(context: *mut ibv_context) -> Option<*mut verbs_context> {
    // SAFETY: the caller's; `__VERBS_ABI_IS_EXTENDED` in the last field says that the structure is around it.
    unsafe {
        if (*context).abi_compat.addr() != usize::MAX && (*context).abi_compat.addr() != u32::MAX as usize {
            return None;
        }
        let around = context.byte_sub(offset_of!(verbs_context, context)).cast::<verbs_context>();
        ((*around).sz >= size_of::<verbs_context>() - offset_of!(verbs_context, create_qp_ex)).then_some(around)
    }
}

/// Puts our functions into a context that was just opened.
///
/// # Safety
/// The context is open, and nobody uses it yet.
pub unsafe fn patch(context: *mut ibv_context) {
    // SAFETY: the caller's; the table belongs to the context, and lies in writable memory.
    unsafe {
        let around = extended(context);
        let kept = Originals { ops: (*context).ops, create_qp_ex: around.and_then(|around| (*around).create_qp_ex) };
        originals().lock().insert(context.addr(), kept);
        let ops = &mut (*context).ops;
        ops.post_send = ops.post_send.map(|_| post_send as _);
        ops.post_recv = ops.post_recv.map(|_| post_recv as _);
        ops.poll_cq = ops.poll_cq.map(|_| poll_cq as _);
        ops.req_notify_cq = ops.req_notify_cq.map(|_| req_notify_cq as _);
        if let Some(around) = around {
            (*around).create_qp_ex = (*around).create_qp_ex.map(|_| create_qp_ex as CreateEx);
        }
    }
}

/// Gives a context its own functions back before it is closed.
///
/// # Safety
/// The context is open, and nobody uses it any more.
pub unsafe fn restore(context: *mut ibv_context) {
    let Some(kept) = originals().lock().remove(&context.addr()) else { return };
    // SAFETY: the caller's.
    unsafe {
        (*context).ops = kept.ops;
        if let Some(around) = extended(context) {
            (*around).create_qp_ex = kept.create_qp_ex;
        }
    }
}

/// Elements of a list.
///
/// # Safety
/// `first` points to `count` elements.
unsafe fn elements<'a>(first: *const ibv_sge, count: c_int) -> &'a [ibv_sge] {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller's.
    if count == 0 || first.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } }
}

/// What one request asks for.
///
/// # Safety
/// The request is one that a program posts.
unsafe fn request(from: &ibv_send_wr, datagrams: bool) -> Request {
    // SAFETY: the caller's; the union's member is the one of the opcode.
    unsafe {
        let list = elements(from.sg_list, from.num_sge);
        let (mut remote, mut operands) = (None, None);
        match from.opcode {
            0 | 1 | 4 => remote = Some((from.wr.rdma.remote_addr, from.wr.rdma.rkey)),
            5 | 6 => {
                remote = Some((from.wr.atomic.remote_addr, from.wr.atomic.rkey));
                operands = Some((from.wr.atomic.compare_add, if from.opcode == 5 { from.wr.atomic.swap } else { 0 }));
            }
            _ => {}
        }
        let shape = Shape {
            opcode: from.opcode,
            flags: from.send_flags,
            elements: list.len() as u32,
            length: list.iter().map(|element| u64::from(element.length)).sum(),
            operands,
            immediate: matches!(from.opcode, 1 | 3),
        };
        let datagram = datagrams.then_some((from.wr.ud.remote_qpn, from.wr.ud.remote_qkey));
        Request { shape, local: list.first().map_or(0, |element| element.addr), remote, datagram }
    }
}

unsafe extern "C" fn post_send(qp: *mut ibv_qp, first: *mut ibv_send_wr, refused: *mut *mut ibv_send_wr) -> c_int {
    // SAFETY: callers keep to the headers.
    unsafe {
        let (mut requests, mut next) = (Vec::new(), first);
        while let Some(one) = next.as_ref() {
            requests.push(request(one, (*qp).qp_type == 4));
            next = one.next;
        }
        lines::state().lock().posts.entry((*qp).qp_num).or_default().send("ibv_post_send", &requests);
        let real = original((*qp).context).ops.post_send;
        real.map_or(libc::ENOSYS, |real| real(qp, first, refused))
    }
}

unsafe extern "C" fn post_recv(qp: *mut ibv_qp, first: *mut ibv_recv_wr, refused: *mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: callers keep to the headers.
    unsafe {
        let (mut receives, mut next) = (Vec::new(), first);
        while let Some(one) = next.as_ref() {
            let list = elements(one.sg_list, one.num_sge);
            receives.push((list.len() as u32, list.iter().map(|element| u64::from(element.length)).sum()));
            next = one.next;
        }
        lines::state().lock().posts.entry((*qp).qp_num).or_default().receive(&receives);
        let real = original((*qp).context).ops.post_recv;
        real.map_or(libc::ENOSYS, |real| real(qp, first, refused))
    }
}

unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, entries: c_int, into: *mut ibv_wc) -> c_int {
    // SAFETY: callers keep to the headers; the library has written as many entries as it says.
    unsafe {
        let real = original((*cq).context).ops.poll_cq;
        let taken = real.map_or(-1, |real| real(cq, entries, into));
        let mut state = lines::state().lock();
        let name = state.named(cq.addr()).as_str().unwrap_or("?").to_owned();
        state.completions.entry(name.clone()).or_default().poll(entries.into());
        for one in elements_of(into, taken) {
            if one.status != 0 {
                state.completions.entry(name.clone()).or_default().failed(one.status.into());
            } else if let Some(posts) = state.posts.get_mut(&one.qp_num) {
                // IBV_WC_RECV is the bit of everything that was received.
                posts.complete(one.opcode & (1 << 7) != 0);
            }
        }
        taken
    }
}

/// Completions that were taken.
///
/// # Safety
/// `first` points to `count` completions, if that is above 0.
unsafe fn elements_of<'a>(first: *const ibv_wc, count: c_int) -> &'a [ibv_wc] {
    match usize::try_from(count) {
        // SAFETY: the caller's.
        Ok(count) if count > 0 => unsafe { std::slice::from_raw_parts(first, count) },
        _ => &[],
    }
}

unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: callers keep to the headers.
    unsafe {
        let real = original((*cq).context).ops.req_notify_cq;
        let mut state = lines::state().lock();
        let name = state.named(cq.addr()).as_str().unwrap_or("?").to_owned();
        state.completions.entry(name).or_default().notify(solicited_only.into());
        drop(state);
        real.map_or(libc::ENOSYS, |real| real(cq, solicited_only))
    }
}

unsafe extern "C" fn create_qp_ex(context: *mut ibv_context, wanted: *mut ibv_qp_init_attr_ex) -> *mut ibv_qp {
    // SAFETY: callers keep to the headers.
    unsafe {
        let asked = verbs::asked(&raw const (*wanted).cap);
        let Some(real) = original(context).create_qp_ex else { return std::ptr::null_mut() };
        let qp = real(context, wanted);
        let mut line = verbs::created("ibv_create_qp_ex", qp, &*wanted.cast(), &asked);
        let (mask, flags) = ((*wanted).comp_mask, (*wanted).send_ops_flags);
        // IBV_QP_INIT_ATTR_CREATE_FLAGS and IBV_QP_INIT_ATTR_SEND_OPS_FLAGS say which fields count.
        line["comp_mask"] = json!(mask);
        line["create_flags"] = json!(if mask & 4 != 0 { (*wanted).create_flags } else { 0 });
        line["send_ops_flags"] = json!(if mask & 64 != 0 { flags } else { 0 });
        lines::write(&line);
        if !qp.is_null() && mask & 64 != 0 {
            builder::patch(qp);
        }
        qp
    }
}
