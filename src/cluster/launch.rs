//! The ways to start a process on a host. Every launcher is one file of the same shape: `Launcher::new` prepares what
//! all hosts share, `Launcher::open` reaches a host, `Connection::start` starts a process whose words arrive exactly as
//! given, `Connection::close` lets the host go.

use std::collections::BTreeMap;

use railgauge_model::plan::model::{self, Host, Launch};
use railgauge_wire::remedy::{self, Entry};

use super::{
    command::{self, CommandConnection},
    local::LocalConnection,
    pipe::Pipe,
    ssh::{self, SshConnection},
    trouble::Trouble,
};

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
    pub async fn open(&self, host: &Host) -> Result<Connection, Trouble> {
        Ok(match self {
            Self::Local => Connection::Local(LocalConnection),
            Self::Ssh(launcher) => Connection::Ssh(launcher.open(host).await?),
            Self::Command(launcher) => Connection::Command(launcher.open(host)?),
        })
    }
}

/// An opened way to one host.
pub(crate) enum Connection {
    /// This machine.
    Local(LocalConnection),
    /// An ssh connection.
    Ssh(SshConnection),
    /// A command.
    Command(CommandConnection),
}

impl Connection {
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

    /// What to do when a script on the host failed without a word.
    pub const fn silence(&self) -> Entry {
        match self {
            Self::Local(_) => remedy::CHECK_SHELL_LIMITS,
            Self::Ssh(_) => remedy::CHECK_LOGIN_SHELL,
            Self::Command(_) => remedy::LAUNCH_COMMAND,
        }
    }

    /// What to do when a script on the host failed with words that are not known.
    pub const fn failed(&self) -> Option<Entry> {
        match self {
            Self::Local(_) | Self::Ssh(_) => None,
            Self::Command(_) => Some(remedy::LAUNCH_COMMAND),
        }
    }

    /// What to do when a program was not found.
    pub const fn not_found(&self) -> Entry {
        match self {
            Self::Local(_) | Self::Ssh(_) => remedy::INSTALL_COREUTILS,
            Self::Command(_) => remedy::LAUNCH_COMMAND_PROGRAM,
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
