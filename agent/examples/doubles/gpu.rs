//! What the doubles of CUDA's driver and of HIP share: device memory that is host memory, copies, streams, events with a clock. What is
//! queued on a stream by a function of the host runs on its thread; everything else waits for that and is done at once.
//! [`driver_double!`] makes it functions under the names of either.

use std::{
    alloc::Layout,
    collections::BTreeMap,
    ffi::{c_char, c_int, c_void},
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    time::Instant,
};

use parking_lot::{Condvar, Mutex};

pub type Status = c_int;
pub type Handle = *mut c_void;

pub const SUCCESS: Status = 0;
pub const INVALID_VALUE: Status = 1;
pub const OUT_OF_MEMORY: Status = 2;
pub const NOT_FOUND: Status = 500;
pub const NOT_READY: Status = 600;
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

type Work = Box<dyn FnOnce() + Send>;

/// Steps that were promised, and those that are done.
#[derive(Default)]
pub struct Steps(Mutex<(u64, u64)>, Condvar);

impl Steps {
    fn promise(&self) -> u64 {
        let mut steps = self.0.lock();
        steps.0 += 1;
        steps.0
    }

    fn done(&self, until: u64) {
        self.0.lock().1 = until;
        self.1.notify_all();
    }

    pub fn are_done(&self) -> bool {
        let steps = self.0.lock();
        steps.0 == steps.1
    }

    pub fn wait(&self) {
        let mut steps = self.0.lock();
        let until = steps.0;
        self.1.wait_while(&mut steps, |steps| steps.1 < until);
    }
}

/// Ends, with its thread, when it is dropped.
pub struct Stream {
    queue: Sender<Work>,
    steps: Arc<Steps>,
}

impl Stream {
    pub fn new() -> Self {
        let (queue, work) = channel::<Work>();
        std::thread::spawn(move || work.into_iter().for_each(|work| work()));
        Self { queue, steps: Arc::default() }
    }

    /// `None` of no stream.
    pub unsafe fn of<'s>(handle: Handle) -> Option<&'s Self> {
        // SAFETY: the caller has it from `new`, in a box, and has not destroyed it.
        unsafe { handle.cast::<Self>().as_ref() }
    }

    pub fn queue(&self, work: impl FnOnce() + Send + 'static) {
        let (steps, step) = (Arc::clone(&self.steps), self.steps.promise());
        let _ = self.queue.send(Box::new(move || {
            work();
            steps.done(step);
        }));
    }

    pub fn is_idle(&self) -> bool {
        self.steps.are_done()
    }
}

/// Waits for what is queued on a stream.
pub unsafe fn drain(stream: Handle) -> Status {
    // SAFETY: the caller of the driver's function vouches for the stream.
    if let Some(stream) = unsafe { Stream::of(stream) } {
        stream.steps.wait();
    }
    SUCCESS
}

#[derive(Default)]
pub struct Event {
    when: Mutex<Option<Instant>>,
    steps: Steps,
}

impl Event {
    /// As often as it was recorded so far.
    pub unsafe fn of(handle: Handle) -> Arc<Self> {
        // SAFETY: the caller has it from `cuEventCreate` or HIP's, and has not destroyed it.
        unsafe { Arc::clone(&*handle.cast::<Arc<Self>>()) }
    }

    pub fn record(self: Arc<Self>, stream: &Stream) {
        let step = self.steps.promise();
        stream.queue(move || {
            *self.when.lock() = Some(Instant::now());
            self.steps.done(step);
        });
    }

    pub fn wait(&self) {
        self.steps.wait();
    }

    pub fn milliseconds_until(&self, later: &Self) -> Option<f32> {
        // One after the other: both may be the same event.
        let from = (*self.when.lock())?;
        let until = (*later.when.lock())?;
        Some(until.saturating_duration_since(from).as_secs_f32() * 1e3)
    }
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
        stream_wait_event: $stream_wait_event:ident, launch_host: $launch_host:ident,
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
            $to_device(to: u64, from: *const c_void, bytes: usize, stream: Handle) {
                $crate::gpu::drain(stream);
                (to as *mut u8).copy_from(from.cast(), bytes);
                SUCCESS
            }
            $to_host(to: *mut c_void, from: u64, bytes: usize, stream: Handle) {
                $crate::gpu::drain(stream);
                to.cast::<u8>().copy_from(from as *const u8, bytes);
                SUCCESS
            }
            $on_device(to: u64, from: u64, bytes: usize, stream: Handle) {
                $crate::gpu::drain(stream);
                (to as *mut u8).copy_from(from as *const u8, bytes);
                SUCCESS
            }
            $set_bytes(to: u64, byte: u8, bytes: usize, stream: Handle) {
                $crate::gpu::drain(stream);
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
            $stream_create(to: *mut Handle, _flags: c_uint) {
                answer(to, Box::into_raw(Box::new($crate::gpu::Stream::new())).cast())
            }
            $stream_destroy(stream: Handle) {
                drop(Box::from_raw(stream.cast::<$crate::gpu::Stream>()));
                SUCCESS
            }
            $stream_query(stream: Handle) {
                match $crate::gpu::Stream::of(stream) {
                    Some(stream) if !stream.is_idle() => $crate::gpu::NOT_READY,
                    _ => SUCCESS,
                }
            }
            $stream_synchronize(stream: Handle) { $crate::gpu::drain(stream) }
            $stream_wait_event(stream: Handle, event: Handle, _flags: c_uint) {
                let (Some(stream), event) = ($crate::gpu::Stream::of(stream), $crate::gpu::Event::of(event)) else {
                    return INVALID_VALUE;
                };
                stream.queue(move || event.wait());
                SUCCESS
            }
            $launch_host(stream: Handle, work: unsafe extern "C" fn(Handle), data: Handle) {
                let (Some(stream), data) = ($crate::gpu::Stream::of(stream), data as usize) else { return INVALID_VALUE };
                // SAFETY: the caller vouches for both until they have been used.
                stream.queue(move || unsafe { work(data as Handle) });
                SUCCESS
            }
            $event_create(to: *mut Handle, _flags: c_uint) {
                answer(to, Box::into_raw(Box::new(std::sync::Arc::<$crate::gpu::Event>::default())).cast())
            }
            $event_destroy(event: Handle) {
                drop(Box::from_raw(event.cast::<std::sync::Arc<$crate::gpu::Event>>()));
                SUCCESS
            }
            $event_record(event: Handle, stream: Handle) {
                let Some(stream) = $crate::gpu::Stream::of(stream) else { return INVALID_VALUE };
                $crate::gpu::Event::of(event).record(stream);
                SUCCESS
            }
            $event_synchronize(event: Handle) {
                $crate::gpu::Event::of(event).wait();
                SUCCESS
            }
            $event_elapsed(to: *mut f32, from: Handle, until: Handle) {
                let time = $crate::gpu::Event::of(from).milliseconds_until(&$crate::gpu::Event::of(until));
                time.map_or($crate::gpu::NOT_READY, |time| answer(to, time))
            }
            $error_name(status: Status, to: *mut *const c_char) { answer(to, crate::error_name(status).as_ptr()) }
            $error_words(_status: Status, to: *mut *const c_char) { answer(to, c"said by a double".as_ptr()) }
        }
    };
}
