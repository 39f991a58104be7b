//! Private stdin and stdout: libraries that print (NCCL does, by default, on stdout) write to stderr and cannot break a frame.
//!
//! If the controller is lost, the results have no reader: the agent ends within a second, with everything it started. That must not
//! depend on a measuring loop, a lock or a library's exit handler; hence a guard thread, and `_exit`.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use railgauge_wire::{Answer, Failure, FromAgent, Kind, Stage, frame};

use crate::{
    system::{process, wait},
    worker,
};

/// Output to the controller. Cheap to clone; every thread may write.
#[derive(Clone)]
pub(super) struct Outlet(Arc<Mutex<File>>, Arc<File>);

pub(super) fn claim() -> io::Result<(File, Outlet)> {
    let (inlet, outlet) = process::claim_standard_streams()?;
    Ok((inlet, Outlet::to(outlet)?))
}

impl Outlet {
    pub(super) fn to(outlet: File) -> io::Result<Self> {
        let watched = outlet.try_clone()?;
        Ok(Self(Arc::new(Mutex::new(outlet)), Arc::new(watched)))
    }

    pub(super) fn announce(&self) {
        self.write(frame::MAGIC);
    }

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

/// Limit for the reader to drain a closed stdin before the guard ends the process.
const GRACE: Duration = Duration::from_millis(300);

/// Ends the process once either pipe has lost its other end.
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

/// Also ends everything it started.
pub(super) fn lost(why: &str) -> ! {
    crate::system::log!("{why}; ending");
    process::kill_children();
    leave(3)
}

/// Without exit handlers: a library's handler may wait for a hanging device.
pub(super) fn leave(status: i32) -> ! {
    process::exit_now(status)
}
