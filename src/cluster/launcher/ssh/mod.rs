//! OpenSSH, by one master connection per host and ssh's own multiplexing protocol: the user's ssh_config, keys, agents, jump hosts and
//! known hosts work as on the command line.

mod explain;
mod master;

use std::{fs, sync::Arc, time::Duration};

use openssh::{Session, Stdio};
use railgauge_model::{
    border::text,
    plan::model::{Host, Launch, Ssh},
};
use railgauge_wire::{Kind, Stage, remedy};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{Connection, Launcher, Pending};
use crate::cluster::{Behind, Pipe, ProcessEnd, Trouble};

/// Time for a master whose connection broke to write why and to end.
const AFTERMATH: Duration = Duration::from_millis(100);

struct Prepared {
    ssh: Ssh,
    timeout: Duration,
    room: Arc<TempDir>,
}

pub(super) fn prepare(ssh: &Ssh, launch: &Launch) -> Result<Box<dyn Launcher>, Trouble> {
    let room = master::control_directory().map_err(|error| {
        Trouble::lasting(Stage::Connect, Kind::Configuration, format!("no directory for ssh's sockets: {error}"))
            .remedy(remedy::SSH_SOCKET_DIR)
    })?;
    Ok(Box::new(Prepared { ssh: ssh.clone(), timeout: launch.timeout, room: Arc::new(room) }))
}

impl Launcher for Prepared {
    fn open<'a>(&'a self, host: &'a Host) -> Pending<'a, Result<Box<dyn Connection>, Trouble>> {
        Box::pin(async move {
            let opened: Box<dyn Connection> = Box::new(self.connect(host).await?);
            Ok(opened)
        })
    }
}

impl Prepared {
    async fn connect(&self, host: &Host) -> Result<SshConnection, Trouble> {
        if host.address.is_empty() || host.address.starts_with('-') {
            let cause = format!("\"{}\" is not an address for ssh", host.address);
            return Err(Trouble::lasting(Stage::Connect, Kind::Configuration, cause).remedy(remedy::CORRECT_ADDRESS));
        }
        let session = master::connect(&self.ssh, host, self.timeout, self.room.path()).await?;
        Ok(SshConnection { session: Arc::new(session), _room: Arc::clone(&self.room) })
    }
}

struct SshConnection {
    session: Arc<Session>,
    _room: Arc<TempDir>,
}

impl Connection for SshConnection {
    fn start<'a>(&'a self, words: &'a [String]) -> Pending<'a, Result<Pipe, Trouble>> {
        Box::pin(self.process(words))
    }

    fn may_share_files(&self) -> bool {
        false
    }

    fn explain(&self, trouble: Trouble, end: &ProcessEnd, words: &str) -> Trouble {
        match end {
            ProcessEnd::Code(127) => trouble.remedy_or(remedy::INSTALL_COREUTILS),
            _ if words.is_empty() => trouble.remedy_or(remedy::CHECK_LOGIN_SHELL),
            _ => trouble,
        }
    }

    fn close(self: Box<Self>) -> Pending<'static, ()> {
        Box::pin(async move {
            if let Ok(session) = Arc::try_unwrap(self.session) {
                let _ = session.close().await;
            }
        })
    }
}

impl SshConnection {
    async fn process(&self, words: &[String]) -> Result<Pipe, Trouble> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(Trouble::lasting(Stage::Start, Kind::Internal, "nothing to start"));
        };
        let failed = |error: &openssh::Error| {
            let cause = format!("the host refused to start a process: {}", self::words(error));
            Trouble::passing(Stage::Start, Kind::Configuration, cause).remedy(remedy::CHECK_SSHD_SESSIONS)
        };
        let mut command = Arc::clone(&self.session).arc_command(program.as_str());
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().await.map_err(|error| failed(&error))?;
        let streams = (child.stdin().take(), child.stdout().take(), child.stderr().take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(Trouble::lasting(Stage::Start, Kind::Internal, "a stream of the process was not piped"));
        };
        let session = Arc::clone(&self.session);
        let end = async move {
            match child.wait().await {
                Ok(status) => ProcessEnd::from(status),
                // openssh maps exit status 127 (a missing program) to an error of its own.
                Err(openssh::Error::Remote(_)) => ProcessEnd::Code(127),
                // No status arrived: the process was killed or the connection broke.
                Err(_) => {
                    sleep(AFTERMATH).await;
                    match session.check().await {
                        Ok(()) => ProcessEnd::Signal(None),
                        Err(error) => ProcessEnd::Unknown(connection_ended(&session, &error)),
                    }
                }
            }
        };
        Ok(Pipe {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            end: Box::pin(end),
            kill: None,
            // ssh probes silent hosts itself, and logs why it ended.
            way: Behind::default(),
        })
    }
}

fn connection_ended(session: &Session, error: &openssh::Error) -> String {
    let text = fs::read(session.control_socket().with_file_name("log")).unwrap_or_default();
    let mut lines = text.split(|byte| *byte == b'\n').map(text::line).filter(|line| !line.is_empty());
    format!("ssh lost the host: {}", lines.next_back().unwrap_or_else(|| words(error)))
}

/// With all sources: the useful words are mostly in the innermost one.
fn words(error: &openssh::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
