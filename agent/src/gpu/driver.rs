//! The CUDA driver API, opened at run time: a host without it answers in words, and nothing links against it.
//!
//! Signatures and numbers are those of NVIDIA's `cuda.h` (CUDA driver API reference, 11.0 to 13.0). Only the driver
//! library is used, never the runtime: it comes with the driver, so there is no second version to match.

use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    sync::OnceLock,
};

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use crate::system::library::{NoFunction, NotOpened};

/// A device pointer.
pub(crate) type DevicePtr = u64;
/// `CUresult`.
pub(crate) type Status = c_int;
/// `CUstream`, `CUcontext`, `CUmodule`, `CUfunction`, `CUgraph`, `CUgraphExec`.
pub(crate) type Handle = *mut c_void;

/// `CUDA_SUCCESS`.
pub(crate) const SUCCESS: Status = 0;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub(crate) const OUT_OF_MEMORY: Status = 2;
/// `CUDA_ERROR_NOT_READY`: what was asked about still runs.
pub(crate) const NOT_READY: Status = 600;

macro_rules! table {
    (required { $($name:ident = $symbol:literal: fn($($arg:ty),*),)+ } optional { $($oname:ident = $osymbol:literal: fn($($oarg:ty),*),)+ }) => {
        /// The driver's functions. What an old driver may lack is an `Option`.
        pub(crate) struct Driver {
            $(pub(super) $name: unsafe extern "C" fn($($arg),*) -> Status,)+
            $(pub(super) $oname: Option<unsafe extern "C" fn($($oarg),*) -> Status>,)+
        }

        impl Driver {
            fn load(library: &Library) -> Result<Self, NoFunction> {
                // SAFETY: each symbol has the signature that `cuda.h` declares for it; the library is never closed.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!($symbol, "\0").as_bytes()).map_err(|_| NoFunction($symbol))?,)+
                        $($oname: library.get(concat!($osymbol, "\0").as_bytes()).ok().map(|symbol| *symbol),)+
                    })
                }
            }
        }
    };
}

table! {
    required {
        init = "cuInit": fn(c_uint),
        driver_get_version = "cuDriverGetVersion": fn(*mut c_int),
        device_get_count = "cuDeviceGetCount": fn(*mut c_int),
        device_get = "cuDeviceGet": fn(*mut c_int, c_int),
        device_get_name = "cuDeviceGetName": fn(*mut c_char, c_int, c_int),
        device_get_pci_bus_id = "cuDeviceGetPCIBusId": fn(*mut c_char, c_int, c_int),
        device_get_attribute = "cuDeviceGetAttribute": fn(*mut c_int, c_int, c_int),
        context_retain = "cuDevicePrimaryCtxRetain": fn(*mut Handle, c_int),
        context_release = "cuDevicePrimaryCtxRelease_v2": fn(c_int),
        context_set_current = "cuCtxSetCurrent": fn(Handle),
        memory_info = "cuMemGetInfo_v2": fn(*mut usize, *mut usize),
        memory_alloc = "cuMemAlloc_v2": fn(*mut DevicePtr, usize),
        memory_free = "cuMemFree_v2": fn(DevicePtr),
        host_register = "cuMemHostRegister_v2": fn(*mut c_void, usize, c_uint),
        host_unregister = "cuMemHostUnregister": fn(*mut c_void),
        copy_to_device = "cuMemcpyHtoDAsync_v2": fn(DevicePtr, *const c_void, usize, Handle),
        copy_to_host = "cuMemcpyDtoHAsync_v2": fn(*mut c_void, DevicePtr, usize, Handle),
        copy_on_device = "cuMemcpyDtoDAsync_v2": fn(DevicePtr, DevicePtr, usize, Handle),
        set_bytes = "cuMemsetD8Async": fn(DevicePtr, u8, usize, Handle),
        pointer_attribute = "cuPointerGetAttribute": fn(*mut c_void, c_int, DevicePtr),
        stream_create = "cuStreamCreate": fn(*mut Handle, c_uint),
        stream_destroy = "cuStreamDestroy_v2": fn(Handle),
        stream_query = "cuStreamQuery": fn(Handle),
        stream_synchronize = "cuStreamSynchronize": fn(Handle),
        event_create = "cuEventCreate": fn(*mut Handle, c_uint),
        event_destroy = "cuEventDestroy_v2": fn(Handle),
        event_record = "cuEventRecord": fn(Handle, Handle),
        event_synchronize = "cuEventSynchronize": fn(Handle),
        event_elapsed = "cuEventElapsedTime": fn(*mut f32, Handle, Handle),
        module_load = "cuModuleLoadDataEx": fn(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void),
        module_function = "cuModuleGetFunction": fn(*mut Handle, Handle, *const c_char),
        launch = "cuLaunchKernel": fn(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void),
        error_name = "cuGetErrorName": fn(Status, *mut *const c_char),
        error_words = "cuGetErrorString": fn(Status, *mut *const c_char),
    }
    optional {
        device_can_access_peer = "cuDeviceCanAccessPeer": fn(*mut c_int, c_int, c_int),
        context_enable_peer = "cuCtxEnablePeerAccess": fn(Handle, c_uint),
        set_pointer_attribute = "cuPointerSetAttribute": fn(*const c_void, c_int, DevicePtr),
        flush_writes = "cuFlushGPUDirectRDMAWrites": fn(c_int, c_int),
        address_range_handle = "cuMemGetHandleForAddressRange": fn(*mut c_void, DevicePtr, usize, c_int, u64),
        capture_begin = "cuStreamBeginCapture_v2": fn(Handle, c_int),
        capture_end = "cuStreamEndCapture": fn(Handle, *mut Handle),
        graph_instantiate = "cuGraphInstantiateWithFlags": fn(*mut Handle, Handle, u64),
        graph_launch = "cuGraphLaunch": fn(Handle, Handle),
        graph_destroy = "cuGraphDestroy": fn(Handle),
        graph_exec_destroy = "cuGraphExecDestroy": fn(Handle),
    }
}

/// Oldest driver that is used, as `cuDriverGetVersion` counts: CUDA 11.0.
const OLDEST: c_int = 11_000;

/// The driver of this host, opened and initialised once per process.
///
/// # Errors
/// There is no driver, it is too old, or it finds no usable GPU; in words.
pub(crate) fn driver() -> Result<&'static Driver, Failure> {
    static DRIVER: OnceLock<Result<Driver, Failure>> = OnceLock::new();
    DRIVER.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Driver, Failure> {
    let refused = |cause: String| Failure::new(Stage::Open, Kind::Unsupported, cause);
    // SAFETY: NVIDIA's driver library, whose initialisers are made to run in any process.
    let library = unsafe { Library::open(Some("libcuda.so.1"), RTLD_LAZY | RTLD_LOCAL) }.map_err(|error| {
        refused(format!("there is no CUDA driver on this host: {}", NotOpened(error)))
            .remedy(remedy::INSTALL_CUDA_DRIVER)
    })?;
    let driver = Driver::load(&library).map_err(|NoFunction(symbol)| {
        refused(format!("the CUDA driver of this host is too old: it has no {symbol}")).remedy(remedy::NEWER_CUDA)
    })?;
    // The driver has threads and exit handlers: it stays.
    std::mem::forget(library);
    // SAFETY: flags must be 0.
    let status = unsafe { (driver.init)(0) };
    driver.check(status, "starting the CUDA driver").map_err(|failure| {
        let cause = format!("{}: the kernel module may be missing or of another version", failure.cause);
        Failure { cause, ..failure }.remedy(remedy::LOOK_AT_GPU)
    })?;
    let mut version = 0;
    // SAFETY: `version` is valid for writes.
    driver.check(unsafe { (driver.driver_get_version)(&raw mut version) }, "reading the driver's version")?;
    if version < OLDEST {
        let cause = format!("the CUDA driver of this host is too old: {}.{}", version / 1000, version % 1000 / 10);
        return Err(refused(cause).remedy(remedy::NEWER_CUDA));
    }
    Ok(driver)
}

impl Driver {
    /// Turns a status into a failure that says what was tried and what the driver answered.
    ///
    /// # Errors
    /// The status is not success.
    pub(crate) fn check(&self, status: Status, what: &str) -> Result<(), Failure> {
        if status == SUCCESS {
            return Ok(());
        }
        let cause = format!("{what}: {}", self.words(status));
        Err(match status {
            OUT_OF_MEMORY => Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::FREE_GPU_MEMORY),
            _ => Failure::new(Stage::Open, Kind::Unsupported, cause),
        })
    }

    /// A status in the driver's own words.
    fn words(&self, status: Status) -> String {
        let word = |of: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: `text` is valid for writes; on success it points to a static string.
            unsafe {
                (of(status, &raw mut text) == SUCCESS && !text.is_null())
                    .then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        match (word(self.error_name), word(self.error_words)) {
            (Some(name), Some(words)) => format!("{name} ({words})"),
            _ => format!("CUDA error {status}"),
        }
    }
}
