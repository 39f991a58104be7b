//! What the doubles of CUDA's driver and of HIP share: device memory that is host memory, copies, streams without work, events with a
//! clock. [`driver_double!`] makes it functions under the names of either.

use std::{
    alloc::Layout,
    collections::BTreeMap,
    ffi::{c_char, c_int, c_void},
};

use parking_lot::Mutex;

pub type Status = c_int;
pub type Handle = *mut c_void;

pub const SUCCESS: Status = 0;
pub const INVALID_VALUE: Status = 1;
pub const OUT_OF_MEMORY: Status = 2;
pub const NOT_FOUND: Status = 500;
pub const NOT_SUPPORTED: Status = 801;

/// Alignment of what is exported as a dma-buf, where the host's pages have 64 KiB.
pub const GRANULE: usize = 65_536;
/// Alignment of device memory (CUDA C Programming Guide, 5.3.2): not that of dma-bufs.
pub const ALIGNED: usize = 256;

/// Lengths of what is allocated, by address.
pub static MEMORY: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

/// What the environment makes of the double: `CUDA_DOUBLE_GPUS`, `HIP_DOUBLE_GPUS`.
pub fn setting(name: &str, otherwise: u64) -> u64 {
    let name = format!("{}_{name}", crate::PREFIX);
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

pub fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align((bytes + ALIGNED).next_multiple_of(GRANULE), GRANULE).ok()
}

/// Writes an answer where the caller wants it.
pub unsafe fn answer<T>(to: *mut T, value: T) -> Status {
    // SAFETY: the caller of the driver's function vouches for the place.
    unsafe { to.write(value) };
    SUCCESS
}

pub unsafe fn text(to: *mut c_char, length: c_int, text: &str) -> Status {
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

macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*) $body:block)+) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> Status {
                // SAFETY: callers keep to the header of the library, as they must with the library itself.
                unsafe { $body }
            }
        )+
    };
}

macro_rules! driver_double {
    (
        init: $init:ident, count: $count:ident, get: $get:ident, name: $name:ident, pci: $pci:ident,
        retain: $retain:ident, release: $release:ident, current: $current:ident,
        memory_info: $memory_info:ident, alloc: $alloc:ident, free: $free:ident,
        register: $register:ident, unregister: $unregister:ident,
        to_device: $to_device:ident, to_host: $to_host:ident, on_device: $on_device:ident, set_bytes: $set_bytes:ident,
        pointer_attribute: $pointer_attribute:ident,
        stream_create: $stream_create:ident, stream_destroy: $stream_destroy:ident, stream_query: $stream_query:ident,
        stream_synchronize: $stream_synchronize:ident,
        event_create: $event_create:ident, event_destroy: $event_destroy:ident, event_record: $event_record:ident,
        event_synchronize: $event_synchronize:ident, event_elapsed: $event_elapsed:ident,
        error_name: $error_name:ident, error_words: $error_words:ident,
    ) => {
        functions! {
            $init(_flags: c_uint) { SUCCESS }
            $count(to: *mut c_int) {
                let count = setting("GPUS", 2) as c_int;
                answer(to, count);
                if count == 0 { crate::NO_GPUS } else { SUCCESS }
            }
            $get(to: *mut c_int, ordinal: c_int) { answer(to, ordinal) }
            $name(to: *mut c_char, length: c_int, _device: c_int) { text(to, length, "double of a GPU") }
            $pci(to: *mut c_char, length: c_int, device: c_int) {
                text(to, length, &format!("0000:{:02x}:00.0", 0xd0 + device))
            }
            $retain(to: *mut Handle, _device: c_int) { answer(to, std::ptr::without_provenance_mut(1)) }
            $release(_device: c_int) { SUCCESS }
            $current(_context: Handle) { SUCCESS }
            $memory_info(free: *mut usize, total: *mut usize) {
                let room = setting("FREE", 1 << 30) as usize;
                let taken: usize = MEMORY.lock().values().sum();
                answer(free, room.saturating_sub(taken));
                answer(total, room)
            }
            $alloc(to: *mut u64, bytes: usize) {
                let Some(layout) = layout(bytes) else { return OUT_OF_MEMORY };
                let block = alloc_zeroed(layout) as u64;
                if block == 0 {
                    return OUT_OF_MEMORY;
                }
                let address = block + $crate::gpu::ALIGNED as u64;
                MEMORY.lock().insert(address, bytes);
                answer(to, address)
            }
            $free(address: u64) {
                let freed = MEMORY.lock().remove(&address);
                let Some(layout) = freed.and_then(layout) else { return INVALID_VALUE };
                dealloc((address - $crate::gpu::ALIGNED as u64) as *mut u8, layout);
                SUCCESS
            }
            $register(_start: *mut c_void, _bytes: usize, _flags: c_uint) { SUCCESS }
            $unregister(_start: *mut c_void) { SUCCESS }
            $to_device(to: u64, from: *const c_void, bytes: usize, _stream: Handle) {
                (to as *mut u8).copy_from(from.cast(), bytes);
                SUCCESS
            }
            $to_host(to: *mut c_void, from: u64, bytes: usize, _stream: Handle) {
                to.cast::<u8>().copy_from(from as *const u8, bytes);
                SUCCESS
            }
            $on_device(to: u64, from: u64, bytes: usize, _stream: Handle) {
                (to as *mut u8).copy_from(from as *const u8, bytes);
                SUCCESS
            }
            $set_bytes(to: u64, byte: u8, bytes: usize, _stream: Handle) {
                (to as *mut u8).write_bytes(byte, bytes);
                SUCCESS
            }
            $pointer_attribute(to: *mut c_void, attribute: c_int, _address: u64) {
                // CU_POINTER_ATTRIBUTE_IS_MANAGED, HIP_POINTER_ATTRIBUTE_IS_MANAGED.
                match attribute {
                    8 => answer(to.cast::<crate::Managed>(), setting("MANAGED", 0) as crate::Managed),
                    _ => NOT_SUPPORTED,
                }
            }
            $stream_create(to: *mut Handle, _flags: c_uint) { answer(to, std::ptr::without_provenance_mut(2)) }
            $stream_destroy(_stream: Handle) { SUCCESS }
            $stream_query(_stream: Handle) { SUCCESS }
            $stream_synchronize(_stream: Handle) { SUCCESS }
            $event_create(to: *mut Handle, _flags: c_uint) {
                answer(to, Box::into_raw(Box::new(Mutex::new(std::time::Instant::now()))).cast())
            }
            $event_destroy(event: Handle) {
                drop(Box::from_raw(event.cast::<Mutex<std::time::Instant>>()));
                SUCCESS
            }
            $event_record(event: Handle, _stream: Handle) {
                *(*event.cast::<Mutex<std::time::Instant>>()).lock() = std::time::Instant::now();
                SUCCESS
            }
            $event_synchronize(_event: Handle) { SUCCESS }
            $event_elapsed(to: *mut f32, from: Handle, until: Handle) {
                let when = |event: Handle| *(*event.cast::<Mutex<std::time::Instant>>()).lock();
                answer(to, (when(until) - when(from)).as_secs_f32() * 1e3)
            }
            $error_name(status: Status, to: *mut *const c_char) { answer(to, crate::error_name(status).as_ptr()) }
            $error_words(_status: Status, to: *mut *const c_char) { answer(to, c"said by a double".as_ptr()) }
        }
    };
}
