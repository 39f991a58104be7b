//! A double of NVIDIA's driver library for tests on hosts without a GPU: what `agent/src/gpu/driver.rs` looks up, with
//! host memory in place of device memory and the kernels' work done here. Never part of the product.
//!
//! Put beside an agent as `libcuda.so.1` and named by `LD_LIBRARY_PATH`. Its memory can be registered with a device by
//! its address, as GPU memory can with nvidia-peermem. The environment makes it another GPU or a bad one:
//! `CUDA_DOUBLE_GPUS` (2), `CUDA_DOUBLE_VERSION` (13000), `CUDA_DOUBLE_FREE` (free bytes, 1 GiB), `CUDA_DOUBLE_MANAGED`
//! (1: memory says that it is managed), `CUDA_DOUBLE_CAPABILITY` (90: compute capability 9.0).
#![allow(non_snake_case, missing_docs, reason = "the names are CUDA's, and so is their meaning")]
#![allow(unused_unsafe, reason = "some of these functions do nothing")]
#![allow(clippy::missing_safety_doc, reason = "the contracts are CUDA's")]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    collections::BTreeMap,
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    os::fd::IntoRawFd,
    slice,
};

use parking_lot::Mutex;

type Status = c_int;
type Handle = *mut c_void;

const SUCCESS: Status = 0;
const INVALID_VALUE: Status = 1;
const OUT_OF_MEMORY: Status = 2;
const NOT_FOUND: Status = 500;
const NOT_SUPPORTED: Status = 801;

/// Alignment of device memory: that of dma-bufs.
const GRANULE: usize = 65_536;

/// Elements of a table of the values of collectives.
const NUMBERS: usize = 128;

const KERNELS: [&CStr; 6] =
    [c"write_pattern", c"check_pattern", c"write_values", c"check_values", c"write_outer", c"check_outer"];

/// Lengths of what is allocated, by address.
static MEMORY: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1).next_multiple_of(GRANULE), GRANULE).ok()
}

/// Writes an answer where the caller wants it.
unsafe fn answer<T>(to: *mut T, value: T) -> Status {
    // SAFETY: the caller of the driver's function vouches for the place.
    unsafe { to.write(value) };
    SUCCESS
}

unsafe fn text(to: *mut c_char, length: c_int, text: &str) -> Status {
    let length = usize::try_from(length).unwrap_or(0);
    if text.len() >= length {
        return INVALID_VALUE;
    }
    // SAFETY: the caller gives `length` bytes, which hold the text and its end.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        to.add(text.len()).write(0);
    }
    SUCCESS
}

macro_rules! driver {
    ($($name:ident($($arg:ident: $type:ty),*) $body:block)+) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> Status {
                // SAFETY: callers keep to cuda.h, as they must with the driver itself.
                unsafe { $body }
            }
        )+
    };
}

driver! {
    cuInit(_flags: c_uint) { SUCCESS }
    cuDriverGetVersion(to: *mut c_int) { answer(to, setting("CUDA_DOUBLE_VERSION", 13_000) as c_int) }
    cuDeviceGetCount(to: *mut c_int) { answer(to, setting("CUDA_DOUBLE_GPUS", 2) as c_int) }
    cuDeviceGet(to: *mut c_int, ordinal: c_int) { answer(to, ordinal) }
    cuDeviceGetName(to: *mut c_char, length: c_int, _device: c_int) { text(to, length, "double of a GPU") }
    cuDeviceGetPCIBusId(to: *mut c_char, length: c_int, device: c_int) {
        text(to, length, &format!("0000:{:02x}:00.0", 0xd0 + device))
    }
    cuDeviceGetAttribute(to: *mut c_int, attribute: c_int, _device: c_int) {
        // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED: it exports them; whether anybody takes them is another matter.
        // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
        let capability = setting("CUDA_DOUBLE_CAPABILITY", 90) as c_int;
        answer(to, match attribute {
            75 => capability / 10,
            76 => capability % 10,
            _ => c_int::from(attribute == 124),
        })
    }
    cuDevicePrimaryCtxRetain(to: *mut Handle, _device: c_int) { answer(to, std::ptr::without_provenance_mut(1)) }
    cuDevicePrimaryCtxRelease_v2(_device: c_int) { SUCCESS }
    cuCtxSetCurrent(_context: Handle) { SUCCESS }
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let room = setting("CUDA_DOUBLE_FREE", 1 << 30) as usize;
        let taken: usize = MEMORY.lock().values().sum();
        answer(free, room.saturating_sub(taken));
        answer(total, room)
    }
    cuMemAlloc_v2(to: *mut u64, bytes: usize) {
        let Some(layout) = layout(bytes) else { return OUT_OF_MEMORY };
        let address = alloc_zeroed(layout) as u64;
        if address == 0 {
            return OUT_OF_MEMORY;
        }
        MEMORY.lock().insert(address, bytes);
        answer(to, address)
    }
    cuMemFree_v2(address: u64) {
        let freed = MEMORY.lock().remove(&address);
        let Some(layout) = freed.and_then(layout) else { return INVALID_VALUE };
        dealloc(address as *mut u8, layout);
        SUCCESS
    }
    cuMemHostRegister_v2(_start: *mut c_void, _bytes: usize, _flags: c_uint) { SUCCESS }
    cuMemHostUnregister(_start: *mut c_void) { SUCCESS }
    cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, _stream: Handle) {
        (to as *mut u8).copy_from(from.cast(), bytes);
        SUCCESS
    }
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, _stream: Handle) {
        to.cast::<u8>().copy_from(from as *const u8, bytes);
        SUCCESS
    }
    cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, _stream: Handle) {
        (to as *mut u8).copy_from(from as *const u8, bytes);
        SUCCESS
    }
    cuMemsetD8Async(to: u64, byte: u8, bytes: usize, _stream: Handle) {
        (to as *mut u8).write_bytes(byte, bytes);
        SUCCESS
    }
    cuPointerGetAttribute(to: *mut c_void, attribute: c_int, _address: u64) {
        // CU_POINTER_ATTRIBUTE_IS_MANAGED.
        match attribute {
            8 => answer(to.cast::<c_int>(), setting("CUDA_DOUBLE_MANAGED", 0) as c_int),
            _ => NOT_SUPPORTED,
        }
    }
    cuMemGetHandleForAddressRange(to: *mut c_void, _address: u64, _bytes: usize, _kind: c_int, _flags: u64) {
        match std::fs::File::open("/dev/null") {
            Ok(file) => answer(to.cast::<c_int>(), file.into_raw_fd()),
            Err(_) => NOT_SUPPORTED,
        }
    }
    cuStreamCreate(to: *mut Handle, _flags: c_uint) { answer(to, std::ptr::without_provenance_mut(2)) }
    cuStreamDestroy_v2(_stream: Handle) { SUCCESS }
    cuStreamQuery(_stream: Handle) { SUCCESS }
    cuStreamSynchronize(_stream: Handle) { SUCCESS }
    cuEventCreate(to: *mut Handle, _flags: c_uint) {
        answer(to, Box::into_raw(Box::new(Mutex::new(std::time::Instant::now()))).cast())
    }
    cuEventDestroy_v2(event: Handle) {
        drop(Box::from_raw(event.cast::<Mutex<std::time::Instant>>()));
        SUCCESS
    }
    cuEventRecord(event: Handle, _stream: Handle) {
        *(*event.cast::<Mutex<std::time::Instant>>()).lock() = std::time::Instant::now();
        SUCCESS
    }
    cuEventSynchronize(_event: Handle) { SUCCESS }
    cuEventElapsedTime(to: *mut f32, from: Handle, until: Handle) {
        let when = |event: Handle| *(*event.cast::<Mutex<std::time::Instant>>()).lock();
        answer(to, (when(until) - when(from)).as_secs_f32() * 1e3)
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
        _shared: c_uint, _stream: Handle, arguments: *mut *mut c_void, _extra: *mut *mut c_void
    ) {
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
    cuGetErrorName(status: Status, to: *mut *const c_char) {
        let name = match status {
            INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
            OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
            NOT_SUPPORTED => c"CUDA_ERROR_NOT_SUPPORTED",
            _ => c"CUDA_ERROR_UNKNOWN",
        };
        answer(to, name.as_ptr())
    }
    cuGetErrorString(_status: Status, to: *mut *const c_char) { answer(to, c"said by a double".as_ptr()) }
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
    if let Some(stuck) = bytes.get_mut(setting("CUDA_DOUBLE_STUCK", u64::MAX) as usize) {
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
