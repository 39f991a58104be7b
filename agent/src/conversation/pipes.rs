//! stdin and stdout, taken away from everything else in the process: libraries that print (NCCL does, by default, on
//! stdout) end up on stderr and cannot break a frame.
//!
//! The only ways out of the process.
//!
//! A lost controller means that nobody will read a result: the agent is gone within a second, whatever its threads
//! do, and so is everything it started. That must not depend on a measuring loop, a lock or a library's exit handler;
//! hence a thread that does nothing but watch, and `_exit`.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    frame,
    message::{Answer, FromAgent},
};

use crate::{
    system::{process, wait},
    worker,
};

/// The way to the controller. Cheap to clone; every thread may write.
#[derive(Clone)]
pub(super) struct Outlet(Arc<Mutex<File>>, Arc<File>);

pub(super) fn claim() -> io::Result<(File, Outlet)> {
    let (inlet, outlet) = process::claim_standard_streams()?;
    let watched = outlet.try_clone()?;
    Ok((inlet, Outlet(Arc::new(Mutex::new(outlet)), Arc::new(watched))))
}

impl Outlet {
    pub(super) fn announce(&self) {
        self.write(frame::MAGIC);
    }

    /// Sends the one reply to request `id`.
    pub(super) fn reply(&self, id: u64, outcome: Result<Answer, Failure>) {
        let bytes = frame::encode(&FromAgent::Reply { id, outcome }).or_else(|error| {
            let failure = Failure::new(Stage::Converse, Kind::Internal, format!("the reply cannot be sent: {error}"));
            frame::encode(&FromAgent::Reply { id, outcome: Err(failure) })
        });
        match bytes {
            Ok(bytes) => self.write(&bytes),
            Err(error) => lost(&format!("a reply cannot be encoded: {error}")),
        }
    }

    fn write(&self, bytes: &[u8]) {
        // A thread that panicked while it held the lock did so outside of write_all.
        let mut to = self.0.lock();
        if let Err(error) = to.write_all(bytes) {
            lost(&format!("stdout: {error}"));
        }
    }
}

impl AsFd for Outlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }
}

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
    worker::start("guard", watch).map(drop)
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
