use std::{fmt, future::Future, os::unix::process::ExitStatusExt, pin::Pin, process::ExitStatus, time::Duration};

use super::{Trouble, group::Group};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    process::Child,
    sync::oneshot,
};

pub(crate) type Sink = Box<dyn AsyncWrite + Send + Unpin>;
pub(crate) type Source = Box<dyn AsyncRead + Send + Unpin>;

pub(crate) struct Pipe {
    /// Closing it asks an agent to end.
    pub stdin: Sink,
    pub stdout: Source,
    pub stderr: Source,
    pub end: Pin<Box<dyn Future<Output = ProcessEnd> + Send>>,
    pub kill: Option<oneshot::Sender<()>>,
    pub way: Behind,
}

#[derive(Default)]
pub(crate) struct Behind {
    /// Longest silence of an agent that is asked; `None` where the way itself detects a lost host.
    pub silence: Option<Duration>,
    pub explain: Option<Explain>,
}

/// Finds out why a process ended, or is silent (`None`), given its last words.
pub(crate) type Explain =
    Box<dyn FnOnce(Option<ProcessEnd>, String) -> Pin<Box<dyn Future<Output = Option<Trouble>> + Send>> + Send>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    Code(i32),
    Signal(Option<i32>),
    /// Unknown: the way to the host broke first; why, if known.
    Unknown(String),
}

impl From<ExitStatus> for ProcessEnd {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.signal()),
        }
    }
}

impl fmt::Display for ProcessEnd {
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

#[derive(Debug)]
pub(crate) struct Output {
    pub stderr: Vec<u8>,
    pub end: ProcessEnd,
    pub known: Option<Trouble>,
}

/// Most bytes kept of the standard error of a short process.
pub(super) const KEPT: u64 = 64 << 10;

impl Pipe {
    pub(crate) fn of_child(mut child: Child) -> std::io::Result<Self> {
        let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = taken else {
            return Err(std::io::Error::other("a stream of the process was not piped"));
        };
        let (kill, killed) = oneshot::channel();
        let group = Group::of(&child);
        let end = async move {
            let status = tokio::select! {
                status = child.wait() => status,
                Ok(()) = killed => {
                    group.kill();
                    child.wait().await
                }
            };
            group.over();
            status.map_or_else(|error| ProcessEnd::Unknown(format!("cannot wait for it: {error}")), ProcessEnd::from)
        };
        Ok(Self {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            end: Box::pin(end),
            kill: Some(kill),
            way: Behind::default(),
        })
    }

    pub(crate) async fn run(self, input: &[u8]) -> Output {
        self.run_on(input, Vec::new()).await
    }

    /// [`Pipe::run`], after these bytes of its standard error were read.
    pub(crate) async fn run_on(self, input: &[u8], mut errors: Vec<u8>) -> Output {
        let Self { mut stdin, mut stdout, mut stderr, end, kill: _kill, way } = self;
        let feed = async move {
            // A process that stops reading says why on its standard error.
            let _ = stdin.write_all(input).await;
            let _ = stdin.shutdown().await;
        };
        let mut unheard = tokio::io::sink();
        let _ = tokio::join!(feed, tokio::io::copy(&mut stdout, &mut unheard), keep(&mut stderr, &mut errors));
        let end = end.await;
        let known = match way.explain {
            Some(explain) if end != ProcessEnd::Code(0) => {
                explain(Some(end.clone()), String::from_utf8_lossy(&errors).into_owned()).await
            }
            _ => None,
        };
        Output { stderr: errors, end, known }
    }
}

async fn keep(from: &mut Source, kept: &mut Vec<u8>) {
    let room = KEPT.saturating_sub(kept.len() as u64);
    // The end of the process explains a broken stream.
    let _ = from.take(room).read_to_end(kept).await;
    let _ = tokio::io::copy(from, &mut tokio::io::sink()).await;
}
