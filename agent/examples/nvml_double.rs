//! A double of NVML for tests on hosts without a GPU: what `agent/src/gpu/state.rs` and `agent/src/gpu/facts.rs` need of it. Never part of
//! the product.
//!
//! Put beside an agent as `libnvidia-ml.so.1` and named by `LD_LIBRARY_PATH`. It has the GPUs of the double of CUDA: two, at
//! 0000:d0:00.0 and 0000:d1:00.0. `NVML_DOUBLE` makes them other GPUs or bad ones: words `NAME=NUMBER`, or `d1:NAME=NUMBER` for one of
//! them. `NAME=+NUMBER` grows by so much at each question, `NAME=none` is not told. `xid=NUMBER` is told at the third question for
//! events; `programs=NUMBER` others have a context on it beside the agent itself, whatever that does; `lost=NUMBER`: from its so manieth reading on the GPU is lost, and NVML does not know it any more.
//! With `NVML_DOUBLE_HANGS` it does not come back from starting.
#![allow(non_snake_case, reason = "the names are NVML's, and so is their meaning")]
#![allow(clippy::missing_safety_doc, reason = "the contracts are NVML's")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

use nvml_wrapper_sys::bindings::{nvmlEventData_t, nvmlFieldValue_t, nvmlPciInfo_t, nvmlProcessInfo_t};
use parking_lot::Mutex;
use values::{ASKED, BUSES, value};

#[path = "doubles/values.rs"]
mod values;

type Status = c_uint;
type Gpu = *mut c_void;

const SUCCESS: Status = 0;
const NOT_SUPPORTED: Status = 3;
const NOT_FOUND: Status = 6;
const INSUFFICIENT_SIZE: Status = 7;
const TIMEOUT: Status = 10;
const GPU_IS_LOST: Status = 15;

/// The variable with what is said of the GPUs.
const WORDS: &str = "NVML_DOUBLE";

/// What a healthy GPU under load says. `held` is the mask of clock event reasons.
const USUAL: [(&str, u64); 16] = [
    ("sm", 1980),
    ("sm_best", 1980),
    ("memory", 2619),
    ("memory_best", 2619),
    ("milliwatts", 412_000),
    ("limit", 700_000),
    ("celsius", 54),
    ("memory_celsius", 61),
    ("held", 0),
    ("generation", 5),
    ("generation_best", 5),
    ("width", 16),
    ("width_best", 16),
    ("replays", 4),
    ("uncorrected", 0),
    ("remapped", 0),
];

/// Buses of GPUs that are lost.
static LOST: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Whether the GPU is lost at this reading.
fn is_lost(bus: u64) -> bool {
    let Some(from) = value(bus, "lost") else { return false };
    let is_lost = ASKED.lock().get(&(bus, "lost".to_owned())).is_some_and(|asked| *asked >= from);
    if is_lost {
        LOST.lock().push(bus);
    }
    is_lost
}

fn bus(gpu: Gpu) -> u64 {
    gpu.addr() as u64
}

unsafe fn answer<T>(to: *mut T, value: Option<T>) -> Status {
    let Some(value) = value else { return NOT_SUPPORTED };
    // SAFETY: the caller of NVML's function vouches for the place.
    unsafe { to.write(value) };
    SUCCESS
}

unsafe fn tell(gpu: Gpu, name: &str, to: *mut c_uint) -> Status {
    // SAFETY: as the caller's.
    unsafe { answer(to, value(bus(gpu), name).and_then(|value| c_uint::try_from(value).ok())) }
}

macro_rules! nvml {
    ($($name:ident($($arg:ident: $type:ty),*) $body:block)+) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> Status {
                #[allow(unused_unsafe, reason = "some of these functions do nothing")]
                // SAFETY: callers keep to nvml.h, as they must with NVML itself.
                unsafe { $body }
            }
        )+
    };
}

nvml! {
    nvmlInit_v2() {
        if std::env::var_os("NVML_DOUBLE_HANGS").is_some() {
            loop {
                std::thread::sleep(std::time::Duration::from_secs(60));
            }
        }
        SUCCESS
    }
    nvmlShutdown() { SUCCESS }
    nvmlDeviceGetCount_v2(to: *mut c_uint) { answer(to, Some(BUSES.len() as c_uint)) }
    nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut Gpu) {
        match BUSES.get(index as usize) {
            Some(bus) => answer(to, Some(std::ptr::without_provenance_mut(*bus as usize))),
            None => NOT_FOUND,
        }
    }
    nvmlDeviceGetHandleByPciBusId_v2(address: *const c_char, to: *mut Gpu) {
        let text = CStr::from_ptr(address).to_string_lossy().into_owned();
        match BUSES.iter().find(|bus| text == format!("0000:{bus:02x}:00.0") && !LOST.lock().contains(bus)) {
            Some(bus) => answer(to, Some(std::ptr::without_provenance_mut(*bus as usize))),
            None => NOT_FOUND,
        }
    }
    nvmlDeviceGetIndex(gpu: Gpu, to: *mut c_uint) {
        answer(to, BUSES.iter().position(|one| *one == bus(gpu)).map(|index| index as c_uint))
    }
    nvmlDeviceGetPciInfo_v3(gpu: Gpu, to: *mut nvmlPciInfo_t) {
        let mut info: nvmlPciInfo_t = std::mem::zeroed();
        info.bus = bus(gpu) as c_uint;
        answer(to, Some(info))
    }
    nvmlDeviceGetClockInfo(gpu: Gpu, kind: c_uint, to: *mut c_uint) {
        if kind == 1 && is_lost(bus(gpu)) {
            return GPU_IS_LOST;
        }
        tell(gpu, if kind == 1 { "sm" } else { "memory" }, to)
    }
    nvmlDeviceGetMaxClockInfo(gpu: Gpu, kind: c_uint, to: *mut c_uint) {
        tell(gpu, if kind == 1 { "sm_best" } else { "memory_best" }, to)
    }
    nvmlDeviceGetPowerUsage(gpu: Gpu, to: *mut c_uint) { tell(gpu, "milliwatts", to) }
    nvmlDeviceGetEnforcedPowerLimit(gpu: Gpu, to: *mut c_uint) { tell(gpu, "limit", to) }
    nvmlDeviceGetTemperature(gpu: Gpu, _sensor: c_uint, to: *mut c_uint) { tell(gpu, "celsius", to) }
    nvmlDeviceGetCurrentClocksThrottleReasons(gpu: Gpu, to: *mut c_ulonglong) { answer(to, value(bus(gpu), "held")) }
    nvmlDeviceGetCurrPcieLinkGeneration(gpu: Gpu, to: *mut c_uint) { tell(gpu, "generation", to) }
    nvmlDeviceGetCurrPcieLinkWidth(gpu: Gpu, to: *mut c_uint) { tell(gpu, "width", to) }
    nvmlDeviceGetMaxPcieLinkGeneration(gpu: Gpu, to: *mut c_uint) { tell(gpu, "generation_best", to) }
    nvmlDeviceGetMaxPcieLinkWidth(gpu: Gpu, to: *mut c_uint) { tell(gpu, "width_best", to) }
    nvmlDeviceGetFieldValues(gpu: Gpu, count: c_int, values: *mut nvmlFieldValue_t) {
        for at in 0..usize::try_from(count).unwrap_or(0) {
            let field = &mut *values.add(at);
            let name = match field.fieldId {
                82 => "memory_celsius",
                94 => "replays",
                4 => "uncorrected",
                143 => "remapped",
                142 => "remapped_corrected",
                _ => "",
            };
            let told = value(bus(gpu), name).or((name == "remapped_corrected").then_some(0));
            field.nvmlReturn = if told.is_some() { SUCCESS } else { NOT_SUPPORTED };
            // NVML_VALUE_TYPE_UNSIGNED_LONG_LONG.
            field.valueType = 3;
            field.value.ullVal = told.unwrap_or(0);
        }
        SUCCESS
    }
    nvmlDeviceGetComputeRunningProcesses_v3(gpu: Gpu, count: *mut c_uint, to: *mut nvmlProcessInfo_t) {
        let Some(others) = value(bus(gpu), "programs") else { return NOT_SUPPORTED };
        let room = std::mem::replace(&mut *count, others as c_uint + 1);
        if room < *count {
            return INSUFFICIENT_SIZE;
        }
        // The first of all processes is nobody's child.
        for (at, pid) in std::iter::once(std::process::id()).chain(std::iter::repeat_n(1, others as usize)).enumerate() {
            let mut one: nvmlProcessInfo_t = std::mem::zeroed();
            one.pid = pid;
            to.add(at).write(one);
        }
        SUCCESS
    }
    nvmlDeviceGetNvLinkErrorCounter(gpu: Gpu, link: c_uint, kind: c_uint, to: *mut c_ulonglong) {
        // It has one NVLink, where the test says that it counts.
        let name = ["nvlink_replays", "nvlink_recoveries", "nvlink_crc"].get(kind as usize).filter(|_| link == 0);
        answer(to, name.and_then(|name| value(bus(gpu), name)))
    }
    nvmlEventSetCreate(to: *mut Gpu) { answer(to, Some(std::ptr::null_mut())) }
    nvmlEventSetFree(_set: Gpu) { SUCCESS }
    nvmlDeviceRegisterEvents(_gpu: Gpu, _kinds: c_ulonglong, _set: Gpu) {
        if std::env::var("NVML_DOUBLE").is_ok_and(|words| words.contains("events=none")) { NOT_SUPPORTED } else { SUCCESS }
    }
    nvmlEventSetWait_v2(_set: Gpu, to: *mut nvmlEventData_t, _timeout: c_uint) {
        // The first question is that of a begin, the second that of an end.
        let xid = value(0, "xid").filter(|_| ASKED.lock().get(&(0, "xid".to_owned())).is_some_and(|asked| *asked == 3));
        let Some(xid) = xid else { return TIMEOUT };
        let mut data: nvmlEventData_t = std::mem::zeroed();
        (data.eventType, data.eventData) = (8, xid);
        answer(to, Some(data))
    }
}
