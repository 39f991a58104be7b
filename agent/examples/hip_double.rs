//! A double of AMD's HIP and HIPRTC for tests on hosts without a GPU: what `agent/src/gpu/driver.rs` and `agent/src/gpu/hiprtc.rs` look
//! up, with host memory in place of device memory. The kernels are those of the product: HIPRTC's double has the C compiler of the host
//! compile their source, and threads of a grid run one after the other. Never part of the product.
//!
//! Put beside an agent as `libamdhip64.so.6` and `libhiprtc.so.6` and named by `LD_LIBRARY_PATH`. The environment makes it another GPU or a
//! bad one: `HIP_DOUBLE_GPUS` (2), `HIP_DOUBLE_FREE` (free bytes, 1 GiB), `HIP_DOUBLE_MANAGED` (1: memory says that it is managed),
//! `HIP_DOUBLE_GENERATION` (94: gfx94x), `HIP_DOUBLE_LINK` (4: xGMI; 2: PCIe), `HIP_DOUBLE_STUCK` (a byte whose lowest bit is always set),
//! `HIPRTC_DOUBLE` (`refuses`: it compiles nothing).
#![allow(non_snake_case, reason = "the names are HIP's, and so is their meaning")]
#![allow(unused_unsafe, reason = "some of these functions do nothing")]
#![allow(clippy::missing_safety_doc, reason = "the contracts are HIP's")]

use std::{
    alloc::{alloc_zeroed, dealloc},
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
};

use gpu::{
    Handle, INVALID_VALUE, MEMORY, NOT_FOUND, NOT_SUPPORTED, OUT_OF_MEMORY, SUCCESS, Status, answer, layout, setting,
    text,
};
use parking_lot::Mutex;

#[path = "doubles/gpu.rs"]
#[macro_use]
mod gpu;

/// What the settings' names begin with.
const PREFIX: &str = "HIP_DOUBLE";
/// `hipErrorNoDevice`: HIP has no count of none.
const NO_GPUS: Status = 100;
/// The type of `HIP_POINTER_ATTRIBUTE_IS_MANAGED`.
type Managed = u8;

/// `hipErrorPeerAccessAlreadyEnabled`.
const ALREADY: Status = 704;
/// `HIPRTC_ERROR_COMPILATION`.
const COMPILATION: Status = 6;

fn error_name(status: Status) -> &'static CStr {
    match status {
        INVALID_VALUE => c"hipErrorInvalidValue",
        OUT_OF_MEMORY => c"hipErrorOutOfMemory",
        NO_GPUS => c"hipErrorNoDevice",
        NOT_SUPPORTED => c"hipErrorNotSupported",
        _ => c"hipErrorUnknown",
    }
}

driver_double! {
    init: hipInit, count: hipGetDeviceCount, get: hipDeviceGet, name: hipDeviceGetName, pci: hipDeviceGetPCIBusId,
    retain: hipDevicePrimaryCtxRetain, release: hipDevicePrimaryCtxRelease, current: hipCtxSetCurrent,
    memory_info: hipMemGetInfo, alloc: hipMalloc, free: hipFree,
    register: hipHostRegister, unregister: hipHostUnregister,
    to_device: hipMemcpyHtoDAsync, to_host: hipMemcpyDtoHAsync, on_device: hipMemcpyDtoDAsync, set_bytes: hipMemsetD8Async,
    pointer_attribute: hipPointerGetAttribute,
    stream_create: hipStreamCreateWithFlags, stream_destroy: hipStreamDestroy, stream_query: hipStreamQuery,
    stream_synchronize: hipStreamSynchronize,
    stream_wait_event: hipStreamWaitEvent, launch_host: hipLaunchHostFunc,
    event_create: hipEventCreateWithFlags, event_destroy: hipEventDestroy, event_record: hipEventRecord,
    event_synchronize: hipEventSynchronize, event_elapsed: hipEventElapsedTime,
    error_name: hipDrvGetErrorName, error_words: hipDrvGetErrorString,
}

/// Ways between GPUs that were opened.
static OPENED: Mutex<Vec<c_int>> = Mutex::new(Vec::new());
/// The function that writes patterns, which a stuck cell spoils.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// A kernel with its loops over the grid: arguments, blocks, threads of a block.
type Kernel = unsafe extern "C" fn(*mut *mut c_void, c_uint, c_uint);

functions! {
    hipDeviceGetAttribute(to: *mut c_int, attribute: c_int, _device: c_int) {
        let generation = setting("GENERATION", 94) as c_int;
        match attribute {
            // hipDeviceAttributeComputeCapabilityMajor and Minor.
            23 => answer(to, generation / 10),
            61 => answer(to, generation % 10),
            _ => INVALID_VALUE,
        }
    }
    hipDeviceCanAccessPeer(to: *mut c_int, device: c_int, other: c_int) { answer(to, c_int::from(device != other)) }
    hipDeviceEnablePeerAccess(other: c_int, flags: c_uint) {
        let mut opened = OPENED.lock();
        match (flags, opened.contains(&other)) {
            (0, true) => ALREADY,
            (0, false) => {
                opened.push(other);
                SUCCESS
            }
            _ => INVALID_VALUE,
        }
    }
    hipExtGetLinkTypeAndHopCount(device: c_int, other: c_int, kind: *mut u32, hops: *mut u32) {
        if device == other {
            return INVALID_VALUE;
        }
        answer(hops, 1);
        answer(kind, setting("LINK", 4) as u32)
    }
    hipModuleLoadDataEx(to: *mut Handle, image: *const c_void, _n: c_uint, _names: *mut c_int, _values: *mut Handle) {
        // Its length stands before the code, as a code object tells its own.
        let length = image.cast::<u64>().read_unaligned() as usize;
        let code = std::slice::from_raw_parts(image.cast::<u8>().add(8), length);
        let path = place("so");
        let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return INVALID_VALUE };
        if fs::write(&path, code).is_err() {
            return INVALID_VALUE;
        }
        let module = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        // What is loaded stays.
        let _ = fs::remove_file(path);
        if module.is_null() { INVALID_VALUE } else { answer(to, module) }
    }
    hipModuleGetFunction(to: *mut Handle, module: Handle, name: *const c_char) {
        let kernel = CStr::from_ptr(name);
        let Ok(name) = CString::new(format!("run_{}", kernel.to_string_lossy())) else { return NOT_FOUND };
        let found = libc::dlsym(module, name.as_ptr());
        if kernel == c"write_pattern" {
            WRITES.store(found as u64, Ordering::Relaxed);
        }
        if found.is_null() { NOT_FOUND } else { answer(to, found) }
    }
    hipModuleLaunchKernel(
        function: Handle, blocks: c_uint, _gy: c_uint, _gz: c_uint, threads: c_uint, _by: c_uint, _bz: c_uint,
        _shared: c_uint, stream: Handle, arguments: *mut *mut c_void, _extra: *mut *mut c_void
    ) {
        gpu::drain(stream);
        let run = std::mem::transmute::<Handle, Kernel>(function);
        run(arguments, blocks, threads);
        let stuck = setting("STUCK", u64::MAX);
        if function as u64 == WRITES.load(Ordering::Relaxed) {
            let argument = |i: usize| (*arguments.add(i)).cast::<u64>().read_unaligned();
            if stuck < argument(1) {
                *((argument(0) + stuck) as *mut u8) |= 1;
            }
        }
        SUCCESS
    }
    hiprtcCreateProgram(
        to: *mut Handle, source: *const c_char, _name: *const c_char, _headers: c_int, _texts: *mut Handle, _names: *mut Handle
    ) {
        let source = CStr::from_ptr(source).to_owned();
        answer(to, Box::into_raw(Box::new(Program { source, code: Vec::new(), log: Vec::new() })).cast())
    }
    hiprtcCompileProgram(program: Handle, options: c_int, _texts: *mut Handle) {
        let program = &mut *program.cast::<Program>();
        match compiled(&program.source.to_string_lossy()) {
            _ if options != 0 || std::env::var_os("HIPRTC_DOUBLE").is_some() => {
                program.log = b"kernels.hip:1: refused by a double".to_vec();
                COMPILATION
            }
            Ok(code) => {
                program.code = [&(code.len() as u64).to_le_bytes()[..], &code].concat();
                SUCCESS
            }
            Err(why) => {
                program.log = why.to_string().into_bytes();
                COMPILATION
            }
        }
    }
    hiprtcDestroyProgram(program: *mut Handle) {
        drop(Box::from_raw((*program).cast::<Program>()));
        answer(program, std::ptr::null_mut())
    }
    hiprtcGetProgramLogSize(program: Handle, to: *mut usize) { answer(to, (*program.cast::<Program>()).log.len() + 1) }
    hiprtcGetProgramLog(program: Handle, to: *mut c_char) {
        let log = &(*program.cast::<Program>()).log;
        to.cast::<u8>().copy_from_nonoverlapping(log.as_ptr(), log.len());
        answer(to.add(log.len()), 0)
    }
    hiprtcGetCodeSize(program: Handle, to: *mut usize) { answer(to, (*program.cast::<Program>()).code.len()) }
    hiprtcGetCode(program: Handle, to: *mut c_char) {
        let code = &(*program.cast::<Program>()).code;
        to.cast::<u8>().copy_from_nonoverlapping(code.as_ptr(), code.len());
        SUCCESS
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn hiprtcGetErrorString(_status: Status) -> *const c_char {
    c"HIPRTC_ERROR_COMPILATION".as_ptr()
}

/// A source, and what was made of it.
struct Program {
    source: CString,
    code: Vec<u8>,
    log: Vec<u8>,
}

/// A file that nobody else has.
fn place(kind: &str) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("railgauge-hip-double-{}-{number}.{kind}", std::process::id()))
}

/// What HIP's headers declare.
const BEFORE: &str = "
#define __global__
#define __device__
typedef struct { unsigned x, y, z; } index;
static __thread index threadIdx, blockIdx, blockDim, gridDim;
static void atomicAdd(unsigned long long *at, unsigned long long one) { *at += one; }
static void atomicMin(unsigned long long *at, unsigned long long one) { if (one < *at) *at = one; }
";

/// The grid: one thread after the other.
const BEHIND: &str = "
#define RUN(kernel, ...) \\
    void run_##kernel(void **a, unsigned blocks, unsigned threads) { \\
        gridDim.x = blocks; blockDim.x = threads; \\
        for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) \\
            for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) kernel(__VA_ARGS__); \\
    }
#define L(n) *(b64 *)a[n]
#define W(n) *(b32 *)a[n]
#define P(n) *(void **)a[n]
RUN(write_pattern, P(0), L(1), L(2), L(3), L(4))
RUN(check_pattern, P(0), L(1), L(2), L(3), L(4), P(5))
RUN(write_values, P(0), L(1), P(2), L(3), L(4), W(5), W(6), W(7), W(8), W(9), W(10), W(11))
RUN(check_values, P(0), L(1), P(2), L(3), L(4), W(5), W(6), W(7), W(8), W(9), W(10), W(11), P(12))
RUN(write_outer, P(0), L(1), P(2), P(3), P(4), W(5), W(6))
RUN(check_outer, P(0), L(1), P(2), P(3), P(4), W(5), W(6), P(7))
";

/// The source as a library of this host.
fn compiled(source: &str) -> io::Result<Vec<u8>> {
    let (from, to) = (place("c"), place("so"));
    fs::write(&from, [BEFORE, source, BEHIND].concat())?;
    let arguments = ["-std=gnu11", "-O2", "-fno-strict-aliasing", "-Wall", "-Werror", "-shared", "-fPIC", "-o"];
    let said = Command::new("cc").args(arguments).arg(&to).arg(&from).output();
    let code = fs::read(&to);
    let _ = (fs::remove_file(from), fs::remove_file(to));
    let said = said?;
    if said.status.success() { code } else { Err(io::Error::other(String::from_utf8_lossy(&said.stderr).into_owned())) }
}
