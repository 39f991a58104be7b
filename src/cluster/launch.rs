//! The ways to start a process on a host. Every launcher is one file of the same shape: `Launcher::new` prepares what
//! all hosts share, `Launcher::open` reaches a host, `Way::start` starts a process whose words arrive exactly as
//! given, `Way::close` lets the host go.

use std::collections::BTreeMap;

use super::{command, local, pipe::Pipe, ssh, trouble::Trouble};
use crate::plan::model::{self, Host, Launch};

/// A launcher, prepared.
pub(crate) enum Launcher {
    /// Processes on this machine.
    Local,
    /// OpenSSH.
    Ssh(ssh::Launcher),
    /// A command template.
    Command(command::Launcher),
}

impl Launcher {
    /// Prepares what all hosts share.
    pub fn new(launch: &Launch) -> Result<Self, Trouble> {
        Ok(match &launch.via {
            model::Launcher::Local => Self::Local,
            model::Launcher::Ssh(ssh) => Self::Ssh(ssh::Launcher::new(ssh, launch.timeout)?),
            model::Launcher::Command(template) => Self::Command(command::Launcher::new(template)),
        })
    }

    /// Reaches a host.
    pub async fn open(&self, host: &Host) -> Result<Way, Trouble> {
        Ok(match self {
            Self::Local => Way::Local(local::Way),
            Self::Ssh(launcher) => Way::Ssh(launcher.open(host).await?),
            Self::Command(launcher) => Way::Command(launcher.open(host)?),
        })
    }
}

/// An opened way to one host.
pub(crate) enum Way {
    /// This machine.
    Local(local::Way),
    /// An ssh connection.
    Ssh(ssh::Way),
    /// A command.
    Command(command::Way),
}

impl Way {
    /// Starts a process: program and arguments, which arrive as they are whatever stands in them.
    pub async fn start(&self, words: &[String]) -> Result<Pipe, Trouble> {
        match self {
            Self::Local(way) => way.start(words, &BTreeMap::new()),
            Self::Ssh(way) => way.start(words).await,
            Self::Command(way) => way.start(words),
        }
    }

    /// Whether the host may see the controller's files: a network namespace or a container with mounts does.
    pub fn may_share_files(&self) -> bool {
        !matches!(self, Self::Ssh(_))
    }

    /// Where to look when a script on the host failed without a word.
    pub const fn silence(&self) -> &'static str {
        match self {
            Self::Local(_) => "see `dmesg` and the limits of this shell (`ulimit -a`): it is a process of this machine",
            Self::Ssh(_) => "see the start-up files of the login shell and the log of its sshd",
            Self::Command(_) => {
                "run the plan's launch.command by hand with `sh -c 'echo here'` behind it: it has to print that, with exit \
                 status 0"
            }
        }
    }

    /// What is missing when a program was not found.
    pub const fn not_found(&self) -> &'static str {
        match self {
            Self::Local(_) | Self::Ssh(_) => "the host needs `sh` and the core utilities",
            Self::Command(_) => {
                "either launch.command names a program that is not there, or the host lacks `sh` and the core utilities: run \
                 the command by hand with `sh -c 'echo here'` behind it"
            }
        }
    }

    /// Lets the host go.
    pub async fn close(self) {
        match self {
            Self::Ssh(way) => way.close().await,
            Self::Local(_) | Self::Command(_) => {}
        }
    }
}
