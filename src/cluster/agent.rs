use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use railgauge_wire::{Answer, Ask, Failure, Kind, PROTOCOL, Stage, remedy};
use tokio::{
    io::{AsyncRead, AsyncWrite, BufReader},
    sync::{Mutex, oneshot},
    task::AbortHandle,
    time::timeout,
};

use super::{
    Behind, Gone, LogSink, Pipe, ProcessEnd, Trouble, Why,
    conversation::{self, Asked, Conversation, skip_to_magic},
    deploy::Deployed,
    explain,
    log::{LastWords, drain},
};

/// Time for the exit status and the last lines after a pipe broke: they arrive separately and a little later.
const AFTERMATH: Duration = Duration::from_secs(1);
const INQUIRY: Duration = Duration::from_secs(5);
/// Time for the answer to `Bye`, and again for the agent to end after it.
const FAREWELL: Duration = Duration::from_secs(2);

/// A running agent. Clones share it. Dropping the last clone closes its standard input, which ends the agent; only [`Agent::close`] also
/// waits until its file is removed.
#[derive(Clone)]
pub struct Agent(Arc<Inner>);

struct Inner {
    conversation: Arc<Conversation>,
    version: String,
    pid: u32,
    took: BringUp,
    first: Mutex<Vec<(Instant, Asked)>>,
    tasks: Vec<AbortHandle>,
    keeper: Mutex<Option<Keeper>>,
}

struct Keeper {
    kill: Option<oneshot::Sender<()>>,
    deployed: Option<Deployed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BringUp {
    pub connect: Duration,
    pub deploy: Duration,
    pub start: Duration,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Ends the writer, and with it the agent's standard input.
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("host", &self.host()).field("pid", &self.pid()).finish_non_exhaustive()
    }
}

impl Agent {
    pub fn host(&self) -> &str {
        self.0.conversation.host()
    }

    pub fn version(&self) -> &str {
        &self.0.version
    }

    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    pub fn took(&self) -> BringUp {
        self.0.took
    }

    /// The requests sent right after the greeting, with their times; only once.
    pub(crate) async fn first(&self) -> Vec<(Instant, Asked)> {
        std::mem::take(&mut *self.0.first.lock().await)
    }

    pub(crate) fn with_took(mut self, took: BringUp) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.took = took;
        }
        self
    }

    /// One request, one answer; many may be pending. Dropping the future abandons the answer, not the request.
    ///
    /// # Errors
    /// The agent's failure; after `limit` [`Kind::Deadline`]; [`Kind::Lost`] as soon as the pipe breaks; [`Kind::Aborted`] after
    /// [`Agent::close`]. The cause names the host.
    pub async fn ask(&self, ask: Ask, limit: Duration) -> Result<Answer, Failure> {
        self.0.conversation.ask(ask, limit).await
    }

    /// Sends a request before any later one; its answer may be awaited later.
    pub(crate) fn send(&self, ask: Ask) -> Asked {
        Asked::new(&self.0.conversation, ask)
    }

    /// Set once the pipe is closed: the agent or the way to it died, or its output was not the protocol. The cause includes how the process
    /// ended and its last words, where known.
    pub fn lost(&self) -> Option<Failure> {
        self.0.conversation.lost()
    }

    pub async fn gone(&self) -> Failure {
        explain::lost(&self.0.conversation.gone().await).at(self.host())
    }

    /// Says goodbye, waits for the agent's end (and forces it where possible), removes its file unless it is to stay, and closes the way to
    /// the host. A second call does nothing.
    pub async fn close(&self) {
        let Some(keeper) = self.0.keeper.lock().await.take() else { return };
        let conversation = &self.0.conversation;
        if conversation.lost().is_none() {
            // An agent that does not answer still ends with its standard input.
            let _ = conversation.ask(Ask::Bye, FAREWELL).await;
        }
        conversation.hang_up();
        // One that was given up because it was silent may be stopped.
        let gone = timeout(FAREWELL, conversation.gone()).await;
        let ended = gone.is_ok_and(|gone| !matches!(gone.why, Why::Silent(_)));
        if let Some(kill) = keeper.kill {
            let _ = kill.send(());
        }
        // If only its launcher runs on this machine, end it on its host: it may be stopped, or hang, or, in a container, may not know that
        // the streams to it were cut, before or during the goodbye.
        if let Some(deployed) = &keeper.deployed
            && (!ended || !conversation.has_parted())
        {
            deployed.end(self.pid()).await;
        }
        if !ended {
            let _ = timeout(FAREWELL, conversation.gone()).await;
        }
        if let Some(deployed) = keeper.deployed {
            deployed.clear().await;
        }
    }

    pub async fn over(
        host: &str,
        run_id: &str,
        from: impl AsyncRead + Send + Unpin + 'static,
        to: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Self, Failure> {
        let pipe = Pipe {
            stdin: Box::new(to),
            stdout: Box::new(from),
            stderr: Box::new(tokio::io::empty()),
            end: Box::pin(std::future::pending()),
            kill: None,
            way: Behind::default(),
        };
        Self::greet(pipe, None, (host, run_id), &LogSink::none(), &[]).await.map_err(|trouble| trouble.at(host))
    }

    /// Waits for the magic line, greets, and compares protocols. Sends `first` after the greeting without waiting for its answer.
    /// `deployed` is cleared when the agent is closed.
    pub(crate) async fn greet(
        pipe: Pipe,
        deployed: Option<Deployed>,
        (host, run_id): (&str, &str),
        log: &LogSink,
        first: &[Ask],
    ) -> Result<Self, Trouble> {
        let Pipe { stdin, stdout, stderr, end, kill, way } = pipe;
        let last = LastWords::default();
        let (conversation, frames) = Conversation::new(host);
        let writer = tokio::spawn(conversation::write(frames, stdin));
        let words = tokio::spawn({
            let (host, log, last) = (host.to_owned(), log.clone(), last.clone());
            let told = deployed.as_ref().map(Deployed::told);
            let ours = move |line: &str| told.as_ref().is_some_and(|told| told.takes(line));
            async move { drain(stderr, &host, &log, &last, ours).await }
        });
        let (greeted, greeting) = oneshot::channel();
        let mut tasks = vec![writer.abort_handle(), words.abort_handle()];
        let watch = Watch { conversation: Arc::clone(&conversation), log: log.clone(), last, way };
        tasks.push(tokio::spawn(watch.over(stdout, end, words, greeted)).abort_handle());
        let keeper = Mutex::new(Some(Keeper { kill, deployed }));
        let (version, took, first_asked) = (String::new(), BringUp::default(), Mutex::default());
        let mut inner = Inner { conversation, version, pid: 0, took, first: first_asked, tasks, keeper };
        // The watch always answers; if it is closed, so is the agent.
        if !greeting.await.unwrap_or(false) {
            return Err(start_failed(&inner.conversation).await);
        }
        let hello = Ask::Hello { protocol: PROTOCOL, run_id: run_id.to_owned(), host: host.to_owned() };
        // The launcher's time for one try is the limit; this one only ends an otherwise unlimited conversation.
        let limit = Duration::from_secs(600);
        let hello = Asked::new(&inner.conversation, hello);
        let first = first.iter().map(|ask| (Instant::now(), Asked::new(&inner.conversation, ask.clone()))).collect();
        let conversation = &inner.conversation;
        match hello.within(limit).await {
            Ok(Answer::Hello { protocol: PROTOCOL, version, pid }) => {
                (inner.version, inner.pid) = (version, pid);
                inner.first = Mutex::new(first);
                Ok(Self(Arc::new(inner)))
            }
            Ok(Answer::Hello { protocol, version, .. }) => Err(skew(protocol, &version)),
            Ok(_) => Err(Trouble::lasting(
                Stage::Start,
                Kind::Internal,
                "the agent answered the greeting with something else",
            )
            .remedy(remedy::REBUILD_BOTH)),
            Err(_) if conversation.lost().is_some() => Err(start_failed(conversation).await),
            Err(failure) => Err(Trouble { failure: Failure { stage: Stage::Start, ..failure }, passing: false }),
        }
    }
}

async fn start_failed(conversation: &Conversation) -> Trouble {
    explain::start(&conversation.gone().await)
}

fn skew(protocol: u32, version: &str) -> Trouble {
    let cause = format!(
        "the agent (version {version}) speaks protocol {protocol}, this railgauge ({}) speaks {PROTOCOL}",
        env!("CARGO_PKG_VERSION")
    );
    Trouble::lasting(Stage::Start, Kind::Configuration, cause).remedy(remedy::REBUILD_BOTH)
}

struct Watch {
    conversation: Arc<Conversation>,
    log: LogSink,
    last: LastWords,
    way: Behind,
}

impl Watch {
    /// Reads replies until the stream or the process ends, collects what is known of the end, and notifies all waiters.
    async fn over(
        self,
        stdout: impl AsyncRead + Send + Unpin,
        end: impl Future<Output = ProcessEnd> + Send,
        words: tokio::task::JoinHandle<()>,
        greeted: oneshot::Sender<bool>,
    ) {
        let mut stdout = BufReader::new(stdout);
        let mut end = std::pin::pin!(end);
        let mut ended = None;
        let talk = async {
            let noise = |line: &str| {
                self.log.line(self.conversation.host(), line);
                self.last.push(line);
            };
            match skip_to_magic(&mut stdout, noise).await {
                Ok(()) => {
                    let _ = greeted.send(true);
                    self.conversation.read(&mut stdout).await
                }
                Err(why) => {
                    let _ = greeted.send(false);
                    why
                }
            }
        };
        let mut talk = std::pin::pin!(talk);
        let silence = async {
            match self.way.silence {
                Some(limit) => self.conversation.silent(limit).await,
                None => std::future::pending().await,
            }
        };
        let why = tokio::select! {
            why = &mut talk => why,
            why = silence => why,
            how = &mut end => {
                ended = Some(how);
                // What the process wrote before its end is still in the pipe.
                timeout(AFTERMATH, &mut talk).await.unwrap_or_default()
            }
        };
        self.conversation.hang_up();
        if ended.is_none() {
            ended = timeout(AFTERMATH, &mut end).await.ok();
        }
        // The last lines may still be on their way; a grandchild that holds the stream open must not block us.
        let _ = timeout(AFTERMATH, words).await;
        let last = self.last.text();
        // A process that was silent has ended because its input was closed here.
        let how = ended.clone().filter(|_| !matches!(why, Why::Silent(_)));
        let known = match self.way.explain {
            // It ended on request: no inquiry is needed, and a thousand agents end at once.
            _ if self.conversation.has_parted() => None,
            Some(explain) => timeout(INQUIRY, explain(how, last.clone())).await.ok().flatten(),
            None => None,
        };
        self.conversation.lose(Gone { why, end: ended.clone(), last, known: known.map(Box::new) });
        // The process may outlive its broken pipe; only now may its end be forgotten.
        if ended.is_none() {
            let _ = end.await;
        }
    }
}
