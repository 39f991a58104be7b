//! The exported functions of librdmacm.

use std::{ffi::c_int, sync::OnceLock};

use railgauge_wire::failure::Failure;
use rdma_sys::*;

use super::loader;
use crate::system::library::functions;

functions! {
    #[derive(Debug)]
    pub(crate) struct CmLibrary {
        file: String,
    }
    required {
        rdma_create_event_channel = "rdma_create_event_channel@RDMACM_1.0": fn() -> *mut rdma_event_channel,
        rdma_destroy_event_channel = "rdma_destroy_event_channel@RDMACM_1.0": fn(*mut rdma_event_channel),
        /// A communication identifier: what a socket is to TCP.
        rdma_create_id = "rdma_create_id@RDMACM_1.0": fn(
            *mut rdma_event_channel, *mut *mut rdma_cm_id, *mut std::ffi::c_void, rdma_port_space::Type,
        ) -> c_int,
        /// Its end; waits for its events to be acknowledged.
        rdma_destroy_id = "rdma_destroy_id@RDMACM_1.0": fn(*mut rdma_cm_id) -> c_int,
        /// Binds to an address, and so to a device.
        rdma_bind_addr = "rdma_bind_addr@RDMACM_1.0": fn(*mut rdma_cm_id, *const libc::sockaddr) -> c_int,
        /// Finds the device and the peer's hardware address.
        rdma_resolve_addr = "rdma_resolve_addr@RDMACM_1.0":
            fn(*mut rdma_cm_id, *const libc::sockaddr, *const libc::sockaddr, c_int) -> c_int,
        rdma_resolve_route = "rdma_resolve_route@RDMACM_1.0": fn(*mut rdma_cm_id, c_int) -> c_int,
        /// A queue pair that the library moves through its states.
        rdma_create_qp = "rdma_create_qp@RDMACM_1.0":
            fn(*mut rdma_cm_id, *mut ibv_pd, *mut ibv_qp_init_attr) -> c_int,
        rdma_destroy_qp = "rdma_destroy_qp@RDMACM_1.0": fn(*mut rdma_cm_id),
        rdma_connect = "rdma_connect@RDMACM_1.0": fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
        rdma_listen = "rdma_listen@RDMACM_1.0": fn(*mut rdma_cm_id, c_int) -> c_int,
        rdma_accept = "rdma_accept@RDMACM_1.0": fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
        rdma_reject = "rdma_reject@RDMACM_1.0": fn(*mut rdma_cm_id, *const std::ffi::c_void, u8) -> c_int,
        rdma_disconnect = "rdma_disconnect@RDMACM_1.0": fn(*mut rdma_cm_id) -> c_int,
        /// The next event; blocks unless the channel's descriptor does not.
        rdma_get_cm_event = "rdma_get_cm_event@RDMACM_1.0":
            fn(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int,
        rdma_ack_cm_event = "rdma_ack_cm_event@RDMACM_1.0": fn(*mut rdma_cm_event) -> c_int,
        /// The port an identifier is bound to, in network byte order.
        rdma_get_src_port = "rdma_get_src_port@RDMACM_1.0": fn(*mut rdma_cm_id) -> u16,
        rdma_set_option = "rdma_set_option@RDMACM_1.0":
            fn(*mut rdma_cm_id, c_int, c_int, *mut std::ffi::c_void, usize) -> c_int,
    }
    optional {}
}

impl CmLibrary {
    /// The library of this process, opened at the first call.
    pub(crate) fn get() -> Result<&'static Self, Failure> {
        static LIBRARY: OnceLock<Result<CmLibrary, Failure>> = OnceLock::new();
        let packages = "librdmacm1 (Debian, Ubuntu) or librdmacm (RHEL, SUSE)";
        let open = || loader::load("librdmacm.so.1", "RAILGAUGE_RDMACM", packages, Self::look_up);
        LIBRARY.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    /// The name the library was opened by.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }
}
