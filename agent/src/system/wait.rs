//! Sleeping on descriptors: poll(2) and a doorbell (eventfd) that other threads ring.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsRawFd, BorrowedFd, FromRawFd},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use super::alarm::Thread;

pub(crate) const READABLE: i16 = libc::POLLIN;
pub(crate) const WRITABLE: i16 = libc::POLLOUT;
/// The other side has closed its writing half.
pub(crate) const HANG_UP: i16 = libc::POLLRDHUP;
/// The other side is gone: reported even if nothing was asked for.
pub(crate) const GONE: i16 = libc::POLLHUP | libc::POLLERR | libc::POLLRDHUP | libc::POLLNVAL;

/// Waits until one of `on` has one of the events asked for beside it, or `limit` is over (`None`: as long as it
/// takes). Returns the events that are there, in the same order; all zero after the limit or a signal.
pub(crate) fn wait<const N: usize>(on: [(BorrowedFd<'_>, i16); N], limit: Option<Duration>) -> io::Result<[i16; N]> {
    let mut asked = on.map(|(fd, events)| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 });
    wait_all(&mut asked, limit)?;
    Ok(asked.map(|fd| fd.revents))
}

/// Waits as [`wait`] does, for a number of descriptors known at run time only; which of them it was is not told.
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
    /// Threads that sleep in calls which no descriptor ends.
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
        // SAFETY: `fd` is open and nobody else owns it.
        let event = unsafe { File::from_raw_fd(fd) };
        Ok(Self { event, sleepers: Mutex::default() })
    }

    pub fn ring(&self) {
        // Fails only if the counter is full, and then it is readable anyway.
        let _ = (&self.event).write(&1u64.to_ne_bytes());
        self.sleepers.lock().iter().for_each(|thread| thread.interrupt());
    }

    /// Makes it interrupt the calling thread's system calls too. A ring that comes right before such a call does not end
    /// it: have an [alarm](super::alarm::Alarm) beside this.
    pub fn interrupting(self: &Arc<Self>) -> io::Result<Interrupted> {
        let thread = Thread::this()?;
        self.sleepers.lock().push(thread);
        Ok(Interrupted { bell: self.clone(), thread })
    }

    /// Makes it quiet again. Look at the flags it announces only after this.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

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
}
