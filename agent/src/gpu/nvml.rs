//! The NVML functions in use, opened at run time. Signatures, numbers and layouts are those of `nvml.h` (API version 13), from which
//! `nvml-wrapper-sys` was generated.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_ulonglong},
    ptr,
    sync::Arc,
};

use libloading::os::unix::RTLD_LAZY;
use nvml_wrapper_sys::bindings::*;
pub(crate) use nvml_wrapper_sys::bindings::{
    field_id as id, nvmlClockType_enum_NVML_CLOCK_MEM as CLOCK_MEMORY, nvmlClockType_enum_NVML_CLOCK_SM as CLOCK_SM,
    nvmlEccCounterType_enum_NVML_VOLATILE_ECC as VOLATILE,
    nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED as UNCORRECTED,
    nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_CRC_FLIT as CRC_FLIT,
    nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_RECOVERY as RECOVERY,
    nvmlNvLinkErrorCounter_enum_NVML_NVLINK_ERROR_DL_REPLAY as REPLAY,
    nvmlPageRetirementCause_enum_NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR as DOUBLE_BIT,
    nvmlPageRetirementCause_enum_NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS as SINGLE_BIT,
    nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST as LOST, nvmlReturn_enum_NVML_ERROR_NOT_FOUND as NOT_FOUND,
    nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU as CHIP,
};
use nvml_wrapper_sys::bindings::{
    nvmlEnableState_enum_NVML_FEATURE_DISABLED as DISABLED, nvmlEnableState_enum_NVML_FEATURE_ENABLED as ENABLED,
    nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED as NO_DRIVER, nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND as LACKS,
    nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE as NO_ROOM,
    nvmlReturn_enum_NVML_ERROR_LIBRARY_NOT_FOUND as NO_LIBRARY, nvmlReturn_enum_NVML_SUCCESS as SUCCESS,
    nvmlReturn_t as Status, nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG as LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as LONG_LONG,
};

use super::Handle;
use crate::system::{
    library::{Library, functions, said},
    log,
};

/// Most NVLinks a GPU has (`NVML_NVLINK_MAX_LINKS`).
pub(crate) const NVLINKS: u32 = 18;

/// Answers a number; those with a choice take a clock, a sensor or a link.
type Number = Option<unsafe extern "C" fn(Handle, *mut c_uint) -> Status>;
type Choice = Option<unsafe extern "C" fn(Handle, c_uint, *mut c_uint) -> Status>;
type Counter = Option<unsafe extern "C" fn(Handle, c_uint, c_uint, *mut c_ulonglong) -> Status>;
type Pair = Option<unsafe extern "C" fn(Handle, *mut c_uint, *mut c_uint) -> Status>;
type Text = Option<unsafe extern "C" fn(Handle, *mut c_char, c_uint) -> Status>;

functions! {
    pub(super) struct Functions {}
    required {
        init = "nvmlInit_v2": fn() -> Status,
    }
    optional {
        shutdown = "nvmlShutdown": fn() -> Status,
        words = "nvmlErrorString": fn(Status) -> *const c_char,
        driver_version = "nvmlSystemGetDriverVersion": fn(*mut c_char, c_uint) -> Status,
        cuda_version = "nvmlSystemGetCudaDriverVersion_v2": fn(*mut c_int) -> Status,
        count = "nvmlDeviceGetCount_v2": fn(*mut c_uint) -> Status,
        by_index = "nvmlDeviceGetHandleByIndex_v2": fn(c_uint, *mut Handle) -> Status,
        by_pci = "nvmlDeviceGetHandleByPciBusId_v2": fn(*const c_char, *mut Handle) -> Status,
        index = "nvmlDeviceGetIndex": fn(Handle, *mut c_uint) -> Status,
        pci = "nvmlDeviceGetPciInfo_v3": fn(Handle, *mut nvmlPciInfo_t) -> Status,
        uuid = "nvmlDeviceGetUUID": fn(Handle, *mut c_char, c_uint) -> Status,
        serial = "nvmlDeviceGetSerial": fn(Handle, *mut c_char, c_uint) -> Status,
        part_number = "nvmlDeviceGetBoardPartNumber": fn(Handle, *mut c_char, c_uint) -> Status,
        name = "nvmlDeviceGetName": fn(Handle, *mut c_char, c_uint) -> Status,
        clock = "nvmlDeviceGetClockInfo": fn(Handle, c_uint, *mut c_uint) -> Status,
        best_clock = "nvmlDeviceGetMaxClockInfo": fn(Handle, c_uint, *mut c_uint) -> Status,
        temperature = "nvmlDeviceGetTemperature": fn(Handle, c_uint, *mut c_uint) -> Status,
        power = "nvmlDeviceGetPowerUsage": fn(Handle, *mut c_uint) -> Status,
        power_limit = "nvmlDeviceGetPowerManagementLimit": fn(Handle, *mut c_uint) -> Status,
        enforced_power_limit = "nvmlDeviceGetEnforcedPowerLimit": fn(Handle, *mut c_uint) -> Status,
        held = "nvmlDeviceGetCurrentClocksThrottleReasons": fn(Handle, *mut c_ulonglong) -> Status,
        pcie_generation = "nvmlDeviceGetCurrPcieLinkGeneration": fn(Handle, *mut c_uint) -> Status,
        pcie_width = "nvmlDeviceGetCurrPcieLinkWidth": fn(Handle, *mut c_uint) -> Status,
        best_pcie_generation = "nvmlDeviceGetMaxPcieLinkGeneration": fn(Handle, *mut c_uint) -> Status,
        best_pcie_width = "nvmlDeviceGetMaxPcieLinkWidth": fn(Handle, *mut c_uint) -> Status,
        memory = "nvmlDeviceGetMemoryInfo_v2": fn(Handle, *mut nvmlMemory_v2_t) -> Status,
        ecc_mode = "nvmlDeviceGetEccMode": fn(Handle, *mut c_uint, *mut c_uint) -> Status,
        mig_mode = "nvmlDeviceGetMigMode": fn(Handle, *mut c_uint, *mut c_uint) -> Status,
        persistence = "nvmlDeviceGetPersistenceMode": fn(Handle, *mut c_uint) -> Status,
        ecc_errors = "nvmlDeviceGetTotalEccErrors": fn(Handle, c_uint, c_uint, *mut c_ulonglong) -> Status,
        retired = "nvmlDeviceGetRetiredPages": fn(Handle, c_uint, *mut c_uint, *mut c_ulonglong) -> Status,
        retirement_pending = "nvmlDeviceGetRetiredPagesPendingStatus": fn(Handle, *mut c_uint) -> Status,
        programs = "nvmlDeviceGetComputeRunningProcesses_v3": fn(Handle, *mut c_uint, *mut nvmlProcessInfo_t) -> Status,
        link_state = "nvmlDeviceGetNvLinkState": fn(Handle, c_uint, *mut c_uint) -> Status,
        link_errors = "nvmlDeviceGetNvLinkErrorCounter": fn(Handle, c_uint, c_uint, *mut c_ulonglong) -> Status,
        fields = "nvmlDeviceGetFieldValues": fn(Handle, c_int, *mut nvmlFieldValue_t) -> Status,
        fabric = "nvmlDeviceGetGpuFabricInfoV": fn(Handle, *mut nvmlGpuFabricInfo_v3_t) -> Status,
        events_create = "nvmlEventSetCreate": fn(*mut Handle) -> Status,
        events_free = "nvmlEventSetFree": fn(Handle) -> Status,
        events_register = "nvmlDeviceRegisterEvents": fn(Handle, c_ulonglong, Handle) -> Status,
        events_wait = "nvmlEventSetWait_v2": fn(Handle, *mut nvmlEventData_t, c_uint) -> Status,
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{words}")]
pub(super) struct Refused {
    status: Status,
    words: String,
}

impl Refused {
    /// Without a driver there are no GPUs of it either.
    pub(super) fn is_absence(&self) -> bool {
        matches!(self.status, NO_LIBRARY | NO_DRIVER)
    }
}

pub(crate) struct Nvml(Functions);

impl Drop for Nvml {
    fn drop(&mut self) {
        if let Some(shutdown) = self.0.shutdown {
            // SAFETY: it was started, and no GPU or set of events is left: each keeps it.
            let status = unsafe { shutdown() };
            if status != SUCCESS {
                log!("NVML was not shut down: error {status}");
            }
        }
    }
}

/// Has a function fill a value, which is zero before.
///
/// # Safety
/// Zeros must be a valid `T`.
unsafe fn filled<T>(ask: impl FnOnce(*mut T) -> Status) -> Result<T, Status> {
    // SAFETY: the caller's duty.
    let mut value: T = unsafe { std::mem::zeroed() };
    match ask(&raw mut value) {
        SUCCESS => Ok(value),
        status => Err(status),
    }
}

/// `NVML_DEVICE_UUID_V2_BUFFER_SIZE`, the longest of NVML's texts.
const LONGEST: usize = 96;

fn text(ask: impl FnOnce(*mut c_char, c_uint) -> Status) -> Option<String> {
    let mut text = [0_u8; LONGEST];
    let status = ask(text.as_mut_ptr().cast(), LONGEST as c_uint);
    let text = CStr::from_bytes_until_nul(&text).ok()?.to_str().ok()?;
    (status == SUCCESS).then(|| text.to_owned())
}

impl Nvml {
    pub(super) fn start() -> Result<Arc<Self>, Refused> {
        let library = Library::open("libnvidia-ml.so.1", RTLD_LAZY)
            .map_err(|error| Refused { status: NO_LIBRARY, words: error.to_string() })?;
        let functions =
            Functions::look_up(&library, 0).map_err(|missing| Refused { status: LACKS, words: missing.to_string() })?;
        // SAFETY: it takes nothing, and may be called again.
        match unsafe { (functions.init)() } {
            SUCCESS => Ok(Arc::new(Self(functions))),
            status => Err(refused(&functions, status)),
        }
    }

    pub(super) fn count(&self) -> Result<u32, Refused> {
        // SAFETY: the place is valid for writes.
        let count = unsafe { filled(|to| self.0.count.map_or(LACKS, |count| count(to))) };
        count.map_err(|status| refused(&self.0, status))
    }

    pub(super) fn driver_version(&self) -> Option<String> {
        let ask = self.0.driver_version?;
        // SAFETY: there is room for as many bytes as are named.
        text(|to, room| unsafe { ask(to, room) })
    }

    pub(super) fn cuda_version(&self) -> Option<i32> {
        let ask = self.0.cuda_version?;
        // SAFETY: the place is valid for writes.
        unsafe { filled(|to| ask(to)) }.ok()
    }

    pub(super) fn by_index(self: &Arc<Self>, index: u32) -> Result<Device, Refused> {
        // SAFETY: the place is valid for writes, and zeros are a null pointer.
        self.device(unsafe { filled(|to| self.0.by_index.map_or(LACKS, |ask| ask(index, to))) })
    }

    pub(super) fn by_pci(self: &Arc<Self>, address: &str) -> Result<Device, Refused> {
        let address = CString::new(address).unwrap_or_default();
        // SAFETY: as above, and the address ends in NUL.
        self.device(unsafe { filled(|to| self.0.by_pci.map_or(LACKS, |ask| ask(address.as_ptr(), to))) })
    }

    fn device(self: &Arc<Self>, found: Result<Handle, Status>) -> Result<Device, Refused> {
        let handle = found.map_err(|status| refused(&self.0, status))?;
        Ok(Device { nvml: Arc::clone(self), handle })
    }
}

fn refused(functions: &Functions, status: Status) -> Refused {
    // SAFETY: it answers every number with a static string.
    let words = functions.words.and_then(|words| unsafe { said(words(status)) });
    Refused { status, words: words.unwrap_or_else(|| format!("status {status}")) }
}

pub(super) struct Device {
    nvml: Arc<Nvml>,
    handle: Handle,
}

impl Device {
    pub(super) fn of(&self) -> &Functions {
        &self.nvml.0
    }

    pub(super) fn number(&self, ask: Number) -> Option<u32> {
        // SAFETY: the handle is NVML's, and the place is valid for writes.
        unsafe { filled(|to| ask.map_or(LACKS, |ask| ask(self.handle, to))) }.ok()
    }

    pub(super) fn choice(&self, ask: Choice, which: c_uint) -> Result<u32, Status> {
        // SAFETY: as above.
        unsafe { filled(|to| ask.map_or(LACKS, |ask| ask(self.handle, which, to))) }
    }

    pub(super) fn counter(&self, ask: Counter, which: c_uint, kind: c_uint) -> Option<u64> {
        // SAFETY: as above.
        unsafe { filled(|to| ask.map_or(LACKS, |ask| ask(self.handle, which, kind, to))) }.ok()
    }

    /// The current one of a pair of current and pending.
    pub(super) fn current(&self, ask: Pair) -> Option<u32> {
        let mut pending = 0;
        // SAFETY: as above; both places are valid for writes.
        unsafe { filled(|to| ask.map_or(LACKS, |ask| ask(self.handle, to, &raw mut pending))) }.ok()
    }

    pub(super) fn text(&self, ask: Text) -> Option<String> {
        let ask = ask?;
        // SAFETY: the handle is NVML's, and there is room for as many bytes as are named.
        text(|to, room| unsafe { ask(self.handle, to, room) })
    }

    pub(super) fn pci(&self) -> Option<(u32, u32, u32)> {
        let ask = self.of().pci?;
        // SAFETY: the place is valid for writes, and zeros are a valid structure of numbers.
        let info = unsafe { filled(|to| ask(self.handle, to)) }.ok()?;
        Some((info.domain, info.bus, info.device))
    }

    /// In bytes.
    pub(super) fn memory(&self) -> Option<u64> {
        let ask = self.of().memory?;
        let version = struct_version(2, size_of::<nvmlMemory_v2_t>());
        let mut info = nvmlMemory_v2_t { version, total: 0, reserved: 0, free: 0, used: 0 };
        // SAFETY: the structure is that of the version in it.
        (unsafe { ask(self.handle, &raw mut info) } == SUCCESS).then_some(info.total)
    }

    /// Why its clocks are held down: `nvmlClocksThrottleReason…`.
    pub(super) fn held(&self) -> Option<u64> {
        let ask = self.of().held?;
        // SAFETY: the place is valid for writes.
        unsafe { filled(|to| ask(self.handle, to)) }.ok()
    }

    pub(super) fn retired(&self, cause: c_uint) -> Option<u32> {
        let ask = self.of().retired?;
        let (mut count, mut none) = (0, 0);
        // SAFETY: both places are valid for writes; with room for none it only counts.
        let status = unsafe { ask(self.handle, cause, &raw mut count, &raw mut none) };
        matches!(status, SUCCESS | NO_ROOM).then_some(count)
    }

    pub(super) fn program_count(&self) -> Option<u32> {
        let ask = self.of().programs?;
        let mut count = 0;
        // SAFETY: the place is valid for writes; with room for none it only counts.
        match unsafe { ask(self.handle, &raw mut count, ptr::null_mut()) } {
            SUCCESS => Some(0),
            NO_ROOM => Some(count),
            _ => None,
        }
    }

    pub(super) fn programs(&self) -> Option<Vec<u32>> {
        let ask = self.of().programs?;
        let mut count = match self.program_count()? {
            0 => return Some(Vec::new()),
            // More may have started meanwhile.
            count => count + 5,
        };
        // SAFETY: zeros are a valid structure of numbers.
        let mut list: Vec<nvmlProcessInfo_t> = vec![unsafe { std::mem::zeroed() }; count as usize];
        // SAFETY: there is room for as many as `count` says.
        let status = unsafe { ask(self.handle, &raw mut count, list.as_mut_ptr()) };
        (status == SUCCESS).then(|| list.iter().take(count as usize).map(|program| program.pid).collect())
    }

    /// Whole numbers among NVML's fields, in the order asked. Drivers from 580.82 on renumber the fields from 251 on, which are not used.
    pub(super) fn fields(&self, ids: &[u32]) -> Vec<Option<u64>> {
        // SAFETY: zeros are a valid structure of numbers.
        let blank: nvmlFieldValue_t = unsafe { std::mem::zeroed() };
        let mut asked: Vec<_> = ids.iter().map(|id| nvmlFieldValue_t { fieldId: *id, ..blank }).collect();
        let status = self.of().fields.map_or(LACKS, |ask| {
            // SAFETY: there are as many structures as are named.
            unsafe { ask(self.handle, ids.len() as c_int, asked.as_mut_ptr()) }
        });
        asked.iter().map(|field| (status == SUCCESS).then(|| whole(field)).flatten()).collect()
    }

    /// Registration with the NVLink fabric, in one version of the structure, which is at most as large as the third.
    pub(super) fn fabric(&self, version: u32, size: usize) -> Option<nvmlGpuFabricInfo_v3_t> {
        let ask = self.of().fabric.filter(|_| size <= size_of::<nvmlGpuFabricInfo_v3_t>())?;
        // SAFETY: a structure of numbers, for which zeros are valid.
        let mut info: nvmlGpuFabricInfo_v3_t = unsafe { std::mem::zeroed() };
        info.version = struct_version(version, size);
        // SAFETY: NVML writes a structure of the length that is named in it, and that is no larger than `info`.
        (unsafe { ask(self.handle, &raw mut info) } == SUCCESS).then_some(info)
    }

    /// Has its Xids kept; `None` where the driver sends none to this process.
    pub(super) fn events(&self) -> Option<Events> {
        let (create, register) = (self.of().events_create?, self.of().events_register?);
        // SAFETY: the place is valid for writes, and zeros are a null pointer.
        let set = unsafe { filled(|to| create(to)) }.ok()?;
        let events = Events { nvml: Arc::clone(&self.nvml), set };
        // SAFETY: the GPU and the set are NVML's.
        let status = unsafe { register(self.handle, XID, set) };
        (status == SUCCESS).then_some(events)
    }
}

/// `NVML_STRUCT_VERSION`.
pub(super) fn struct_version(version: u32, size: usize) -> u32 {
    u32::try_from(size).unwrap_or(0) | version << 24
}

/// `nvmlEnableState_t`.
pub(super) fn on(state: u32) -> Option<bool> {
    match state {
        DISABLED => Some(false),
        ENABLED => Some(true),
        _ => None,
    }
}

fn whole(field: &nvmlFieldValue_t) -> Option<u64> {
    if field.nvmlReturn != SUCCESS {
        return None;
    }
    // SAFETY: the type says which member NVML wrote; all members are numbers, and the others were zero.
    unsafe {
        match field.valueType {
            INT => Some(u64::from(field.value.uiVal)),
            LONG => Some(field.value.ulVal),
            LONG_LONG => Some(field.value.ullVal),
            _ => None,
        }
    }
}

const XID: c_ulonglong = nvmlEventTypeXidCriticalError as c_ulonglong;
/// NVML's number for an Xid that it does not know.
const UNKNOWN_XID: u32 = 999;

pub(super) struct Events {
    nvml: Arc<Nvml>,
    set: Handle,
}

impl Events {
    pub(super) fn next(&self) -> Option<u32> {
        let wait = self.nvml.0.events_wait?;
        // SAFETY: the set is NVML's, the place is valid for writes, and zeros are a valid structure of numbers and null pointers.
        let event = unsafe { filled(|to: *mut nvmlEventData_t| wait(self.set, to, 0)) }.ok()?;
        let is_xid = event.eventType & XID != 0;
        Some(if is_xid { u32::try_from(event.eventData).unwrap_or(u32::MAX) } else { UNKNOWN_XID })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(free) = self.nvml.0.events_free {
            // SAFETY: made by `Device::events`, freed once.
            unsafe { free(self.set) };
        }
    }
}
