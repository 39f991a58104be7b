//! The exported functions of librdmacm: those that the agent looks up. What they do to queue pairs passes through
//! [`crate::verbs`]; written down here is only what they are asked for.

use std::ffi::{c_int, c_void};

use rdma_sys::{
    ibv_pd, ibv_qp_init_attr, rdma_cm_event, rdma_cm_id, rdma_conn_param, rdma_event_channel, rdma_port_space,
};
use serde_json::json;

use crate::{exported, lines};

/// The line of a connection that is asked for or granted.
unsafe fn connecting(call: &str, param: *const rdma_conn_param) {
    // SAFETY: the caller's: parameters, or null.
    if let Some(param) = unsafe { param.as_ref() } {
        lines::write(&json!({
            "call": call, "responder_resources": param.responder_resources, "initiator_depth": param.initiator_depth,
            "flow_control": param.flow_control, "retry_count": param.retry_count,
            "rnr_retry_count": param.rnr_retry_count, "srq": param.srq,
        }));
    }
}

exported! {
    RDMACM, real:
    rdma_create_event_channel @ "RDMACM_1.0" () -> *mut rdma_event_channel;
    rdma_destroy_event_channel @ "RDMACM_1.0" (channel: *mut rdma_event_channel);
    rdma_create_id @ "RDMACM_1.0" (
        channel: *mut rdma_event_channel, id: *mut *mut rdma_cm_id, context: *mut c_void, space: rdma_port_space::Type,
    ) -> c_int;
    rdma_destroy_id @ "RDMACM_1.0" (id: *mut rdma_cm_id) -> c_int;
    rdma_bind_addr @ "RDMACM_1.0" (id: *mut rdma_cm_id, to: *const libc::sockaddr) -> c_int;
    rdma_resolve_addr @ "RDMACM_1.0" (
        id: *mut rdma_cm_id, from: *const libc::sockaddr, to: *const libc::sockaddr, milliseconds: c_int,
    ) -> c_int;
    rdma_resolve_route @ "RDMACM_1.0" (id: *mut rdma_cm_id, milliseconds: c_int) -> c_int;
    rdma_create_qp @ "RDMACM_1.0" (id: *mut rdma_cm_id, pd: *mut ibv_pd, wanted: *mut ibv_qp_init_attr) -> c_int;
    rdma_destroy_qp @ "RDMACM_1.0" (id: *mut rdma_cm_id);
    rdma_connect @ "RDMACM_1.0" (id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int = {
        connecting("rdma_connect", param);
        real(id, param)
    };
    rdma_listen @ "RDMACM_1.0" (id: *mut rdma_cm_id, backlog: c_int) -> c_int;
    rdma_accept @ "RDMACM_1.0" (id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int = {
        connecting("rdma_accept", param);
        real(id, param)
    };
    rdma_reject @ "RDMACM_1.0" (id: *mut rdma_cm_id, data: *const c_void, length: u8) -> c_int;
    rdma_disconnect @ "RDMACM_1.0" (id: *mut rdma_cm_id) -> c_int;
    rdma_get_cm_event @ "RDMACM_1.0" (channel: *mut rdma_event_channel, event: *mut *mut rdma_cm_event) -> c_int;
    rdma_ack_cm_event @ "RDMACM_1.0" (event: *mut rdma_cm_event) -> c_int;
    rdma_get_src_port @ "RDMACM_1.0" (id: *mut rdma_cm_id) -> u16;
    rdma_set_option @ "RDMACM_1.0" (
        id: *mut rdma_cm_id, level: c_int, name: c_int, value: *mut c_void, length: usize,
    ) -> c_int;
}
