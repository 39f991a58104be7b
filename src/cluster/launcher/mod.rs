//! The ways to start a process on a host, listed in [`railgauge_model::launchers`]; each is one file here: its `prepare` makes what all
//! hosts share, [`Launcher::open`] reaches a host, [`Connection::start`] starts a process with exactly these words, [`Connection::close`]
//! releases the host.

use std::{
    future::{Future, ready},
    pin::Pin,
};

use railgauge_model::plan::model::{self, Host, Launch};

use super::{Pipe, ProcessEnd, Trouble};

/// The result of a launcher's method; boxed, so that all launchers are one type.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A prepared launcher: what all hosts share, such as a directory for sockets or an allocation of nodes. It is dropped with the last try; a
/// connection that needs it longer holds a share of it.
pub(crate) trait Launcher: Send + Sync {
    /// Reaches a host. May be called for many hosts at once, and again after a failure.
    ///
    /// # Errors
    /// The host cannot be reached, and whether another try may help.
    fn open<'a>(&'a self, host: &'a Host) -> Pending<'a, Result<Box<dyn Connection>, Trouble>>;
}

pub(crate) trait Connection: Send + Sync {
    /// Starts a process: program and arguments, which arrive unchanged whatever they contain.
    ///
    /// # Errors
    /// It cannot be started from here; the process's end reports errors on the host.
    fn start<'a>(&'a self, words: &'a [String]) -> Pending<'a, Result<Pipe, Trouble>>;

    /// Whether processes are children of this one: then nothing is deployed, and they end with it.
    fn is_here(&self) -> bool {
        false
    }

    fn may_share_files(&self) -> bool;

    /// Says what to do when a script on the host failed: how it ended, and the last words of its standard error. `trouble` already has a
    /// remedy where the words of the host's shell are known; a launcher whose own program is more informative may replace it, and allow
    /// another try.
    fn explain(&self, trouble: Trouble, end: &ProcessEnd, words: &str) -> Trouble;

    fn close(self: Box<Self>) -> Pending<'static, ()> {
        Box::pin(ready(()))
    }
}

mod container;

macro_rules! declare {
    ($($variant:ident $(($data:ident: $type:ident))? = $module:ident: $about:literal;)*) => {
        $(mod $module;)*

        pub(crate) fn prepare(launch: &Launch) -> Result<Box<dyn Launcher>, Trouble> {
            match &launch.via {
                $(model::Launcher::$variant $(($data))? => $module::prepare($($data,)? launch),)*
            }
        }
    };
}

railgauge_model::launchers!(declare);

pub use kubectl::{pods, pods_again};
pub(crate) use slurm::scontrol;
pub use slurm::{allocation, ending};
