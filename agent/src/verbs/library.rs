//! The exported functions of libibverbs. Posting and polling are not here: they go through the device context's own
//! table, as the inline functions of `<infiniband/verbs.h>` do.

use std::{
    ffi::{c_int, c_uint, c_void},
    sync::OnceLock,
};

use railgauge_wire::failure::Failure;
use rdma_sys::*;

use super::loader::Loaded;

macro_rules! functions {
    (
        $(#[$about:meta])* $table:ident
        required { $($(#[$doc:meta])* $name:ident @ $version:literal: $type:ty,)+ }
        optional { $($(#[$late_doc:meta])* $late:ident @ $late_version:literal: $late_type:ty,)* }
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(crate) struct $table {
            loaded: Loaded,
            $($(#[$doc])* pub(crate) $name: $type,)+
            $($(#[$late_doc])* pub(crate) $late: Option<$late_type>,)*
        }

        impl $table {
            /// Looks every function up.
            ///
            /// # Errors
            /// A required function is missing.
            fn look_up(loaded: Loaded) -> Result<Self, Failure> {
                Ok(Self {
                    // SAFETY: the types are those of rdma-core's headers.
                    $($name: unsafe { loaded.required(stringify!($name), $version) }?,)+
                    // SAFETY: as above.
                    $($late: unsafe { loaded.optional(stringify!($late), $late_version) },)*
                    loaded,
                })
            }

            /// The name the library was opened by.
            pub(crate) fn file(&self) -> &str {
                self.loaded.file()
            }
        }
    };
}

pub(super) use functions;

functions! {
    /// libibverbs, with the symbol versions of rdma-core's `debian/libibverbs1.symbols`.
    Library
    required {
        /// All devices; freed with `ibv_free_device_list`.
        ibv_get_device_list @ "IBVERBS_1.1": unsafe extern "C" fn(*mut c_int) -> *mut *mut ibv_device,
        /// Frees the list, not the opened devices.
        ibv_free_device_list @ "IBVERBS_1.1": unsafe extern "C" fn(*mut *mut ibv_device),
        /// Opens a device.
        ibv_open_device @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_device) -> *mut ibv_context,
        /// Closes it.
        ibv_close_device @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_context) -> c_int,
        /// Limits and abilities.
        ibv_query_device @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_context, *mut ibv_device_attr) -> c_int,
        /// Fills only the old, short structure: used where the context has no operation of its own.
        ibv_query_port @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int,
        /// One entry of a port's GID table.
        ibv_query_gid @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_context, u8, c_int, *mut ibv_gid) -> c_int,
        /// One entry of a port's table of partition keys.
        ibv_query_pkey @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_context, u8, c_int, *mut u16) -> c_int,
        /// The next asynchronous event of a context; blocks unless its descriptor does not.
        ibv_get_async_event @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_context, *mut ibv_async_event) -> c_int,
        /// Acknowledges it; what it is about cannot be destroyed before.
        ibv_ack_async_event @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_async_event),
        /// A protection domain.
        ibv_alloc_pd @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_pd,
        /// Its end.
        ibv_dealloc_pd @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_pd) -> c_int,
        /// Registers memory; never called with optional access flags, which old libraries refuse.
        ibv_reg_mr @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr,
        /// Its end.
        ibv_dereg_mr @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_mr) -> c_int,
        /// A completion channel.
        ibv_create_comp_channel @ "IBVERBS_1.0": unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_comp_channel,
        /// Its end.
        ibv_destroy_comp_channel @ "IBVERBS_1.0": unsafe extern "C" fn(*mut ibv_comp_channel) -> c_int,
        /// The next event of a channel; blocks unless its descriptor does not.
        ibv_get_cq_event @ "IBVERBS_1.1":
            unsafe extern "C" fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int,
        /// Acknowledges events; a queue cannot be destroyed before.
        ibv_ack_cq_events @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_cq, c_uint),
        /// A completion queue.
        ibv_create_cq @ "IBVERBS_1.1": unsafe extern "C" fn(
            *mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int,
        ) -> *mut ibv_cq,
        /// Its end.
        ibv_destroy_cq @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_cq) -> c_int,
        /// A queue pair.
        ibv_create_qp @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp,
        /// Moves it between states.
        ibv_modify_qp @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int,
        /// Its end.
        ibv_destroy_qp @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_qp) -> c_int,
        /// An address handle.
        ibv_create_ah @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah,
        /// Its end.
        ibv_destroy_ah @ "IBVERBS_1.1": unsafe extern "C" fn(*mut ibv_ah) -> c_int,
    }
    optional {
        /// Registers memory with optional access flags such as relaxed ordering; rdma-core 28.
        ibv_reg_mr_iova2 @ "IBVERBS_1.8":
            unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, u64, c_uint) -> *mut ibv_mr,
        /// One entry of a port's GID table with its kind; rdma-core 32.
        _ibv_query_gid_ex @ "IBVERBS_1.11":
            unsafe extern "C" fn(*mut ibv_context, u32, u32, *mut ibv_gid_entry, u32, usize) -> c_int,
        /// Registers memory behind a dma-buf; rdma-core 34.
        ibv_reg_dmabuf_mr @ "IBVERBS_1.12":
            unsafe extern "C" fn(*mut ibv_pd, u64, usize, u64, c_int, c_int) -> *mut ibv_mr,
        /// Whether the bytes of a message land in order; rdma-core 36.
        ibv_query_qp_data_in_order @ "IBVERBS_1.14":
            unsafe extern "C" fn(*mut ibv_qp, ibv_wr_opcode::Type, u32) -> c_int,
    }
}

impl Library {
    /// The library of this process, opened at the first call.
    ///
    /// # Errors
    /// The library is missing or is not rdma-core's; the same answer every time.
    pub(crate) fn get() -> Result<&'static Self, Failure> {
        static LIBRARY: OnceLock<Result<Library, Failure>> = OnceLock::new();
        let packages = "libibverbs1 and ibverbs-providers (Debian, Ubuntu) or libibverbs (RHEL, SUSE)";
        let library = LIBRARY
            .get_or_init(|| Loaded::open("libibverbs.so.1", "RAILGAUGE_IBVERBS", packages).and_then(Self::look_up));
        library.as_ref().map_err(Clone::clone)
    }
}
