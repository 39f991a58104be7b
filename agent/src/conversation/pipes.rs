//! stdin and stdout, taken away from everything else in the process: libraries that print (NCCL does, by default, on
//! stdout) end up on stderr and cannot break a frame.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
};

use parking_lot::Mutex;
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    frame,
    message::{Answer, FromAgent},
};

use super::end;
use crate::system::process;

/// The way to the controller. Cheap to clone; every thread may write.
#[derive(Clone)]
pub(super) struct Outlet(Arc<Mutex<File>>, Arc<File>);

/// Moves stdin and stdout to private descriptors; then puts `/dev/null` at 0 and stderr at 1.
pub(super) fn claim() -> io::Result<(File, Outlet)> {
    let inlet = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let outlet = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let watched = outlet.try_clone()?;
    let nothing = File::open("/dev/null")?;
    process::replace_standard_streams(nothing.as_fd(), io::stderr().as_fd())?;
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
            Err(error) => end::lost(&format!("a reply cannot be encoded: {error}")),
        }
    }

    fn write(&self, bytes: &[u8]) {
        // A thread that panicked while it held the lock did so outside of write_all.
        let mut to = self.0.lock();
        if let Err(error) = to.write_all(bytes) {
            end::lost(&format!("stdout: {error}"));
        }
    }
}

impl AsFd for Outlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }
}
