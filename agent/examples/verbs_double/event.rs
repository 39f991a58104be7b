//! Asynchronous events: `ibv_get_async_event` on a context's `async_fd`, which is the end of a pipe.

use std::{
    ffi::c_int,
    fs,
    io::{self, Write},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
};

use parking_lot::Mutex;
use rdma_sys::*;

use crate::{
    counters,
    hostile::{BEHIND, event},
    queue_pair,
    settings::{Settings, settings},
};

/// As it lies in the pipe; `element` is the object's address, or the port's number.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Raised {
    pub element: u64,
    pub kind: c_int,
    unused: c_int,
}

/// `struct ibv_async_event`, whose event type is no Rust enum here: it may be newer than the headers.
#[repr(C)]
pub struct AsyncEvent {
    element: u64,
    kind: c_int,
}

/// A pipe: what is read, what is written.
pub fn pipe() -> io::Result<(c_int, c_int)> {
    let mut ends = [0; 2];
    // SAFETY: there is room for both descriptors.
    match unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } {
        0 => Ok((ends[0], ends[1])),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Writes a value into a pipe. It is far shorter than a pipe takes at once; a full pipe loses it.
pub fn write<T: Copy>(to: c_int, value: &T) {
    // SAFETY: the value is readable for its size.
    unsafe { libc::write(to, std::ptr::from_ref(value).cast(), size_of::<T>()) };
}

/// Reads a value from a pipe, as blocking as the pipe is; `None` leaves errno.
///
/// # Safety
/// Whatever was written there was a `T`.
pub unsafe fn read<T: Copy>(from: c_int) -> Option<T> {
    let mut value = std::mem::MaybeUninit::<T>::uninit();
    // SAFETY: there is room for a value.
    let taken = unsafe { libc::read(from, value.as_mut_ptr().cast(), size_of::<T>()) };
    // SAFETY: values are written whole, and the caller vouches for their type.
    (usize::try_from(taken) == Ok(size_of::<T>())).then(|| unsafe { value.assume_init() })
}

/// The pipes of all open contexts, written end.
static CONTEXTS: Mutex<Vec<c_int>> = Mutex::new(Vec::new());

/// Lets a context hear of events.
pub fn listen(end: c_int) {
    CONTEXTS.lock().push(end);
}

/// A context closes.
pub fn forget(end: c_int) {
    CONTEXTS.lock().retain(|one| *one != end);
}

/// Raises an event at every open context.
pub fn raise(kind: c_int, element: u64) {
    for end in CONTEXTS.lock().iter() {
        write(*end, &Raised { element, kind, unused: 0 });
    }
}

/// When the first request was posted.
static BEGAN: OnceLock<Instant> = OnceLock::new();

/// Whether the port has gone down.
static DOWN: AtomicBool = AtomicBool::new(false);

/// Notes that a request was posted: hostile clocks run from the first on.
pub fn began() {
    if BEGAN.get().is_some() {
        return;
    }
    let Some(Settings { hostile, .. }) = settings() else { return };
    if BEGAN.set(Instant::now()).is_err() {
        return;
    }
    let asked = hostile.event.map(|event| (event.kind, event.after));
    let down = hostile.port_down_after.map(|after| (event::PORT_ERR, after));
    for (kind, after) in asked.into_iter().chain(down) {
        thread::spawn(move || {
            thread::sleep(after);
            if kind == event::QP_FATAL && hostile.late_events {
                let pairs = queue_pair::all();
                pairs.iter().for_each(|pair| pair.fail());
                thread::sleep(BEHIND);
                pairs.iter().for_each(|pair| pair.raise(kind));
            } else if kind == event::QP_FATAL {
                queue_pair::all().iter().for_each(|pair| pair.fatal());
            } else {
                raise(kind, 1);
            }
            // Told first: however busy the machine is, nothing fails for it before.
            if kind == event::PORT_ERR && hostile.port_down_after.is_some() {
                DOWN.store(true, Ordering::Release);
                counters::port_went_down();
            }
        });
    }
}

/// Whether the port has gone down.
pub fn port_down() -> bool {
    DOWN.load(Ordering::Acquire)
}

/// Whether what an event of this kind tells of has changed.
pub fn changed(kind: c_int) -> bool {
    let asked =
        settings().and_then(|settings| settings.hostile.event).filter(|event| event.changes && event.kind == kind);
    asked.zip(BEGAN.get()).is_some_and(|(event, began)| began.elapsed() >= event.after)
}

/// Writes down what happened, a line in `WHAT.HOST` of the fabric's folder: the number of an event that somebody took, the device of a
/// context that somebody opened. What passes over an event has shown nothing if it never saw one.
pub fn note(what: &str, number: c_int) {
    let Some(Settings { directory, host, .. }) = settings() else { return };
    let file = fs::OpenOptions::new().create(true).append(true).open(directory.join(format!("{what}.{host}")));
    // A fabric whose folder is gone has nobody who reads it.
    let _ = file.and_then(|mut file| writeln!(file, "{number}"));
}

/// Writes down that a program used the library wrongly: a line in `misuses.HOST` of the fabric's folder.
pub fn misused(how: &str) {
    let Some(Settings { directory, host, .. }) = settings() else { return };
    let file = fs::OpenOptions::new().create(true).append(true).open(directory.join(format!("misuses.{host}")));
    let _ = file.and_then(|mut file| writeln!(file, "{how}"));
}

exported! {
    /// The next event; blocks unless the descriptor does not.
    fn ibv_get_async_event(context: *mut ibv_context, into: *mut AsyncEvent) -> c_int {
        match read::<Raised>((*context).async_fd) {
            Some(raised) => {
                note("events", raised.kind);
                (*into).element = raised.element;
                (*into).kind = raised.kind;
                0
            }
            None => -1,
        }
    }
    fn ibv_ack_async_event(_event: *mut AsyncEvent) -> () {}
}
