//! The only ways out of the process.
//!
//! A lost controller means that nobody will read a result: the agent is gone within a second, whatever its threads
//! do, and so is everything it started. That must not depend on a measuring loop, a lock or a library's exit handler;
//! hence a thread that does nothing but watch, and `_exit`.

use std::{fs::File, io, os::fd::AsFd, process, time::Duration};

use super::pipes::Outlet;
use crate::wait;

/// How long the reader may take to empty a closed stdin before the guard ends the process.
const GRACE: Duration = Duration::from_millis(300);

/// Makes this process the leader of its own group, and the parent of whatever its children leave behind.
pub fn own_group() {
    // SAFETY: neither call takes pointers. Both may be refused (a session leader already leads its group); then
    // `lost` finds out by itself what it may do.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
}

/// Starts the thread that ends the process once either pipe has lost its other end.
///
/// # Errors
/// No thread or descriptor is left.
pub fn guard(inlet: &File, outlet: &Outlet) -> io::Result<()> {
    let (inlet, outlet) = (inlet.try_clone()?, outlet.clone());
    let watch = move || {
        loop {
            match wait::wait([(inlet.as_fd(), libc::POLLRDHUP), (outlet.as_fd(), 0)], None) {
                Ok(events) if events.iter().all(|events| events & wait::GONE == 0) => {}
                Ok(_) => break,
                Err(error) => {
                    crate::log!("cannot watch over stdin: {error}");
                    break;
                }
            }
        }
        std::thread::sleep(GRACE);
        lost("the controller is gone")
    };
    std::thread::Builder::new().name("guard".into()).spawn(watch).map(drop)
}

/// Ends the process and everything it started: the controller is gone.
pub fn lost(why: &str) -> ! {
    crate::log!("{why}; ending");
    kill_children();
    leave(3)
}

/// Ends the process at once, without exit handlers: a library's handler may wait for a device that hangs.
pub fn leave(status: i32) -> ! {
    // SAFETY: `_exit` is always sound; nothing is buffered, since stdout and stderr are written directly.
    unsafe { libc::_exit(status) }
}

/// Kills the own process group, this process with it, if there is any child left to kill.
fn kill_children() {
    // SAFETY: `info` is valid for writes and outlives the call; a zeroed siginfo_t is a valid one.
    let any = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0
    };
    let me = process::id().cast_signed();
    // SAFETY: no pointers. The group is signalled only if it is our own: we lead it.
    unsafe {
        if any && libc::getpgrp() == me {
            libc::kill(-me, libc::SIGKILL);
        }
    }
}
