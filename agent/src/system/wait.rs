//! Sleeps on descriptors: poll(2) and a doorbell (eventfd) that other threads ring.
//!
//! Also interrupts one thread's system calls, by a timer (timer_create, timer_settime) or from another thread (tgkill). A thread that
//! blocks in a call without a timeout, such as reading the next event of a completion channel, then returns with `EINTR` now and then and
//! can check its flags. If the signal comes just before the call, the next one ends it, so races are harmless.

use std::{
    fs::File,
    io::{self, Read, Write},
    marker::PhantomData,
    mem,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd},
    ptr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;

pub(crate) const READABLE: i16 = libc::POLLIN;
pub(crate) const WRITABLE: i16 = libc::POLLOUT;
pub(crate) const HANG_UP: i16 = libc::POLLRDHUP;
/// The other side is gone: reported even if nothing was asked for.
pub(crate) const GONE: i16 = libc::POLLHUP | libc::POLLERR | libc::POLLRDHUP | libc::POLLNVAL;

/// Waits until one of `on` has one of its events, or until `limit` (`None`: no limit). Returns the present events in the same order; all
/// zero after the limit or a signal.
pub(crate) fn wait<const N: usize>(on: [(BorrowedFd<'_>, i16); N], limit: Option<Duration>) -> io::Result<[i16; N]> {
    let mut asked = on.map(|(fd, events)| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 });
    wait_all(&mut asked, limit)?;
    Ok(asked.map(|fd| fd.revents))
}

/// As [`wait`], for a number of descriptors known at run time only; does not return which one it was.
pub(crate) fn wait_any<'a>(on: impl Iterator<Item = (BorrowedFd<'a>, i16)>, limit: Option<Duration>) -> io::Result<()> {
    let mut asked: Vec<_> = on.map(|(fd, events)| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }).collect();
    wait_all(&mut asked, limit)
}

fn wait_all(asked: &mut [libc::pollfd], limit: Option<Duration>) -> io::Result<()> {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(limit.subsec_nanos()),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the pointers and the length describe `asked` and `limit`, which outlive the call.
    let rc = unsafe { libc::ppoll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, limit, std::ptr::null()) };
    match io::Error::last_os_error() {
        error if rc < 0 && error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Wakes a thread that sleeps in [`wait`]. Rung once or many times, it stays readable until it is [quieted](Doorbell::quiet).
#[derive(Debug)]
pub struct Doorbell {
    event: File,
    sleepers: Mutex<Vec<Thread>>,
}

/// For as long as it lives, the doorbell also interrupts the system calls of the thread that made it.
#[derive(Debug)]
pub struct Interrupted {
    bell: Arc<Doorbell>,
    thread: Thread,
}

impl Doorbell {
    pub fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes no pointers; the descriptor it returns is ours alone.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` is open and has no other owner.
        let event = unsafe { File::from_raw_fd(fd) };
        Ok(Self { event, sleepers: Mutex::default() })
    }

    pub fn ring(&self) {
        // Fails only if the counter is full, and then it is readable anyway.
        let _ = (&self.event).write(&1u64.to_ne_bytes());
        self.sleepers.lock().iter().for_each(|thread| thread.interrupt());
    }

    /// Interrupts the calling thread's system calls too. A ring right before such a call does not end it: also use an [alarm](Alarm).
    pub fn interrupting(self: &Arc<Self>) -> io::Result<Interrupted> {
        let thread = Thread::this()?;
        self.sleepers.lock().push(thread);
        Ok(Interrupted { bell: self.clone(), thread })
    }

    /// Check the announced flags only after this.
    pub fn quiet(&self) {
        let _ = (&self.event).read(&mut [0; 8]);
    }
}

impl std::os::fd::AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for Interrupted {
    fn drop(&mut self) {
        self.bell.sleepers.lock().retain(|thread| *thread != self.thread);
    }
}

/// Does nothing to a process that has no handler for it, so that a late one is harmless.
const SIGNAL: i32 = libc::SIGURG;

/// Interrupts the thread that made it, for as long as it lives. Stays on that thread.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: libc::timer_t,
    _of_one_thread: PhantomData<*const ()>,
}

extern "C" fn interrupted(_signal: i32) {}

/// Puts the handler in place, once per process; returns the errno of a refusal.
fn handled() -> Result<(), i32> {
    static HANDLED: OnceLock<Result<(), i32>> = OnceLock::new();
    *HANDLED.get_or_init(|| {
        // SAFETY: all zero is a valid value of this structure: no flags, so that calls are not begun again, and an empty
        // mask.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = interrupted as extern "C" fn(i32) as libc::sighandler_t;
        // SAFETY: the handler does nothing, which is safe at any moment.
        match unsafe { libc::sigaction(SIGNAL, &raw const action, ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        }
    })
}

/// The calling thread's number. glibc has a function for it only since 2.30, and the agent starts with 2.17.
fn number() -> libc::pid_t {
    // SAFETY: takes nothing and cannot fail (gettid(2)).
    let number = unsafe { libc::syscall(libc::SYS_gettid) };
    libc::pid_t::try_from(number).unwrap_or_default()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thread(libc::pid_t);

impl Thread {
    pub(crate) fn this() -> io::Result<Self> {
        handled().map_err(io::Error::from_raw_os_error)?;
        Ok(Self(number()))
    }

    /// Interrupts the call it sleeps in, but not one about to start.
    pub(crate) fn interrupt(self) {
        // SAFETY: no pointers; a thread that has ended is an error that changes nothing.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), self.0, SIGNAL) };
    }
}

impl Alarm {
    /// Interrupts the calling thread every `interval`.
    pub(crate) fn every(interval: Duration) -> io::Result<Self> {
        handled().map_err(io::Error::from_raw_os_error)?;
        // SAFETY: all zero is a valid value of this structure.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = number();
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: both pointers are valid for the call.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let alarm = Self { timer, _of_one_thread: PhantomData };
        let time = libc::timespec {
            tv_sec: libc::time_t::try_from(interval.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(interval.subsec_nanos()),
        };
        let times = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: the timer was just made, and the times outlive the call.
        match unsafe { libc::timer_settime(timer, 0, &raw const times, ptr::null_mut()) } {
            0 => Ok(alarm),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer came from timer_create and is deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::fd::AsFd, thread, time::Instant};

    use super::*;

    #[test]
    fn a_doorbell_wakes_until_it_is_quieted() {
        let bell = Doorbell::new().unwrap();
        let quick = Some(Duration::from_millis(1));
        assert_eq!(wait([(bell.as_fd(), READABLE)], quick).unwrap(), [0]);
        bell.ring();
        bell.ring();
        assert_eq!(wait([(bell.as_fd(), READABLE)], None).unwrap(), [READABLE]);
        bell.quiet();
        assert_eq!(wait([(bell.as_fd(), READABLE)], quick).unwrap(), [0]);
    }

    #[test]
    fn a_doorbell_interrupts_who_asked_for_it_and_nobody_after() {
        let bell = Arc::new(Doorbell::new().unwrap());
        let silent = Doorbell::new().unwrap();
        let long = Duration::from_secs(60);
        let sleeper = bell.interrupting().unwrap();
        let (ringing, begun) = (bell.clone(), std::time::Instant::now());
        let (done, over) = std::sync::mpsc::channel::<()>();
        let ringer = std::thread::spawn(move || {
            // Again and again: a ring that comes before the call does not end it.
            while over.recv_timeout(Duration::from_millis(5)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                ringing.ring();
            }
        });
        assert_eq!(wait([(silent.as_fd(), READABLE)], Some(long)).unwrap(), [0]);
        assert!(begun.elapsed() < long);
        drop(done);
        ringer.join().unwrap();
        drop(sleeper);
        assert!(bell.sleepers.lock().is_empty());
    }

    #[test]
    fn another_thread_ends_a_call_that_would_block() {
        let (mut reading, _writing) = io::pipe().unwrap();
        // Ends the call where the interrupts do not, so that the test fails and does not hang.
        let _alarm = Alarm::every(Duration::from_secs(120)).unwrap();
        let (sleeper, begun) = (Thread::this().unwrap(), Instant::now());
        let (done, over) = std::sync::mpsc::channel::<()>();
        let waker = thread::spawn(move || {
            // Again and again: one that comes before the call does not end it.
            while over.recv_timeout(Duration::from_millis(5)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                sleeper.interrupt();
            }
        });
        assert_eq!(reading.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::Interrupted);
        assert!(begun.elapsed() < Duration::from_secs(60));
        drop(done);
        waker.join().unwrap();
    }

    #[test]
    fn a_call_that_would_block_for_ever_is_interrupted_again_and_again() {
        let (mut reading, _writing) = io::pipe().unwrap();
        let _alarm = Alarm::every(Duration::from_millis(5)).unwrap();
        let begun = Instant::now();
        for _ in 0..3 {
            assert_eq!(reading.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::Interrupted);
        }
        // Two intervals: a busy machine may hide the first.
        assert!(begun.elapsed() >= Duration::from_millis(5));
    }
}
