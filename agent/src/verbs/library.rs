//! libibverbs and librdmacm of this host, or those that environment variables name. Posting and polling use the device context's own
//! table, as the inline functions of `<infiniband/verbs.h>` do.

use std::{
    ffi::{c_char, c_int, c_uint, c_void},
    sync::OnceLock,
};

use libloading::os::unix::RTLD_NOW;
use railgauge_wire::{Ece, Failure, Kind, Stage, remedy};
use rdma_sys::*;

use crate::system::{
    library::{self, NoFunction, functions},
    log,
};

functions! {
    #[derive(Debug)]
    pub(crate) struct Library {
        file: String,
    }
    required {
        ibv_fork_init = "ibv_fork_init@IBVERBS_1.1": fn() -> c_int,
        ibv_get_device_list = "ibv_get_device_list@IBVERBS_1.1": fn(*mut c_int) -> *mut *mut ibv_device,
        ibv_free_device_list = "ibv_free_device_list@IBVERBS_1.1": fn(*mut *mut ibv_device),
        ibv_open_device = "ibv_open_device@IBVERBS_1.1": fn(*mut ibv_device) -> *mut ibv_context,
        ibv_close_device = "ibv_close_device@IBVERBS_1.1": fn(*mut ibv_context) -> c_int,
        ibv_query_device = "ibv_query_device@IBVERBS_1.1": fn(*mut ibv_context, *mut ibv_device_attr) -> c_int,
        /// Fills only the old, short structure: used where the context has no operation of its own.
        ibv_query_port = "ibv_query_port@IBVERBS_1.1": fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int,
        ibv_query_gid = "ibv_query_gid@IBVERBS_1.1": fn(*mut ibv_context, u8, c_int, *mut ibv_gid) -> c_int,
        ibv_query_pkey = "ibv_query_pkey@IBVERBS_1.1": fn(*mut ibv_context, u8, c_int, *mut u16) -> c_int,
        ibv_get_async_event = "ibv_get_async_event@IBVERBS_1.1": fn(*mut ibv_context, *mut ibv_async_event) -> c_int,
        ibv_ack_async_event = "ibv_ack_async_event@IBVERBS_1.1": fn(*mut ibv_async_event),
        ibv_alloc_pd = "ibv_alloc_pd@IBVERBS_1.1": fn(*mut ibv_context) -> *mut ibv_pd,
        ibv_dealloc_pd = "ibv_dealloc_pd@IBVERBS_1.1": fn(*mut ibv_pd) -> c_int,
        /// Registers memory; never called with optional access flags, which old libraries refuse.
        ibv_reg_mr = "ibv_reg_mr@IBVERBS_1.1": fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr,
        ibv_dereg_mr = "ibv_dereg_mr@IBVERBS_1.1": fn(*mut ibv_mr) -> c_int,
        ibv_create_comp_channel = "ibv_create_comp_channel@IBVERBS_1.0": fn(*mut ibv_context) -> *mut ibv_comp_channel,
        ibv_destroy_comp_channel = "ibv_destroy_comp_channel@IBVERBS_1.0": fn(*mut ibv_comp_channel) -> c_int,
        ibv_get_cq_event = "ibv_get_cq_event@IBVERBS_1.1":
            fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int,
        ibv_ack_cq_events = "ibv_ack_cq_events@IBVERBS_1.1": fn(*mut ibv_cq, c_uint),
        ibv_create_cq = "ibv_create_cq@IBVERBS_1.1": fn(
            *mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int,
        ) -> *mut ibv_cq,
        ibv_destroy_cq = "ibv_destroy_cq@IBVERBS_1.1": fn(*mut ibv_cq) -> c_int,
        ibv_create_qp = "ibv_create_qp@IBVERBS_1.1": fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp,
        ibv_modify_qp = "ibv_modify_qp@IBVERBS_1.1": fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int,
        ibv_destroy_qp = "ibv_destroy_qp@IBVERBS_1.1": fn(*mut ibv_qp) -> c_int,
        ibv_create_ah = "ibv_create_ah@IBVERBS_1.1": fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah,
        ibv_destroy_ah = "ibv_destroy_ah@IBVERBS_1.1": fn(*mut ibv_ah) -> c_int,
    }
    optional {
        /// What a queue pair has beyond the specification, and what its peer has; rdma-core 28.
        ibv_query_ece = "ibv_query_ece@IBVERBS_1.10": fn(*mut ibv_qp, *mut Ece) -> c_int,
        ibv_set_ece = "ibv_set_ece@IBVERBS_1.10": fn(*mut ibv_qp, *mut Ece) -> c_int,
        /// Registers memory with optional access flags such as relaxed ordering; rdma-core 28.
        ibv_reg_mr_iova2 = "ibv_reg_mr_iova2@IBVERBS_1.8":
            fn(*mut ibv_pd, *mut c_void, usize, u64, c_uint) -> *mut ibv_mr,
        /// One entry of a port's GID table with its kind; rdma-core 32.
        _ibv_query_gid_ex = "_ibv_query_gid_ex@IBVERBS_1.11":
            fn(*mut ibv_context, u32, u32, *mut ibv_gid_entry, u32, usize) -> c_int,
        /// Registers memory behind a dma-buf; rdma-core 34.
        ibv_reg_dmabuf_mr = "ibv_reg_dmabuf_mr@IBVERBS_1.12":
            fn(*mut ibv_pd, u64, usize, u64, c_int, c_int) -> *mut ibv_mr,
        /// Whether the bytes of a message land in order; rdma-core 36.
        ibv_query_qp_data_in_order = "ibv_query_qp_data_in_order@IBVERBS_1.14":
            fn(*mut ibv_qp, ibv_wr_opcode::Type, u32) -> c_int,
    }
}

impl Library {
    pub(crate) fn get() -> Result<&'static Self, Failure> {
        static LIBRARY: OnceLock<Result<Library, Failure>> = OnceLock::new();
        let packages = "libibverbs1 and ibverbs-providers (Debian, Ubuntu) or libibverbs (RHEL, SUSE)";
        let open = || {
            let library = load("libibverbs.so.1", "RAILGAUGE_IBVERBS", packages, Self::look_up)?;
            // Before kernel 5.12, after a fork a write of this process goes to another page than the device uses, unless the child gets
            // no pages of registered memory. As in NCCL; since rdma-core 35 it does nothing where the kernel copies them for the child.
            // SAFETY: nothing of the library was used before.
            let errno = unsafe { (library.ibv_fork_init)() };
            if errno != 0 {
                log!("{}: memory is not protected from forks: errno {errno}", library.file);
            }
            Ok(library)
        };
        LIBRARY.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }
}

pub(super) fn load<T>(
    file: &str,
    variable: &str,
    packages: &str,
    look_up: fn(&library::Library, usize, String) -> Result<T, NoFunction>,
) -> Result<T, Failure> {
    let wanted = std::env::var(variable).ok().filter(|path| !path.is_empty());
    let name = wanted.as_deref().unwrap_or(file);
    let unusable = |cause| Failure::new(Stage::Open, Kind::Unsupported, cause);
    let library = library::Library::open(name, RTLD_NOW).map_err(|error| {
        unusable(format!("cannot load {name}: {error}")).remedy(match wanted {
            Some(_) => remedy::CORRECT_LIBRARY_VARIABLE.with([("variable", variable)]),
            None => remedy::INSTALL_LIBRARY.with([("packages", packages)]),
        })
    })?;
    let missing =
        |NoFunction(symbol)| unusable(format!("{name} has no function {symbol}")).remedy(remedy::USE_RDMA_CORE);
    look_up(&library, 0, name.to_owned()).map_err(missing)
}

functions! {
    /// The library of the provider mlx5, from rdma-core 54 on.
    #[derive(Debug)]
    pub(super) struct Mlx5 {}
    required {
        /// Whether the other functions may be called (mlx5dv_is_supported(3)).
        mlx5dv_is_supported = "mlx5dv_is_supported@MLX5_1.8": fn(*mut ibv_device) -> bool,
        /// 0 if the device reaches dma-bufs by a second PCI function too.
        mlx5dv_get_data_direct_sysfs_path = "mlx5dv_get_data_direct_sysfs_path@MLX5_1.25":
            fn(*mut ibv_context, *mut c_char, usize) -> c_int,
        /// `ibv_reg_dmabuf_mr` with flags of mlx5.
        mlx5dv_reg_dmabuf_mr = "mlx5dv_reg_dmabuf_mr@MLX5_1.25":
            fn(*mut ibv_pd, u64, usize, u64, c_int, c_int, c_int) -> *mut ibv_mr,
    }
    optional {}
}

impl Mlx5 {
    /// The one that libibverbs has loaded, by its name; else the host's.
    pub(super) fn get() -> Option<&'static Self> {
        static LIBRARY: OnceLock<Option<Mlx5>> = OnceLock::new();
        let open = || Self::look_up(&library::Library::open("libmlx5.so.1", RTLD_NOW).ok()?, 0).ok();
        LIBRARY.get_or_init(open).as_ref()
    }
}

functions! {
    #[derive(Debug)]
    pub(crate) struct CmLibrary {
        file: String,
    }
    required {
        rdma_create_event_channel = "rdma_create_event_channel@RDMACM_1.0": fn() -> *mut rdma_event_channel,
        rdma_destroy_event_channel = "rdma_destroy_event_channel@RDMACM_1.0": fn(*mut rdma_event_channel),
        rdma_create_id = "rdma_create_id@RDMACM_1.0": fn(
            *mut rdma_event_channel, *mut *mut rdma_cm_id, *mut std::ffi::c_void, rdma_port_space::Type,
        ) -> c_int,
        rdma_destroy_id = "rdma_destroy_id@RDMACM_1.0": fn(*mut rdma_cm_id) -> c_int,
        rdma_bind_addr = "rdma_bind_addr@RDMACM_1.0": fn(*mut rdma_cm_id, *const libc::sockaddr) -> c_int,
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
        rdma_get_cm_event = "rdma_get_cm_event@RDMACM_1.0":
            fn(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int,
        rdma_ack_cm_event = "rdma_ack_cm_event@RDMACM_1.0": fn(*mut rdma_cm_event) -> c_int,
        rdma_get_src_port = "rdma_get_src_port@RDMACM_1.0": fn(*mut rdma_cm_id) -> u16,
        rdma_set_option = "rdma_set_option@RDMACM_1.0":
            fn(*mut rdma_cm_id, c_int, c_int, *mut std::ffi::c_void, usize) -> c_int,
    }
    optional {}
}

impl CmLibrary {
    pub(crate) fn get() -> Result<&'static Self, Failure> {
        static LIBRARY: OnceLock<Result<CmLibrary, Failure>> = OnceLock::new();
        let packages = "librdmacm1 (Debian, Ubuntu) or librdmacm (RHEL, SUSE)";
        let open = || load("librdmacm.so.1", "RAILGAUGE_RDMACM", packages, Self::look_up);
        LIBRARY.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_what_to_install() {
        let found = |_: &library::Library, _, _| -> Result<(), NoFunction> { unreachable!() };
        let failure = load("libnosuchthing.so.1", "RAILGAUGE_TEST_UNSET", "package-x", found).unwrap_err();
        assert_eq!(failure.kind, Kind::Unsupported);
        assert!(failure.cause.contains("libnosuchthing.so.1") && failure.cause.contains("cannot open"), "{failure}");
        assert_eq!(failure.remedy.as_deref(), Some(&remedy::INSTALL_LIBRARY.with([("packages", "package-x")])));
    }

    #[test]
    fn a_library_without_the_functions_is_refused() {
        let lacks = |_: &library::Library, _, _| -> Result<(), NoFunction> { Err(NoFunction("ibv_x@V_1")) };
        let failure = load("libc.so.6", "RAILGAUGE_TEST_UNSET", "libc6", lacks).unwrap_err();
        assert_eq!(failure.remedy.as_deref(), Some(&remedy::USE_RDMA_CORE.into()));
        assert!(failure.cause.contains("ibv_x@V_1"), "{failure}");
    }
}
