//! The agent's file on a host: found or sent, started, removed. Works over every launcher that reaches another file system;
//! [`super::script`] describes the files.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use railgauge_model::plan::model::Launch;
use railgauge_wire::{Failure, Kind, Stage, remedy};
use tokio::{
    io::AsyncWriteExt,
    time::{sleep, timeout},
};

use super::{
    Behind, Connection, Pipe, Progress, Trouble,
    binary::{AgentBinary, Image, Machine},
    child::child,
    explain,
    script::{self, Aside},
    talk::Talk,
};

const CLEARANCE: Duration = Duration::from_secs(10);
/// Time for an agent to notice that its standard input ended.
const NOTICE: Duration = Duration::from_secs(1);

/// A started agent's traces on its host. Dropped without [`Deployed::clear`] it clears up in the background.
pub(crate) struct Deployed(Option<Traces>);

struct Traces {
    way: Box<dyn Connection>,
    hash: String,
    /// The agent's directory; `None` where it runs in place.
    directory: Option<String>,
    told: Arc<Told>,
    keep: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The agent's process number, before any greeting; 0 until then.
    agent: AtomicU32,
    /// The process in the name of the agent's file; 0 until known.
    keeper: AtomicU32,
    is_cleared: AtomicBool,
}

impl Told {
    pub(crate) fn takes(&self, line: &str) -> bool {
        let Some(aside) = script::aside(line) else { return false };
        match aside {
            Aside::Started { agent, keeper } => {
                self.agent.store(agent, Ordering::Relaxed);
                self.keeper.store(keeper, Ordering::Relaxed);
            }
            Aside::Cleared => self.is_cleared.store(true, Ordering::Relaxed),
        }
        true
    }
}

impl Deployed {
    fn new(way: Box<dyn Connection>, image: &Image, directory: Option<String>, keep: bool) -> Self {
        Self(Some(Traces { way, hash: image.hash.clone(), directory, told: Arc::default(), keep }))
    }

    pub(crate) fn told(&self) -> Arc<Told> {
        self.0.as_ref().map(|traces| Arc::clone(&traces.told)).unwrap_or_default()
    }

    pub(crate) async fn end(&self, pid: u32) {
        if let Some(traces) = &self.0 {
            traces.end(pid).await;
        }
    }

    /// Removes the agent's file, unless it is to stay or already removed, and releases the host. The agent has ended.
    pub(crate) async fn clear(mut self) {
        if let Some(traces) = self.0.take() {
            traces.clear().await;
        }
    }
}

impl Drop for Deployed {
    fn drop(&mut self) {
        let Some(traces) = self.0.take() else { return };
        // Without a runtime the process is about to end; the next run on the host sweeps.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let clearing = Clearing::begin();
            runtime.spawn(async move {
                sleep(NOTICE).await;
                traces.end(traces.told.agent.load(Ordering::Relaxed)).await;
                traces.clear().await;
                drop(clearing);
            });
        }
    }
}

static CLEARING: AtomicUsize = AtomicUsize::new(0);

struct Clearing;

impl Clearing {
    fn begin() -> Self {
        CLEARING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Clearing {
    fn drop(&mut self) {
        CLEARING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits, at most `limit`, until the hosts of abandoned tries are cleared up: agents that never greeted are ended, their files removed. The
/// next run on the host sweeps the rest.
pub async fn cleared(limit: Duration) {
    let _ = timeout(limit, async {
        while CLEARING.load(Ordering::SeqCst) > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

impl Traces {
    async fn end(&self, pid: u32) {
        if pid > 1 && !self.way.is_here() {
            run_briefly(&*self.way, &script::sh(script::END, [pid.to_string().as_str(), &self.hash])).await;
        }
    }

    async fn clear(self) {
        let Self { hash, directory, told, .. } = &self;
        if let Some(directory) = directory.as_ref().filter(|_| !told.is_cleared.load(Ordering::Relaxed)) {
            let (keeper, keep) = (told.keeper.load(Ordering::Relaxed).to_string(), if self.keep { "keep" } else { "" });
            let words = script::sh(script::CLEAR, [directory.as_str(), hash, &keeper, keep]);
            // A host that does not answer keeps the file; the next run on it sweeps.
            run_briefly(&*self.way, &words).await;
        }
        self.way.close().await;
    }
}

/// Runs a script whose answer is not needed; ignores a host that does not answer in time.
async fn run_briefly(way: &dyn Connection, words: &[String]) {
    let _ = timeout(CLEARANCE, async {
        if let Ok(pipe) = way.start(words).await {
            Pipe { way: Behind::default(), ..pipe }.run(b"").await;
        }
    })
    .await;
}

pub(crate) async fn start(
    way: Box<dyn Connection>,
    launch: &Launch,
    binary: &AgentBinary,
    progress: &Progress,
) -> Result<(Pipe, Deployed), Trouble> {
    let lasting = |failure| Trouble { failure, passing: false };
    let env = environment(launch).map_err(lasting)?;
    if way.is_here() {
        let image = binary.image(&Machine::here()).map_err(lasting)?;
        let pipe = child(&[image.path.display().to_string()], &env, remedy::CHECK_SHELL_LIMITS)?;
        return Ok((pipe, Deployed::new(way, image, None, true)));
    }
    progress.to(Stage::Deploy, "looking for the agent on the host");
    let env = script::environment(&env);
    let mut talk = Talk::new(way.start(&words(&*way, launch, binary, env.len())).await?);
    let (image, directory) = match place(&mut talk, launch, binary, progress).await {
        Ok(found) => found,
        Err(Refused::Known(trouble)) => return Err(trouble),
        // How the script ended is more informative.
        Err(Refused::Script(what)) => return Err(explain::script(&talk.over().await, &what, &*way)),
    };
    progress.to(Stage::Start, "starting the agent");
    let deployed = Deployed::new(way, image, directory, launch.keep_agent);
    let mut pipe = talk.agent();
    let _ = pipe.stdin.write_all(env.as_bytes()).await;
    Ok((pipe, deployed))
}

fn environment(launch: &Launch) -> Result<BTreeMap<String, String>, Failure> {
    let mut all = launch.env.clone();
    for name in &launch.send_env {
        let unfit = |why: &str| {
            Failure::new(Stage::Start, Kind::Configuration, format!("`{name}` of `send_env` {why}"))
                .remedy(remedy::EXPORT_VARIABLE.with([("variable", name.as_str())]))
        };
        let value = std::env::var(name).map_err(|error| match error {
            std::env::VarError::NotPresent => unfit("is not set where railgauge runs"),
            std::env::VarError::NotUnicode(_) => unfit("is not UTF-8"),
        })?;
        if value.contains('\n') {
            return Err(unfit("holds a line break"));
        }
        all.insert(name.clone(), value);
    }
    Ok(all)
}

fn words(way: &dyn Connection, launch: &Launch, binary: &AgentBinary, env: usize) -> Vec<String> {
    let images = binary.images().iter().map(|image| {
        let path = if way.may_share_files() { image.path.display().to_string() } else { String::new() };
        format!("{}={}={path}", image.machine, image.hash)
    });
    let images: Vec<String> = images.collect();
    let directory = launch.agent_dir.as_deref().unwrap_or_default();
    let (env, keep) = (env.to_string(), if launch.keep_agent { "keep" } else { "" });
    let limit = launch.timeout.as_secs().saturating_add(1).to_string();
    let arguments = ["two words", script::START, directory, &env, keep, &limit].into_iter();
    script::sh(script::RAISE, arguments.chain(images.iter().map(String::as_str)))
}

enum Refused {
    Known(Trouble),
    Script(String),
}

impl From<Trouble> for Refused {
    fn from(trouble: Trouble) -> Self {
        Self::Known(trouble)
    }
}

/// Follows the script until the agent's file is in place, and sends it if needed. Returns the agent for the host, and its directory there;
/// `None` where it runs in place.
async fn place<'b>(
    talk: &mut Talk,
    launch: &Launch,
    binary: &'b AgentBinary,
    progress: &Progress,
) -> Result<(&'b Arc<Image>, Option<String>), Refused> {
    let (mut image, mut directory) = (None, None);
    let mut doing = "host inspection failed".to_owned();
    let mut next = talk.answer().await;
    loop {
        let Some(line) = next else { return Err(Refused::Script(doing)) };
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        next = match (word, image, &directory) {
            ("machine", ..) => {
                image = Some(image_for(rest, binary)?);
                talk.answer().await
            }
            ("in-place", Some(image), _) => return Ok((image, None)),
            ("directory", ..) => {
                directory = Some(rest.to_owned());
                talk.answer().await
            }
            ("have", Some(image), Some(_)) => return Ok((image, directory)),
            ("missing", Some(image), Some(directory)) => {
                progress.to(Stage::Deploy, "sending the agent");
                doing = format!("the agent could not be sent to {directory}");
                match rest {
                    "gzip" => talk.send(image.packed_upload().await).await,
                    _ => talk.send(&image.upload()).await,
                }
            }
            ("short", _, Some(directory)) => {
                return Err(Refused::Script(format!("the agent could not be written to {directory}")));
            }
            ("differs", Some(image), Some(directory)) => {
                let bytes = image.bytes.len();
                return Err(Refused::Script(format!(
                    "the agent arrived damaged in {directory}: {rest} of {bytes} bytes, or another hash; it was removed"
                )));
            }
            ("stored", ..) => talk.answer().await,
            _ => match refusal(word, rest, launch) {
                Some(trouble) => return Err(trouble.into()),
                None => talk.answer().await,
            },
        };
    }
}

fn image_for<'b>(machine: &str, binary: &'b AgentBinary) -> Result<&'b Arc<Image>, Trouble> {
    if machine.trim().is_empty() {
        let cause = "the host's `uname -m` says nothing";
        return Err(Trouble::lasting(Stage::Deploy, Kind::Configuration, cause).remedy(remedy::INSTALL_COREUTILS));
    }
    binary.image(&Machine::of_uname(machine)).map_err(|failure| Trouble { failure, passing: false })
}

/// What an answer says is wrong with the way to the host, or with the agent's directory there.
fn refusal(word: &str, rest: &str, launch: &Launch) -> Option<Trouble> {
    let refused = |cause: &str| Trouble::lasting(Stage::Deploy, Kind::Configuration, cause);
    Some(match word {
        "mangled" => refused("the launcher's command does not pass words on as they are").remedy(remedy::PASS_WORDS_ON),
        "homeless" => refused("there is no home directory on the host").remedy(remedy::AGENT_DIR),
        "open" => refused(&format!("others may write to the agent's directory there (mode {rest})"))
            .remedy(remedy::AGENT_DIR_CHMOD.with(launch.agent_dir.as_deref().map(|named| ("directory", named)))),
        "above" => refused(&format!("others could exchange the agent's directory there: {rest}"))
            .remedy(remedy::AGENT_DIR_PARENTS),
        "foreign" => refused(&format!("the agent's directory there belongs to another user (uid {rest})"))
            .remedy(remedy::AGENT_DIR),
        _ => return None,
    })
}
