//! The ways to start a process on a host. Every launcher is one file with the same shape: `open` reaches the host,
//! `Way::start` starts a process whose words arrive exactly as given, `Way::close` lets the host go.

mod local;

use std::collections::BTreeMap;

use railgauge_wire::failure::{Kind, Stage};

use super::{pipe::Pipe, trouble::Trouble};
use crate::plan::model::{Host, Launch, Launcher};

/// An opened way to one host.
pub(crate) enum Way {
    /// This machine.
    Local(local::Way),
}

impl Way {
    /// Reaches a host.
    pub async fn open(launch: &Launch, _host: &Host) -> Result<Self, Trouble> {
        match &launch.via {
            Launcher::Local => Ok(Self::Local(local::Way)),
            Launcher::Ssh(_) | Launcher::Command(_) => Err(Trouble::lasting(
                Stage::Connect,
                Kind::Unsupported,
                "this build of railgauge starts agents on this machine only",
            )),
        }
    }

    /// Starts a process: program and arguments, never a shell's text. `env` is added to its environment.
    pub async fn start(&self, words: &[String], env: &BTreeMap<String, String>) -> Result<Pipe, Trouble> {
        match self {
            Self::Local(way) => way.start(words, env),
        }
    }

    /// Lets the host go.
    pub async fn close(self) {
        match self {
            Self::Local(_) => {}
        }
    }
}
