//! The agent's file on a host: looked for, sent if it is not there, started, taken away. Works over every launcher
//! that reaches another file system; [`super::script`] says which files there are and why.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use railgauge_model::plan::model::Launch;
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};
use tokio::{
    io::AsyncWriteExt,
    time::{sleep, timeout},
};

use super::{
    binary::{AgentBinary, Image, Machine},
    child::child,
    explain,
    launcher::Connection,
    pipe::{Output, Pipe},
    progress::Progress,
    script,
    trouble::Trouble,
};

/// Time for what is left on a host when its agent is closed.
const CLEARANCE: Duration = Duration::from_secs(10);
/// Time for an agent to notice that its standard input ended.
const NOTICE: Duration = Duration::from_secs(1);

/// A started agent's traces on its host. Dropped without [`Deployed::clear`] it clears up in the background.
pub(crate) struct Deployed(Option<Traces>);

struct Traces {
    way: Box<dyn Connection>,
    /// The hash of its agent.
    hash: String,
    /// The agent's directory; `None` where it runs in place.
    directory: Option<String>,
    /// The process number that the host told at the start, before any greeting; 0 until then.
    starting: Arc<AtomicU32>,
    keep: bool,
}

impl Deployed {
    fn new(way: Box<dyn Connection>, image: &Image, directory: Option<String>, keep: bool) -> Self {
        Self(Some(Traces { way, hash: image.hash.clone(), directory, starting: Arc::default(), keep }))
    }

    /// Where the process number is to be put that the host tells at the start.
    pub(crate) fn starting(&self) -> Arc<AtomicU32> {
        self.0.as_ref().map(|traces| Arc::clone(&traces.starting)).unwrap_or_default()
    }

    /// Ends an agent on its host that did not end when it was asked to.
    pub(crate) async fn end(&self, pid: u32) {
        if let Some(traces) = &self.0 {
            traces.end(pid).await;
        }
    }

    /// Whether an agent may go on after the streams to it are cut.
    pub(crate) fn may_outlive(&self) -> bool {
        self.0.as_ref().is_some_and(|traces| traces.way.may_outlive())
    }

    /// Takes the agent's file away unless it is to stay, and lets the host go. `pid` is the ended agent.
    pub(crate) async fn clear(mut self, pid: u32) {
        if let Some(traces) = self.0.take() {
            traces.clear(pid).await;
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
                let pid = traces.starting.load(Ordering::Relaxed);
                traces.end(pid).await;
                traces.clear(pid).await;
                drop(clearing);
            });
        }
    }
}

/// How many hosts are being cleared up in the background.
static CLEARING: AtomicUsize = AtomicUsize::new(0);

/// One host that is being cleared up.
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

/// Waits until the hosts of tries that were given up are cleared up, at most `limit`: an agent that never greeted is ended, its
/// file is taken away. What is cut off here the next run on the host sweeps.
pub async fn cleared(limit: Duration) {
    let _ = timeout(limit, async {
        while CLEARING.load(Ordering::SeqCst) > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

impl Traces {
    /// Ends an agent on its host, unless it is a process of our own.
    async fn end(&self, pid: u32) {
        if pid > 1 && !self.way.is_here() {
            run_briefly(&*self.way, &script::sh(script::END, [pid.to_string().as_str(), &self.hash])).await;
        }
    }

    async fn clear(self, pid: u32) {
        if let Self { hash, directory: Some(directory), .. } = &self {
            let (pid, keep) = (pid.to_string(), if self.keep { "keep" } else { "" });
            let words = script::sh(script::CLEAR, [directory.as_str(), hash, &pid, keep]);
            // A host that does not answer keeps the file; the next run on it sweeps.
            run_briefly(&*self.way, &words).await;
        }
        self.way.close().await;
    }
}

/// Runs a script whose answer nobody needs; a host that does not answer in time is left alone.
async fn run_briefly(way: &dyn Connection, words: &[String]) {
    let _ = timeout(CLEARANCE, async {
        if let Ok(pipe) = way.start(words).await {
            pipe.run(b"").await;
        }
    })
    .await;
}

/// Starts the agent over an opened way.
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
    let found = probe(&*way, launch, binary).await?;
    let image = binary.image(&found.machine).map_err(lasting)?;
    let (file, directory) = match found.place {
        AgentPlace::InPlace => (image.path.display().to_string(), None),
        AgentPlace::Directory { path, have } => {
            if !have {
                progress.to(Stage::Deploy, "sending the agent");
                store(&*way, &path, image).await?;
            }
            (path.clone(), Some(path))
        }
    };
    progress.to(Stage::Start, "starting the agent");
    let text = if directory.is_some() { script::START } else { script::START_IN_PLACE };
    let mut pipe =
        way.start(&script::sh(text, [&file, &image.hash, &env.len().to_string()].map(|word| &**word))).await?;
    let env: String = env.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    // Where the script has ended already, the conversation tells why.
    let _ = pipe.stdin.write_all(env.as_bytes()).await;
    Ok((pipe, Deployed::new(way, image, directory, launch.keep_agent)))
}

/// The environment of every agent: what the plan writes, and what it takes from this process's own.
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

/// What a look at a host found.
struct Probed {
    machine: Machine,
    place: AgentPlace,
}

/// Where the agent is to run.
enum AgentPlace {
    /// From the controller's own file, which the host sees too.
    InPlace,
    /// From the agent's directory, in which it is already, or not yet.
    Directory { path: String, have: bool },
}

/// Looks at a host: its architecture, the agent's directory, whether the agent is there.
async fn probe(way: &dyn Connection, launch: &Launch, binary: &AgentBinary) -> Result<Probed, Trouble> {
    let images = binary.images().iter().map(|image| {
        let path = if way.may_share_files() { image.path.display().to_string() } else { String::new() };
        format!("{}={}={path}", image.machine, image.hash)
    });
    let images: Vec<String> = images.collect();
    let directory = launch.agent_dir.as_deref().unwrap_or_default();
    let arguments = ["two words", directory].into_iter().chain(images.iter().map(String::as_str));
    let output = way.start(&script::sh(script::PROBE, arguments)).await?.run(b"").await;
    let mut found = None;
    let configuration = |cause: String| Trouble::lasting(Stage::Deploy, Kind::Configuration, cause);
    for line in script::answers(&output.stdout) {
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match (word, &mut found) {
            ("mangled", _) => {
                return Err(configuration("the launcher's command does not pass words on as they are".to_owned())
                    .remedy(remedy::PASS_WORDS_ON));
            }
            ("homeless", _) => {
                return Err(
                    configuration("there is no home directory on the host".to_owned()).remedy(remedy::AGENT_DIR)
                );
            }
            ("open", _) => {
                return Err(configuration(format!("others may write to the agent's directory there (mode {rest})"))
                    .remedy(
                        remedy::AGENT_DIR_CHMOD.with(launch.agent_dir.as_deref().map(|named| ("directory", named))),
                    ));
            }
            ("above", _) => {
                return Err(configuration(format!("others could exchange the agent's directory there: {rest}"))
                    .remedy(remedy::AGENT_DIR_PARENTS));
            }
            ("foreign", _) => {
                return Err(configuration(format!("the agent's directory there belongs to another user (uid {rest})"))
                    .remedy(remedy::AGENT_DIR));
            }
            ("machine", _) if rest.trim().is_empty() => {
                return Err(
                    configuration("the host's `uname -m` says nothing".to_owned()).remedy(remedy::INSTALL_COREUTILS)
                );
            }
            ("machine", found) => *found = Some((Machine::of_uname(rest), None)),
            ("in-place", Some((_, place))) => *place = Some(AgentPlace::InPlace),
            ("directory", Some((_, place))) => {
                *place = Some(AgentPlace::Directory { path: rest.to_owned(), have: false })
            }
            ("have", Some((_, Some(AgentPlace::Directory { have, .. })))) => *have = true,
            _ => {}
        }
    }
    match found {
        Some((machine, Some(place))) => Ok(Probed { machine, place }),
        Some((machine, None)) if binary.image(&machine).is_err() => {
            // `image` says it best; nothing was written to this host.
            Ok(Probed { machine, place: AgentPlace::InPlace })
        }
        _ => Err(explain::script(&output, "the look at the host failed", way)),
    }
}

/// Sends the agent into its directory.
async fn store(way: &dyn Connection, directory: &str, image: &Arc<Image>) -> Result<(), Trouble> {
    let words = script::sh(script::STORE, [directory, &image.hash]);
    let output: Output = way.start(&words).await?.run(&image.bytes).await;
    let what = match script::answers(&output.stdout).first().map(String::as_str) {
        Some("stored") => return Ok(()),
        Some("short") => format!("the agent could not be written to {directory}"),
        Some(differs) if differs.starts_with("differs") => {
            let arrived = differs.trim_start_matches("differs").trim();
            format!(
                "the agent arrived damaged in {directory}: {arrived} of {} bytes, or another hash; it was removed",
                image.bytes.len()
            )
        }
        _ => format!("the agent could not be sent to {directory}"),
    };
    Err(explain::script(&output, &what, way))
}
