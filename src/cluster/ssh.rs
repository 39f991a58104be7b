//! OpenSSH, by one master connection per host and ssh's own multiplexing protocol: the user's ssh_config, keys,
//! agents, jump hosts and known hosts work as they do on the command line.

use std::{
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use openssh::{ControlPersist, KnownHosts, Session, SessionBuilder, Stdio};
use railgauge_wire::failure::{Kind, Stage};
use tempfile::TempDir;
use tokio::time::sleep;

use super::{
    explain_ssh,
    log::printable,
    pipe::{End, Pipe},
    trouble::Trouble,
};
use crate::plan::model::{Host, HostKeys, Ssh};

/// How long an ssh master without a conversation lives: long enough between two steps of bringing a host up on a busy
/// machine, and the longest that one outlives a controller that was killed.
const IDLE: Option<NonZeroUsize> = NonZeroUsize::new(15);
/// Between two questions of ssh whether a silent host still lives; it gives up after three (ServerAliveCountMax).
const ALIVE: Duration = Duration::from_secs(5);
/// Longest path of the control directory in which ssh's socket still fits into the 108 bytes of a unix socket's
/// address: openssh adds `/.ssh-connectionXXXXXX/master`, ssh a dot and sixteen letters while it makes the socket.
const LONGEST: usize = 60;
/// Beginning of the control directory's name; the controller's process number follows.
const ROOM: &str = "railgauge-ssh-";
/// Time for a master whose connection broke to write why and to go.
const AFTERMATH: Duration = Duration::from_millis(100);

/// What all connections share.
pub(crate) struct Launcher {
    ssh: Ssh,
    timeout: Duration,
    /// Control sockets and logs of the masters; private, removed with the last connection.
    room: Arc<TempDir>,
}

impl Launcher {
    pub fn new(ssh: &Ssh, timeout: Duration) -> Result<Self, Trouble> {
        let room = control_directory().map_err(|error| {
            Trouble::lasting(Stage::Connect, Kind::Configuration, format!("no directory for ssh's sockets: {error}"))
                .help("XDG_RUNTIME_DIR, TMPDIR or /tmp on this machine must be writable")
        })?;
        Ok(Self { ssh: ssh.clone(), timeout, room: Arc::new(room) })
    }

    /// Connects to a host. What the plan says of a host goes before what it says of all.
    pub async fn open(&self, host: &Host) -> Result<Way, Trouble> {
        if host.address.is_empty() || host.address.starts_with('-') {
            let cause = format!("\"{}\" is no address for ssh", host.address);
            return Err(Trouble::lasting(Stage::Connect, Kind::Configuration, cause)
                .help("an address must not be empty or begin with `-`"));
        }
        let mut builder = SessionBuilder::default();
        builder
            .control_directory(self.room.path())
            .control_persist(IDLE.map_or(ControlPersist::ClosedAfterInitialConnection, ControlPersist::IdleFor))
            .server_alive_interval(ALIVE)
            // ssh counts in whole seconds; ours is the one that ends the try, this one ends a forgotten ssh.
            .connect_timeout(Duration::from_secs(self.timeout.as_secs().max(1)))
            .known_hosts_check(match self.ssh.host_keys {
                HostKeys::Strict => KnownHosts::Strict,
                HostKeys::AcceptNew => KnownHosts::Add,
            })
            .jump_hosts(&self.ssh.jump);
        if let Some(user) = host.user.as_ref().or(self.ssh.user.as_ref()) {
            builder.user(user.clone());
        }
        if let Some(port) = host.port.or(self.ssh.port) {
            builder.port(port);
        }
        if let Some(identity) = &self.ssh.identity {
            builder.keyfile(identity);
        }
        if let Some(config) = &self.ssh.config {
            builder.config_file(config);
        }
        if let Some(known_hosts) = &self.ssh.known_hosts {
            builder.user_known_hosts_file(known_hosts);
        }
        match builder.connect_mux(&host.address).await {
            Ok(session) => Ok(Way { session: Arc::new(session), _room: Arc::clone(&self.room) }),
            Err(openssh::Error::Connect(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(Trouble::lasting(Stage::Connect, Kind::Configuration, "the program `ssh` is not installed here")
                    .help("install OpenSSH's client on this machine"))
            }
            Err(error) => Err(explain_ssh::connect(&words(&error), &host.address, self.ssh.known_hosts.as_deref())),
        }
    }
}

/// A connection.
pub(crate) struct Way {
    session: Arc<Session>,
    /// Lives as long as the sockets in it are needed.
    _room: Arc<TempDir>,
}

impl Way {
    /// Starts a process on the host. openssh quotes every word for the login shell.
    pub async fn start(&self, words: &[String]) -> Result<Pipe, Trouble> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(Trouble::lasting(Stage::Start, Kind::Internal, "nothing to start"));
        };
        let failed = |error: &openssh::Error| {
            let cause = format!("the host refused to start a process: {}", self::words(error));
            Trouble::passing(Stage::Start, Kind::Configuration, cause)
                .help("see MaxSessions and ForceCommand in its sshd_config, and the log of its sshd")
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
                Ok(status) => End::from(status),
                // openssh tells exit status 127 apart: the shell's word for a program that is not there.
                Err(openssh::Error::Remote(_)) => End::Code(127),
                // No status came. A killed process has none, and a connection that broke cannot tell one.
                Err(_) => {
                    sleep(AFTERMATH).await;
                    match session.check().await {
                        Ok(()) => End::Signal(None),
                        Err(error) => End::Unknown(connection_ended(&session, &error)),
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
        })
    }

    /// Closes the connection. The master ends once no process uses it.
    pub async fn close(self) {
        if let Ok(session) = Arc::try_unwrap(self.session) {
            // A master that is gone already has nothing to close.
            let _ = session.close().await;
        }
    }
}

/// Why a connection ended, in ssh's own words if it left any.
fn connection_ended(session: &Session, error: &openssh::Error) -> String {
    let text = fs::read(session.control_socket().with_file_name("log")).unwrap_or_default();
    let mut lines = text.split(|byte| *byte == b'\n').map(printable).filter(|line| !line.is_empty());
    format!("ssh lost the host: {}", lines.next_back().unwrap_or_else(|| words(error)))
}

/// An error of openssh with everything below it: the useful words are mostly at the bottom.
fn words(error: &openssh::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// A new private directory with a short path. What controllers that were killed left behind is taken away.
fn control_directory() -> std::io::Result<TempDir> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = runtime.into_iter().chain([std::env::temp_dir(), "/tmp".into()]);
    let prefix = format!("{ROOM}{}-", std::process::id());
    let mut failed = std::io::Error::other("no place with a short path");
    for place in places.filter(|place| place.is_absolute() && place.as_os_str().len() + prefix.len() + 7 <= LONGEST) {
        // tempfile makes directories with mode 0700.
        match tempfile::Builder::new().prefix(&prefix).tempdir_in(&place) {
            Ok(room) => {
                sweep(&place);
                return Ok(room);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Removes control directories whose controller is gone. Those of other users cannot be removed and stay.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(ROOM)?.split('-').next()?.parse::<u32>().ok());
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Best effort: another controller may be sweeping too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
