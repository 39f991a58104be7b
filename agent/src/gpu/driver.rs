//! CUDA's driver API or AMD's HIP, opened at run time. Signatures and numbers are those of NVIDIA's `cuda.h` (CUDA driver API reference,
//! 11.0 to 13.0). Only the driver library is used, not the runtime, so there is no second version to match. HIP has the same functions
//! under other names (`hip_runtime_api.h` of ROCm 5.5, 5.7 and 6.3), except peer access, which it opens between devices.

use std::{
    ffi::{c_char, c_int, c_uint, c_void},
    sync::OnceLock,
};

use libloading::os::unix::RTLD_LAZY;
use railgauge_wire::{Failure, Kind, Stage, remedy};

use super::{Vendor, present};
use crate::system::{
    library::{Library, NoFunction, functions, said},
    tree::Tree,
};

pub(crate) type DevicePtr = u64;
/// `CUresult`, `hipError_t`.
pub(crate) type Status = c_int;
/// `CUstream`, `CUcontext`, `CUmodule`, `CUfunction`, `CUgraph`, `CUgraphExec`.
pub(crate) type Handle = *mut c_void;

/// `CUDA_SUCCESS`, `hipSuccess`.
pub(crate) const SUCCESS: Status = 0;
/// `CUDA_ERROR_OUT_OF_MEMORY`, `hipErrorOutOfMemory`.
pub(crate) const OUT_OF_MEMORY: Status = 2;
/// `CUDA_ERROR_NO_DEVICE`, `hipErrorNoDevice`.
const NO_DEVICE: Status = 100;
pub(crate) const NOT_READY: Status = 600;

functions! {
    /// Functions that an old driver or one vendor lacks are `Option`.
    pub(crate) struct Driver {
        pub(crate) vendor: Vendor,
    }
    required {
        init = "cuInit" | "hipInit": fn(c_uint) -> Status,
        device_get_count = "cuDeviceGetCount" | "hipGetDeviceCount": fn(*mut c_int) -> Status,
        device_get = "cuDeviceGet" | "hipDeviceGet": fn(*mut c_int, c_int) -> Status,
        device_get_name = "cuDeviceGetName" | "hipDeviceGetName": fn(*mut c_char, c_int, c_int) -> Status,
        device_get_pci_bus_id = "cuDeviceGetPCIBusId" | "hipDeviceGetPCIBusId": fn(*mut c_char, c_int, c_int) -> Status,
        device_get_attribute = "cuDeviceGetAttribute" | "hipDeviceGetAttribute": fn(*mut c_int, c_int, c_int) -> Status,
        context_retain = "cuDevicePrimaryCtxRetain" | "hipDevicePrimaryCtxRetain": fn(*mut Handle, c_int) -> Status,
        context_release = "cuDevicePrimaryCtxRelease_v2" | "hipDevicePrimaryCtxRelease": fn(c_int) -> Status,
        context_set_current = "cuCtxSetCurrent" | "hipCtxSetCurrent": fn(Handle) -> Status,
        memory_info = "cuMemGetInfo_v2" | "hipMemGetInfo": fn(*mut usize, *mut usize) -> Status,
        memory_alloc = "cuMemAlloc_v2" | "hipMalloc": fn(*mut DevicePtr, usize) -> Status,
        memory_free = "cuMemFree_v2" | "hipFree": fn(DevicePtr) -> Status,
        host_register = "cuMemHostRegister_v2" | "hipHostRegister": fn(*mut c_void, usize, c_uint) -> Status,
        host_unregister = "cuMemHostUnregister" | "hipHostUnregister": fn(*mut c_void) -> Status,
        copy_to_device = "cuMemcpyHtoDAsync_v2" | "hipMemcpyHtoDAsync": fn(DevicePtr, *const c_void, usize, Handle) -> Status,
        copy_to_host = "cuMemcpyDtoHAsync_v2" | "hipMemcpyDtoHAsync": fn(*mut c_void, DevicePtr, usize, Handle) -> Status,
        copy_on_device = "cuMemcpyDtoDAsync_v2" | "hipMemcpyDtoDAsync": fn(DevicePtr, DevicePtr, usize, Handle) -> Status,
        set_bytes = "cuMemsetD8Async" | "hipMemsetD8Async": fn(DevicePtr, u8, usize, Handle) -> Status,
        pointer_attribute = "cuPointerGetAttribute" | "hipPointerGetAttribute": fn(*mut c_void, c_int, DevicePtr) -> Status,
        stream_create = "cuStreamCreate" | "hipStreamCreateWithFlags": fn(*mut Handle, c_uint) -> Status,
        stream_destroy = "cuStreamDestroy_v2" | "hipStreamDestroy": fn(Handle) -> Status,
        stream_query = "cuStreamQuery" | "hipStreamQuery": fn(Handle) -> Status,
        stream_synchronize = "cuStreamSynchronize" | "hipStreamSynchronize": fn(Handle) -> Status,
        event_create = "cuEventCreate" | "hipEventCreateWithFlags": fn(*mut Handle, c_uint) -> Status,
        event_destroy = "cuEventDestroy_v2" | "hipEventDestroy": fn(Handle) -> Status,
        event_record = "cuEventRecord" | "hipEventRecord": fn(Handle, Handle) -> Status,
        event_synchronize = "cuEventSynchronize" | "hipEventSynchronize": fn(Handle) -> Status,
        event_elapsed = "cuEventElapsedTime" | "hipEventElapsedTime": fn(*mut f32, Handle, Handle) -> Status,
        module_load = "cuModuleLoadDataEx" | "hipModuleLoadDataEx": fn(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void) -> Status,
        module_function = "cuModuleGetFunction" | "hipModuleGetFunction": fn(*mut Handle, Handle, *const c_char) -> Status,
        launch = "cuLaunchKernel" | "hipModuleLaunchKernel": fn(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void) -> Status,
        error_name = "cuGetErrorName" | "hipDrvGetErrorName": fn(Status, *mut *const c_char) -> Status,
        error_words = "cuGetErrorString" | "hipDrvGetErrorString": fn(Status, *mut *const c_char) -> Status,
    }
    optional {
        driver_get_version = "cuDriverGetVersion" | "": fn(*mut c_int) -> Status,
        device_can_access_peer = "cuDeviceCanAccessPeer" | "hipDeviceCanAccessPeer": fn(*mut c_int, c_int, c_int) -> Status,
        device_enable_peer = "" | "hipDeviceEnablePeerAccess": fn(c_int, c_uint) -> Status,
        device_link = "" | "hipExtGetLinkTypeAndHopCount": fn(c_int, c_int, *mut u32, *mut u32) -> Status,
        context_enable_peer = "cuCtxEnablePeerAccess" | "": fn(Handle, c_uint) -> Status,
        set_pointer_attribute = "cuPointerSetAttribute" | "": fn(*const c_void, c_int, DevicePtr) -> Status,
        flush_writes = "cuFlushGPUDirectRDMAWrites" | "": fn(c_int, c_int) -> Status,
        address_range_handle = "cuMemGetHandleForAddressRange" | "": fn(*mut c_void, DevicePtr, usize, c_int, u64) -> Status,
        capture_begin = "cuStreamBeginCapture_v2" | "hipStreamBeginCapture": fn(Handle, c_int) -> Status,
        capture_end = "cuStreamEndCapture" | "hipStreamEndCapture": fn(Handle, *mut Handle) -> Status,
        graph_instantiate = "cuGraphInstantiateWithFlags" | "hipGraphInstantiateWithFlags": fn(*mut Handle, Handle, u64) -> Status,
        graph_launch = "cuGraphLaunch" | "hipGraphLaunch": fn(Handle, Handle) -> Status,
        graph_destroy = "cuGraphDestroy" | "hipGraphDestroy": fn(Handle) -> Status,
        graph_exec_destroy = "cuGraphExecDestroy" | "hipGraphExecDestroy": fn(Handle) -> Status,
        stream_wait_event = "cuStreamWaitEvent" | "hipStreamWaitEvent": fn(Handle, Handle, c_uint) -> Status,
    }
}

/// Oldest supported driver in the format of `cuDriverGetVersion`: CUDA 11.0.
const OLDEST: c_int = 11_000;

/// Newest first: ROCm 7, 6 and 5, and where ROCm installs it.
pub(crate) const HIP: [&str; 5] =
    ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so", "/opt/rocm/lib/libamdhip64.so"];

/// Opened and initialised once per process: NVIDIA's; or HIP if that is missing, or does not start and no NVIDIA GPU is on the PCI bus.
pub(crate) fn driver() -> Result<&'static Driver, Failure> {
    static DRIVER: OnceLock<Result<Driver, Failure>> = OnceLock::new();
    DRIVER.get_or_init(open).as_ref().map_err(Clone::clone)
}

enum Unused {
    NotThere(Failure),
    Broken(Failure),
}

fn open() -> Result<Driver, Failure> {
    let cuda = match open_cuda() {
        Ok(driver) => return Ok(driver),
        Err(why) => why,
    };
    let tree = Tree::host();
    let cuda = match cuda {
        // The host's GPUs are NVIDIA's, whatever else is there.
        Unused::Broken(cuda) if present::nvidia(&tree) => return Err(cuda),
        other => other,
    };
    let has_amd = !present::amd(&tree).is_empty();
    match (cuda, open_hip()) {
        (_, Ok(driver)) => Ok(driver),
        // CUDA's driver without an NVIDIA GPU, as in some containers.
        (_, Err(Unused::NotThere(hip) | Unused::Broken(hip))) if has_amd => Err(hip),
        (Unused::NotThere(_), Err(Unused::Broken(hip))) => Err(hip),
        (Unused::NotThere(cuda) | Unused::Broken(cuda), Err(_)) => Err(cuda),
    }
}

fn refused(cause: String) -> Failure {
    Failure::new(Stage::Open, Kind::Unsupported, cause)
}

fn open_cuda() -> Result<Driver, Unused> {
    let library = Library::open("libcuda.so.1", RTLD_LAZY).map_err(|error| {
        let cause = format!("this host has no CUDA driver: {error}");
        Unused::NotThere(refused(cause).remedy(remedy::INSTALL_CUDA_DRIVER))
    })?;
    let driver = Driver::look_up(&library, Vendor::Nvidia as usize, Vendor::Nvidia).map_err(|NoFunction(symbol)| {
        let cause = format!("the CUDA driver of this host is too old: it has no {symbol}");
        Unused::Broken(refused(cause).remedy(remedy::NEWER_CUDA))
    })?;
    driver.start("starting the CUDA driver", "the kernel module may be missing or of another version")?;
    let mut version = 0;
    if let Some(get_version) = driver.driver_get_version {
        // SAFETY: `version` is valid for writes.
        let status = unsafe { get_version(&raw mut version) };
        driver.check(status, "reading the driver's version").map_err(Unused::Broken)?;
    }
    if version < OLDEST {
        let cause = format!("the CUDA driver of this host is too old: {}.{}", version / 1000, version % 1000 / 10);
        return Err(Unused::Broken(refused(cause).remedy(remedy::NEWER_CUDA)));
    }
    Ok(driver)
}

fn open_hip() -> Result<Driver, Unused> {
    let library = Library::first(&HIP).map_err(|why| {
        let cause = format!("this host has no HIP runtime for its AMD GPUs: {why}");
        Unused::NotThere(refused(cause).remedy(remedy::INSTALL_HIP))
    })?;
    let driver = Driver::look_up(&library, Vendor::Amd as usize, Vendor::Amd).map_err(|NoFunction(symbol)| {
        let cause = format!("the HIP runtime of this host ({}) is too old: it has no {symbol}", library.name());
        Unused::Broken(refused(cause).remedy(remedy::NEWER_HIP))
    })?;
    driver.start("starting HIP", "the kernel module amdgpu may be missing, or /dev/kfd closed to this user")?;
    Ok(driver)
}

impl Driver {
    fn start(&self, what: &str, why: &str) -> Result<(), Unused> {
        // SAFETY: flags must be 0.
        self.check(unsafe { (self.init)(0) }, what).map_err(|failure| {
            let cause = format!("{}: {why}", failure.cause);
            Unused::Broken(Failure { cause, ..failure }.remedy(self.vendor.look()))
        })
    }

    pub(super) fn count(&self) -> Result<c_int, Failure> {
        let mut count = 0;
        // SAFETY: `count` is valid for writes.
        match unsafe { (self.device_get_count)(&raw mut count) } {
            // HIP reports an error instead of zero.
            NO_DEVICE => Ok(0),
            status => self.check(status, "counting GPUs").map(|()| count),
        }
    }

    pub(crate) fn check(&self, status: Status, what: &str) -> Result<(), Failure> {
        if status == SUCCESS {
            return Ok(());
        }
        let cause = format!("{what}: {}", self.words(status));
        Err(match status {
            OUT_OF_MEMORY => Failure::new(Stage::Open, Kind::Configuration, cause).remedy(self.vendor.free_memory()),
            _ => Failure::new(Stage::Open, Kind::Unsupported, cause),
        })
    }

    fn words(&self, status: Status) -> String {
        let word = |of: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: `text` is valid for writes; on success it points to a static string.
            unsafe { (of(status, &raw mut text) == SUCCESS).then(|| said(text)).flatten() }
        };
        match (word(self.error_name), word(self.error_words)) {
            (Some(name), Some(words)) => format!("{name} ({words})"),
            _ => format!("{} error {status}", self.vendor.runtime()),
        }
    }
}
