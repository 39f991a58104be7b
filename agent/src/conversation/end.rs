//! The only ways out of the process.
//!
//! A lost controller means that nobody will read a result: the agent is gone within a second, whatever its threads
//! do, and so is everything it started. That must not depend on a measuring loop, a lock or a library's exit handler;
//! hence a thread that does nothing but watch, and `_exit`.

use std::{fs::File, io, os::fd::AsFd, time::Duration};

use super::pipes::Outlet;
use crate::system::{process, wait, workers};

/// How long the reader may take to empty a closed stdin before the guard ends the process.
const GRACE: Duration = Duration::from_millis(300);

/// Starts the thread that ends the process once either pipe has lost its other end.
pub(super) fn guard(inlet: &File, outlet: &Outlet) -> io::Result<()> {
    let (inlet, outlet) = (inlet.try_clone()?, outlet.clone());
    let watch = move || {
        loop {
            match wait::wait([(inlet.as_fd(), wait::HANG_UP), (outlet.as_fd(), 0)], None) {
                Ok(events) if events.iter().all(|events| events & wait::GONE == 0) => {}
                Ok(_) => break,
                Err(error) => {
                    crate::system::log!("cannot watch over stdin: {error}");
                    break;
                }
            }
        }
        std::thread::sleep(GRACE);
        lost("the controller is gone")
    };
    workers::start("guard", watch).map(drop)
}

/// Ends the process and everything it started: the controller is gone.
pub(super) fn lost(why: &str) -> ! {
    crate::system::log!("{why}; ending");
    process::kill_children();
    leave(3)
}

/// Ends the process at once, without exit handlers: a library's handler may wait for a device that hangs.
pub(super) fn leave(status: i32) -> ! {
    process::exit_now(status)
}
