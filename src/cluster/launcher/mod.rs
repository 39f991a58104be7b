//! The ways to start a process on a host. Which there are is said once, by [`railgauge_model::launchers`]; each is one file here:
//! its `prepare` makes what all hosts share, [`Launcher::open`] reaches a host, [`Connection::start`] starts a process whose words
//! arrive exactly as given, [`Connection::close`] lets the host go.

use std::{
    future::{Future, ready},
    pin::Pin,
};

use railgauge_model::plan::model::{self, Host, Launch};

use super::{
    pipe::{Pipe, ProcessEnd},
    trouble::Trouble,
};

/// What a launcher's method comes to; a box, so that all launchers are one type.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A launcher, prepared: what all hosts share, such as a directory for sockets or an allocation of nodes. It is let go with the
/// last try; a connection that needs longer what it holds takes a share of it along.
pub(crate) trait Launcher: Send + Sync {
    /// Reaches a host. May be called for many hosts at once, and again for one that was not reached.
    ///
    /// # Errors
    /// The host cannot be reached, and whether another try may help.
    fn open<'a>(&'a self, host: &'a Host) -> Pending<'a, Result<Box<dyn Connection>, Trouble>>;

    /// What is known of a host whose try took too long; asked only then.
    fn late(&self, _host: &Host) -> Pending<'static, Option<Trouble>> {
        Box::pin(ready(None))
    }
}

pub(crate) trait Connection: Send + Sync {
    /// Starts a process: program and arguments, which arrive as they are whatever stands in them.
    ///
    /// # Errors
    /// It cannot be started from here; what goes wrong on the host is told by the process's end.
    fn start<'a>(&'a self, words: &'a [String]) -> Pending<'a, Result<Pipe, Trouble>>;

    /// Whether processes are children of this one on this machine: then nothing is deployed, and they end with it.
    fn is_here(&self) -> bool {
        false
    }

    fn may_share_files(&self) -> bool;

    /// Whether a process may go on there after its streams are cut: then it is ended by another one.
    fn may_outlive(&self) -> bool {
        false
    }

    /// Says what to do when a script on the host failed: how it ended, and the last words of its standard error. `trouble` has a
    /// remedy already where the words of the host's shell are known; a launcher whose own program tells more may replace
    /// it, and say that another try may help.
    fn explain(&self, trouble: Trouble, end: &ProcessEnd, words: &str) -> Trouble;

    fn close(self: Box<Self>) -> Pending<'static, ()> {
        Box::pin(ready(()))
    }
}

mod engine;

/// Declares a file of this folder for every launcher of the list, and how each is prepared.
macro_rules! declare {
    ($($variant:ident $(($data:ident: $type:ident))? = $module:ident: $about:literal;)*) => {
        $(mod $module;)*

        /// Prepares what all hosts share.
        ///
        /// # Errors
        /// Something that the launcher needs here cannot be had.
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
