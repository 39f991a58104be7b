//! A double of NVIDIA's driver library for tests on hosts without a GPU: what `agent/src/gpu/driver.rs` looks up, with
//! host memory in place of device memory and the kernels' work done here. Never part of the product.
//!
//! Put beside an agent as `libcuda.so.1` and named by `LD_LIBRARY_PATH`. Its memory can be registered with a device by
//! its address, as GPU memory can with nvidia-peermem. The environment makes it another GPU or a bad one:
//! `CUDA_DOUBLE_GPUS` (2), `CUDA_DOUBLE_VERSION` (13000), `CUDA_DOUBLE_FREE` (free bytes, 1 GiB), `CUDA_DOUBLE_MANAGED`
//! (1: memory says that it is managed), `CUDA_DOUBLE_CAPABILITY` (90: compute capability 9.0).
#![allow(non_snake_case, reason = "the names are CUDA's, and so is their meaning")]
#![allow(unused_unsafe, reason = "some of these functions do nothing")]
#![allow(clippy::missing_safety_doc, reason = "the contracts are CUDA's")]

use std::{
    alloc::{alloc_zeroed, dealloc},
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    os::fd::IntoRawFd,
    slice,
};

use gpu::{
    GRANULE, Handle, INVALID_VALUE, MEMORY, NOT_FOUND, NOT_SUPPORTED, OUT_OF_MEMORY, SUCCESS, Status, answer, layout,
    setting, text,
};

#[path = "doubles/gpu.rs"]
#[macro_use]
mod gpu;

/// What the settings' names begin with.
const PREFIX: &str = "CUDA_DOUBLE";
/// What CUDA answers where it sees no GPU.
const NO_GPUS: Status = SUCCESS;
/// The type of `CU_POINTER_ATTRIBUTE_IS_MANAGED`.
type Managed = c_int;

/// Elements of a table of the values of collectives.
const NUMBERS: usize = 128;

const KERNELS: [&CStr; 6] =
    [c"write_pattern", c"check_pattern", c"write_values", c"check_values", c"write_outer", c"check_outer"];

fn error_name(status: Status) -> &'static CStr {
    match status {
        INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        NOT_SUPPORTED => c"CUDA_ERROR_NOT_SUPPORTED",
        _ => c"CUDA_ERROR_UNKNOWN",
    }
}

driver_double! {
    init: cuInit, count: cuDeviceGetCount, get: cuDeviceGet, name: cuDeviceGetName, pci: cuDeviceGetPCIBusId,
    retain: cuDevicePrimaryCtxRetain, release: cuDevicePrimaryCtxRelease_v2, current: cuCtxSetCurrent,
    memory_info: cuMemGetInfo_v2, alloc: cuMemAlloc_v2, free: cuMemFree_v2,
    register: cuMemHostRegister_v2, unregister: cuMemHostUnregister,
    to_device: cuMemcpyHtoDAsync_v2, to_host: cuMemcpyDtoHAsync_v2, on_device: cuMemcpyDtoDAsync_v2, set_bytes: cuMemsetD8Async,
    pointer_attribute: cuPointerGetAttribute,
    stream_create: cuStreamCreate, stream_destroy: cuStreamDestroy_v2, stream_query: cuStreamQuery,
    stream_synchronize: cuStreamSynchronize,
    stream_wait_event: cuStreamWaitEvent, launch_host: cuLaunchHostFunc,
    event_create: cuEventCreate, event_destroy: cuEventDestroy_v2, event_record: cuEventRecord,
    event_synchronize: cuEventSynchronize, event_elapsed: cuEventElapsedTime,
    error_name: cuGetErrorName, error_words: cuGetErrorString,
}

functions! {
    cuDriverGetVersion(to: *mut c_int) { answer(to, setting("VERSION", 13_000) as c_int) }
    cuDeviceGetAttribute(to: *mut c_int, attribute: c_int, _device: c_int) {
        // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED: it exports them; whether anybody takes them is another matter.
        // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
        let capability = setting("CAPABILITY", 90) as c_int;
        answer(to, match attribute {
            75 => capability / 10,
            76 => capability % 10,
            _ => c_int::from(attribute == 124),
        })
    }
    cuMemGetHandleForAddressRange(to: *mut c_void, address: u64, bytes: usize, _kind: c_int, _flags: u64) {
        // cuda.h: address and size are aligned to the host's page size.
        if !address.is_multiple_of(GRANULE as u64) || !bytes.is_multiple_of(GRANULE) {
            return INVALID_VALUE;
        }
        match std::fs::File::open("/dev/null") {
            Ok(file) => answer(to.cast::<c_int>(), file.into_raw_fd()),
            Err(_) => NOT_SUPPORTED,
        }
    }
    cuModuleLoadDataEx(to: *mut Handle, source: *const c_void, _n: c_uint, _names: *mut c_int, _values: *mut Handle) {
        let source = CStr::from_ptr(source.cast()).to_bytes();
        let has = |name: &CStr| source.windows(name.count_bytes()).any(|window| window == name.to_bytes());
        if KERNELS.into_iter().all(has) { answer(to, std::ptr::without_provenance_mut(3)) } else { INVALID_VALUE }
    }
    cuModuleGetFunction(to: *mut Handle, _module: Handle, name: *const c_char) {
        match KERNELS.iter().position(|kernel| *kernel == CStr::from_ptr(name)) {
            Some(number) => answer(to, std::ptr::without_provenance_mut(number + 1)),
            None => NOT_FOUND,
        }
    }
    cuLaunchKernel(
        function: Handle, _gx: c_uint, _gy: c_uint, _gz: c_uint, _bx: c_uint, _by: c_uint, _bz: c_uint,
        _shared: c_uint, stream: Handle, arguments: *mut *mut c_void, _extra: *mut *mut c_void
    ) {
        gpu::drain(stream);
        let argument = |i: usize| (*arguments.add(i)).cast::<u64>().read_unaligned();
        let (at, length) = (argument(0) as *mut u8, argument(1) as usize);
        match function.addr() {
            1 => write_pattern(slice::from_raw_parts_mut(at, length), [argument(2), argument(3), argument(4)]),
            2 => {
                let tally = slice::from_raw_parts_mut(argument(5) as *mut u64, 2);
                check_pattern(slice::from_raw_parts(at, length), [argument(2), argument(3), argument(4)], tally);
            }
            5 | 6 => {
                let word = |i: usize| (*arguments.add(i)).cast::<u32>().read_unaligned();
                let (columns, shift) = (word(5) as usize, word(6));
                let numbers = |i: usize| slice::from_raw_parts(argument(i) as *const [i32; 2], columns);
                let outer = Outer { rows: numbers(2), columns: numbers(3) };
                let table = slice::from_raw_parts(argument(4) as *const [u8; 4], 512);
                let elements = slice::from_raw_parts_mut(at, length << shift).chunks_exact_mut(1 << shift);
                match function.addr() {
                    5 => elements.enumerate().for_each(|(i, to)| to.copy_from_slice(&table[outer.number(i)][..to.len()])),
                    _ => {
                        let tally = slice::from_raw_parts_mut(argument(7) as *mut u64, 2);
                        for (i, _) in elements.enumerate().filter(|(i, got)| **got != table[outer.number(*i)][..got.len()]) {
                            tally[0] += 1;
                            tally[1] = tally[1].min((i << shift) as u64);
                        }
                    }
                }
            }
            _ => {
                let word = |i: usize| (*arguments.add(i)).cast::<u32>().read_unaligned();
                let shift = word(5);
                let made = Made { key: argument(4), offset: argument(3), words: [6, 7, 8, 9, 10, 11].map(word) };
                let elements = slice::from_raw_parts_mut(at, length << shift).chunks_exact_mut(1 << shift);
                let table = slice::from_raw_parts(argument(2) as *const [u8; 8], NUMBERS);
                match function.addr() {
                    3 => write_values(elements, &made, table),
                    _ => check_values(elements, &made, table, slice::from_raw_parts_mut(argument(12) as *mut u64, 2)),
                }
            }
        }
        SUCCESS
    }
}

/// Word `i` of the pattern: SplitMix64, written anew from kernels.ptx.
fn word(key: u64, i: u64) -> u64 {
    let mut word = key.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Byte `i` of the pattern with this key, what is laid over its words, and which of their bits are kept before.
fn byte([key, flip, mask]: [u64; 3], i: usize) -> u8 {
    ((word(key, i as u64 / 8) & mask) ^ flip).to_le_bytes()[i % 8]
}

fn write_pattern(bytes: &mut [u8], made: [u64; 3]) {
    for (i, place) in bytes.iter_mut().enumerate() {
        *place = byte(made, i);
    }
    // A cell whose lowest bit cannot be cleared.
    if let Some(stuck) = bytes.get_mut(setting("STUCK", u64::MAX) as usize) {
        *stuck |= 1;
    }
}

fn check_pattern(bytes: &[u8], made: [u64; 3], tally: &mut [u64]) {
    for (i, _) in bytes.iter().enumerate().filter(|(i, got)| **got != byte(made, *i)) {
        tally[0] += 1;
        tally[1] = tally[1].min(i as u64);
    }
}

/// What a kernel for matrices is told.
struct Outer<'a> {
    rows: &'a [[i32; 2]],
    columns: &'a [[i32; 2]],
}

impl Outer<'_> {
    /// The place in the table of what element `i` holds, written anew from `outer` of kernels.ptx.
    fn number(&self, i: usize) -> usize {
        let (row, column) = (self.rows[i / self.columns.len()], self.columns[i % self.columns.len()]);
        usize::try_from(row[0] * column[0] + row[1] * column[1] + 256).unwrap_or(usize::MAX)
    }
}

/// What a kernel for the values of collectives is told: ranks, cap, most, mode, first and many are its words.
struct Made {
    key: u64,
    offset: u64,
    words: [u32; 6],
}

impl Made {
    /// The number that element `i` holds: the reduction of what `many` ranks from `first` on give, written anew from
    /// `value` of kernels.ptx.
    fn number(&self, i: usize) -> usize {
        let [ranks, cap, most, mode, first, many] = self.words;
        let hash = word(self.key, self.offset + i as u64);
        let (low, high) = ((hash & 0x7fff_ffff) as u32, (hash >> 32) as u32);
        let one = |rank: u32| {
            let turn = low.wrapping_add(rank) % ranks;
            match mode {
                0 if turn < most => high.wrapping_add(rank * 7) % (cap + 1),
                0 => 0,
                1 => 1 + u32::from(turn < 6),
                _ => high.wrapping_add(rank * 37) & 127,
            }
        };
        let given = (first..first + many).map(one);
        let number = match mode {
            0 => given.sum(),
            1 => given.product(),
            2 => given.min().unwrap_or(0),
            _ => given.max().unwrap_or(0),
        };
        number as usize
    }
}

fn write_values(elements: slice::ChunksExactMut<'_, u8>, made: &Made, table: &[[u8; 8]]) {
    for (i, element) in elements.enumerate() {
        let width = element.len();
        element.copy_from_slice(&table[made.number(i)][..width]);
    }
}

fn check_values(elements: slice::ChunksExactMut<'_, u8>, made: &Made, table: &[[u8; 8]], tally: &mut [u64]) {
    for (i, element) in elements.enumerate() {
        let width = element.len();
        if element[..] != table[made.number(i)][..width] {
            tally[0] += 1;
            tally[1] = tally[1].min((i * width) as u64);
        }
    }
}
