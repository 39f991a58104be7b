//! The exported functions of libibverbs: those that the agent looks up, and those whose arguments are of interest.

use std::{
    cell::Cell,
    ffi::{CStr, c_char, c_int, c_uint, c_void},
};

use rdma_sys::{
    ibv_ah, ibv_ah_attr, ibv_comp_channel, ibv_context, ibv_cq, ibv_device, ibv_device_attr, ibv_gid, ibv_gid_entry,
    ibv_mr, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_init_attr,
};
use serde_json::{Value, json};

use crate::{builder, exported, lines, names, ops};

/// The capacities that are asked for: the call overwrites them by those that were given.
///
/// # Safety
/// `cap` points to capacities.
pub unsafe fn asked(cap: *const ibv_qp_cap) -> Value {
    // SAFETY: the caller's.
    names::capacity(unsafe { &*cap })
}

/// The line of a queue pair that was created.
///
/// # Safety
/// The queue pair is alive, or null.
pub unsafe fn created(call: &str, qp: *mut ibv_qp, wanted: &ibv_qp_init_attr, asked: &Value) -> Value {
    let state = lines::state().lock();
    json!({
        "call": call,
        // SAFETY: the caller's.
        "qp_num": unsafe { qp.as_ref() }.map(|qp| qp.qp_num),
        "qp_type": names::service(wanted.qp_type),
        "cap": asked,
        "sq_sig_all": wanted.sq_sig_all,
        "srq": !wanted.srq.is_null(),
        "send_cq": state.named(wanted.send_cq.addr()),
        "recv_cq": state.named(wanted.recv_cq.addr()),
    })
}

thread_local! {
    /// libibverbs registers by its own exported functions, which are ours where this library is preloaded: only the
    /// call that the program made is written down.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Registers by `register`, and writes the line.
unsafe fn registered(call: &str, length: usize, access: u32, register: impl FnOnce() -> *mut ibv_mr) -> *mut ibv_mr {
    if INSIDE.replace(true) {
        return register();
    }
    let mr = register();
    INSIDE.set(false);
    // SAFETY: what a registration returns is alive, or null.
    let rkey = unsafe { mr.as_ref() }.map(|mr| mr.rkey);
    lines::write(&json!({"call": call, "length": length, "access": names::access(access), "rkey": rkey}));
    mr
}

exported! {
    IBVERBS, real:
    ibv_fork_init @ "IBVERBS_1.1" () -> c_int;
    ibv_get_device_list @ "IBVERBS_1.1" (count: *mut c_int) -> *mut *mut ibv_device;
    ibv_free_device_list @ "IBVERBS_1.1" (list: *mut *mut ibv_device);
    ibv_query_device @ "IBVERBS_1.1" (context: *mut ibv_context, into: *mut ibv_device_attr) -> c_int;
    ibv_query_port @ "IBVERBS_1.1" (context: *mut ibv_context, port: u8, into: *mut ibv_port_attr) -> c_int;
    ibv_query_gid @ "IBVERBS_1.1" (context: *mut ibv_context, port: u8, index: c_int, into: *mut ibv_gid) -> c_int;
    _ibv_query_gid_ex @ "IBVERBS_1.11" (
        context: *mut ibv_context, port: u32, index: u32, into: *mut ibv_gid_entry, flags: u32, size: usize,
    ) -> c_int;
    ibv_query_pkey @ "IBVERBS_1.1" (context: *mut ibv_context, port: u8, index: c_int, into: *mut u16) -> c_int;
    ibv_event_type_str @ "IBVERBS_1.1" (event: c_int) -> *const c_char;
    ibv_get_async_event @ "IBVERBS_1.1" (context: *mut ibv_context, event: *mut c_void) -> c_int;
    ibv_ack_async_event @ "IBVERBS_1.1" (event: *mut c_void);
    ibv_query_qp @ "IBVERBS_1.1" (
        qp: *mut ibv_qp, into: *mut ibv_qp_attr, mask: c_int, init: *mut ibv_qp_init_attr,
    ) -> c_int;
    ibv_open_device @ "IBVERBS_1.1" (device: *mut ibv_device) -> *mut ibv_context = {
        let context = real(device);
        if !context.is_null() {
            let name = CStr::from_ptr((*device).name.as_ptr()).to_string_lossy().into_owned();
            lines::write(&json!({"call": "ibv_open_device", "device": name}));
            ops::patch(context);
        }
        context
    };
    ibv_close_device @ "IBVERBS_1.1" (context: *mut ibv_context) -> c_int = {
        ops::restore(context);
        real(context)
    };
    ibv_alloc_pd @ "IBVERBS_1.1" (context: *mut ibv_context) -> *mut ibv_pd = {
        lines::write(&json!({"call": "ibv_alloc_pd"}));
        real(context)
    };
    ibv_dealloc_pd @ "IBVERBS_1.1" (pd: *mut ibv_pd) -> c_int;
    ibv_reg_mr @ "IBVERBS_1.1" (pd: *mut ibv_pd, from: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr = {
        registered("ibv_reg_mr", length, access.cast_unsigned(), || real(pd, from, length, access))
    };
    ibv_reg_mr_iova2 @ "IBVERBS_1.8" (
        pd: *mut ibv_pd, from: *mut c_void, length: usize, iova: u64, access: c_uint,
    ) -> *mut ibv_mr = {
        registered("ibv_reg_mr_iova2", length, access, || real(pd, from, length, iova, access))
    };
    ibv_reg_dmabuf_mr @ "IBVERBS_1.12" (
        pd: *mut ibv_pd, offset: u64, length: usize, iova: u64, fd: c_int, access: c_int,
    ) -> *mut ibv_mr = {
        registered("ibv_reg_dmabuf_mr", length, access.cast_unsigned(), || real(pd, offset, length, iova, fd, access))
    };
    ibv_dereg_mr @ "IBVERBS_1.1" (mr: *mut ibv_mr) -> c_int;
    ibv_create_comp_channel @ "IBVERBS_1.0" (context: *mut ibv_context) -> *mut ibv_comp_channel = {
        let channel = real(context);
        let name = lines::state().lock().name("channel", channel.addr());
        lines::write(&json!({"call": "ibv_create_comp_channel", "channel": name}));
        channel
    };
    ibv_destroy_comp_channel @ "IBVERBS_1.0" (channel: *mut ibv_comp_channel) -> c_int = {
        lines::state().lock().gone(channel.addr());
        real(channel)
    };
    ibv_get_cq_event @ "IBVERBS_1.1" (
        channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, context: *mut *mut c_void,
    ) -> c_int = {
        let rc = real(channel, cq, context);
        if rc == 0 {
            let mut state = lines::state().lock();
            let name = state.named((*cq).addr()).as_str().unwrap_or("?").to_owned();
            state.completions.entry(name).or_default().event();
        }
        rc
    };
    ibv_ack_cq_events @ "IBVERBS_1.1" (cq: *mut ibv_cq, events: c_uint) = {
        let mut state = lines::state().lock();
        let name = state.named(cq.addr()).as_str().unwrap_or("?").to_owned();
        state.completions.entry(name).or_default().acknowledge(events.into());
        drop(state);
        real(cq, events);
    };
    ibv_create_cq @ "IBVERBS_1.1" (
        context: *mut ibv_context, entries: c_int, of_program: *mut c_void, channel: *mut ibv_comp_channel, vector: c_int,
    ) -> *mut ibv_cq = {
        let cq = real(context, entries, of_program, channel, vector);
        let mut state = lines::state().lock();
        let name = state.name("cq", cq.addr());
        let on = state.named(channel.addr());
        drop(state);
        lines::write(&json!({
            "call": "ibv_create_cq", "cq": name, "cqe": entries, "channel": on, "comp_vector": vector,
            "made": !cq.is_null(),
        }));
        cq
    };
    ibv_destroy_cq @ "IBVERBS_1.1" (cq: *mut ibv_cq) -> c_int = {
        let name = lines::state().lock().gone(cq.addr());
        if let Some(name) = name {
            lines::flush_completions(&name);
        }
        real(cq)
    };
    ibv_create_qp @ "IBVERBS_1.1" (pd: *mut ibv_pd, wanted: *mut ibv_qp_init_attr) -> *mut ibv_qp = {
        let asked = asked(&raw const (*wanted).cap);
        let qp = real(pd, wanted);
        lines::write(&created("ibv_create_qp", qp, &*wanted, &asked));
        qp
    };
    ibv_modify_qp @ "IBVERBS_1.1" (qp: *mut ibv_qp, to: *mut ibv_qp_attr, mask: c_int) -> c_int = {
        let attributes = names::attributes(&*to, mask.cast_unsigned());
        let rc = real(qp, to, mask);
        lines::write(&json!({
            "call": "ibv_modify_qp", "qp_num": (*qp).qp_num, "mask": mask, "attributes": attributes, "rc": rc,
        }));
        rc
    };
    ibv_destroy_qp @ "IBVERBS_1.1" (qp: *mut ibv_qp) -> c_int = {
        let number = (*qp).qp_num;
        lines::flush_posts(number);
        builder::gone(qp);
        lines::write(&json!({"call": "ibv_destroy_qp", "qp_num": number}));
        real(qp)
    };
    ibv_create_ah @ "IBVERBS_1.1" (pd: *mut ibv_pd, to: *mut ibv_ah_attr) -> *mut ibv_ah = {
        lines::write(&json!({"call": "ibv_create_ah", "ah_attr": names::address(&*to)}));
        real(pd, to)
    };
    ibv_destroy_ah @ "IBVERBS_1.1" (ah: *mut ibv_ah) -> c_int;
    ibv_query_qp_data_in_order @ "IBVERBS_1.14" (qp: *mut ibv_qp, opcode: c_uint, flags: u32) -> c_int = {
        let promised = real(qp, opcode, flags);
        lines::write(&json!({
            "call": "ibv_query_qp_data_in_order", "qp_num": (*qp).qp_num, "state": names::state((*qp).state),
            "opcode": names::opcode(opcode), "flags": flags, "result": promised,
        }));
        promised
    };
}
