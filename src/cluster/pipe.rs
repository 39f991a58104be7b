//! A running process on a host: three byte streams and how it ended.

use std::{fmt, future::Future, os::unix::process::ExitStatusExt, pin::Pin, process::ExitStatus};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    process::Child,
    sync::oneshot,
};

/// Bytes towards a process.
pub(crate) type Sink = Box<dyn AsyncWrite + Send + Unpin>;
/// Bytes from a process.
pub(crate) type Source = Box<dyn AsyncRead + Send + Unpin>;

/// A process and its streams.
pub(crate) struct Pipe {
    /// Its standard input; closing it asks an agent to end.
    pub stdin: Sink,
    /// Its standard output.
    pub stdout: Source,
    /// Its standard error.
    pub stderr: Source,
    /// Resolves when it has ended.
    pub end: Pin<Box<dyn Future<Output = End> + Send>>,
    /// Ends it by force, where that is possible from here.
    pub kill: Option<oneshot::Sender<()>>,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// With an exit code.
    Code(i32),
    /// By a signal; its number where the launcher tells it.
    Signal(Option<i32>),
    /// Not known: the way to the host broke first; why, if known.
    Unknown(String),
}

impl End {
    /// Whether it ended by itself and well.
    pub fn is_success(&self) -> bool {
        *self == Self::Code(0)
    }
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.signal()),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(Some(9)) => f.write_str("killed by signal 9 (SIGKILL)"),
            Self::Signal(Some(number)) => write!(f, "ended by signal {number}"),
            Self::Signal(None) => f.write_str("killed by a signal"),
            Self::Unknown(why) if why.is_empty() => f.write_str("exit status unknown"),
            Self::Unknown(why) => f.write_str(why),
        }
    }
}

impl Pipe {
    /// The pipe of a child process of ours.
    pub fn of_child(mut child: Child) -> std::io::Result<Self> {
        let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = taken else {
            return Err(std::io::Error::other("a stream of the process was not piped"));
        };
        let (kill, killed) = oneshot::channel();
        let end = async move {
            let status = tokio::select! {
                status = child.wait() => status,
                // A dropped sender means that nobody will ask any more: then only the process decides.
                Ok(()) = killed => {
                    // It may have ended in this moment; `wait` tells.
                    let _ = child.start_kill();
                    child.wait().await
                }
            };
            status.map_or_else(|error| End::Unknown(format!("cannot wait for it: {error}")), End::from)
        };
        Ok(Self {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            end: Box::pin(end),
            kill: Some(kill),
        })
    }
}
