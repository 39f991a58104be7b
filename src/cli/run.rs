//! `railgauge run PLAN`: the main job.

use std::{
    error::Error,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use railgauge_analysis::{
    journal::{self, plan_hash},
    localise,
    results::{results, settled},
    rows::rows,
    switches,
};
use railgauge_frame::Parquet;
use railgauge_model::{
    border::text::{path_quoted, path_text},
    directory::{Directory, DirectoryError},
    files,
    journal::{
        event::Event,
        line::Tail,
        writer::{Claim, Journal},
    },
    plan::{self, Loaded, Plan, allocation::PLACEHOLDER},
};
use railgauge_report as report;
use railgauge_wire::{Failure, GigabitsPerSecond, Kind, Stage, remedy};
use tokio::signal::unix::{SignalKind, signal};

use super::{
    Common, Exit, Misuse, dry_run, found_again, hostname,
    report::{exit_of, written_out},
    runtime,
    selection::Selection,
    tell,
};
use crate::{
    cluster::{self, AgentBinary},
    live::{self, Listening, LiveError, Serving},
    run::{
        aside::aside,
        confirm::{Asked, FollowUp},
        execute::{self, Farewell, Past, RunEnd},
        progress::Progress,
        spine::{Halt, Spine},
    },
};

/// Arguments of `railgauge run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan to run; optional with --resume
    #[arg(required_unless_present = "resume")]
    plan: Option<PathBuf>,
    /// The run directory to create [default: reports/<plan name>-<UTC time>]
    #[arg(short, long, value_name = "DIR", conflicts_with = "resume")]
    output: Option<PathBuf>,
    /// Resume an earlier run: measure only what has no trusted value
    #[arg(long, value_name = "DIR", conflicts_with_all = ["hosts", "tests", "repeats"])]
    resume: Option<PathBuf>,
    /// Serve a page of the run while it runs, on this address [default: 127.0.0.1 and a free port]; its URL is printed
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1", value_parser = live::address)]
    live: Option<SocketAddr>,
    /// Show hosts, tests, time and bytes of the run, with -v also its rounds; contacts no host
    #[arg(long, conflicts_with = "resume")]
    dry_run: bool,
    /// With --dry-run: rate of every link in Gb/s, for upper bounds of the bytes
    #[arg(long, value_name = "GBPS", value_parser = dry_run::rate, requires = "dry_run")]
    link_rate: Option<GigabitsPerSecond>,
    #[command(flatten)]
    selection: Selection,
    /// Print the verdicts, or what --dry-run shows, as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Runs a plan, or takes an earlier run up again.
///
/// # Errors
/// What keeps a run from starting at all: the run directory, the agent binary, the journal.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    if let (true, Some(plan)) = (args.dry_run, &args.plan) {
        return dry_run::run(plan, &args.selection, args.link_rate, args.json, common);
    }
    // Before anything is made or touched.
    let listening = args.live.map(Listening::at).transpose()?;
    let start = match &args.resume {
        Some(path) => Some(resume(path, args.plan.as_deref())?),
        None => fresh(&args, common)?,
    };
    match start {
        Some(start) => drive(start, listening, Shown::of(args.json), common),
        None => Ok(Exit::Wrong),
    }
}

/// Runs a plan in a new directory and shows nothing on stdout: for a kit.
///
/// # Errors
/// As [`run`].
pub(super) fn run_in(place: &Path, loaded: Loaded, binary: AgentBinary, common: &Common) -> anyhow::Result<Exit> {
    drive(begin(place, loaded, binary)?, None, Shown::Nothing, common)
}

/// Serves the page of a run and says where, whatever else is to be said.
fn served(page: Listening, directory: &Directory, spine: &Spine) -> Result<Serving, LiveError> {
    let (url, is_local) = (page.url(), page.is_local());
    let course = spine.course();
    let serving = page.serve(directory.journal(), Arc::new(move || course.lock().to_string()))?;
    tell(format_args!("live: {url}"));
    if !is_local {
        tell(
            "warning: whoever has this URL, or sees the traffic to it, can read hosts, devices, settings and results of this run: it is not encrypted",
        );
    }
    Ok(serving)
}

/// What of a finished run goes to stdout.
#[derive(Debug, Clone, Copy)]
enum Shown {
    Summary,
    Json,
    Nothing,
}

impl Shown {
    const fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Summary }
    }
}

fn drive(start: Start, page: Option<Listening>, shown: Shown, common: &Common) -> anyhow::Result<Exit> {
    let Start { plan, binary, directory, journal, past, first } = start;
    let identity = journal.identity().with_context(|| unwritable(&directory))?;
    let progress = Progress::new(common.quiet, common.verbose);
    let spine = Spine::new(journal, &directory.log(), progress).with_context(|| unwritable(&directory))?;
    let _serving = page.map(|page| served(page, &directory, &spine)).transpose()?;
    let runtime = runtime()?;
    let (end, farewell) = runtime.block_on(async {
        tokio::spawn(interrupts(spine.clone()));
        tokio::spawn({
            let spine = spine.clone();
            async move { spine.halt(Halt::Revoked(cluster::revoked().await)) }
        });
        spine.emit(first);
        spine.sync();
        let path = directory.journal();
        let follow_up: FollowUp = Arc::new(move || match identity.is_at(&path) {
            true => follow_up(&path),
            false => Err("the run's directory was moved or replaced".into()),
        });
        execute::execute(Arc::new(plan), &directory, past, binary, follow_up, &spine).await
    });
    // The report tells a run that goes on from one that ended: it ended.
    spine.close();
    // Another run may be there by now, and its report would be taken for this one's.
    let gone = || !identity.is_at(&directory.journal());
    let told = catch_unwind(AssertUnwindSafe(|| {
        let exit = (!gone()).then(|| runtime.block_on(finish(&directory, end, shown, common, &spine)));
        exit.filter(|_| !gone()).unwrap_or_else(|| Ok(moved(&directory)))
    }));
    // Agents are let go whatever becomes of the page.
    runtime.block_on(let_go(farewell, common));
    // Agents that do not say goodbye end by themselves once their pipe is closed.
    runtime.shutdown_timeout(GOODBYE);
    told.unwrap_or_else(|panic| resume_unwind(panic))
}

/// How long agents may take for their goodbye before somebody who waits at a terminal is told.
const GOODBYE: Duration = Duration::from_secs(1);

/// Waits until the agents have said goodbye.
async fn let_go(farewell: Farewell, common: &Common) {
    let mut said = std::pin::pin!(farewell.said());
    if tokio::time::timeout(GOODBYE, &mut said).await.is_err() {
        if !common.quiet {
            tell(format_args!("waiting for agents that have not ended yet"));
        }
        said.await;
    }
}

/// Says that nothing is known of this run by looking at its directory.
fn moved(directory: &Directory) -> Exit {
    let place = path_text(directory.path());
    tell(format_args!(
        "error: {place} is no longer the directory of this run: it was moved, replaced or removed during the run"
    ));
    tell(format_args!("help: if it was moved, all results are in the new place: run `railgauge report` there"));
    Exit::Unable
}

fn unwritable(directory: &Directory) -> String {
    format!("results cannot be written to {}", path_text(directory.path()))
}

/// What is wrong with the directory that was given, as what it is: the user's mistake, or the machine's.
fn refused(error: DirectoryError) -> anyhow::Error {
    match error {
        DirectoryError::Unusable { .. } | DirectoryError::Held { .. } => error.into(),
        error => Misuse(error.to_string()).into(),
    }
}

/// Opens a claimed journal for writing.
fn begun(directory: &Directory, claim: Claim, tail: Tail) -> anyhow::Result<Journal> {
    claim.go_on(tail, &directory.reserve()).with_context(|| unwritable(directory))
}

/// What analysis wants to be measured beside what the journal holds.
fn follow_up(path: &Path) -> Result<Asked, Box<dyn Error + Send + Sync>> {
    let journal = journal::read(path)?;
    let results = results(&journal)?;
    let rows = rows(&journal, &results);
    let hosts_first = localise::further(&journal, &results, &rows);
    // A link is asked for when no host, NIC or path is left to be settled: most that looks like a link is one of these.
    Ok(match hosts_first.is_empty() {
        true => Asked { cases: switches::further(&journal, &results, &rows), links: true },
        false => Asked { cases: hosts_first, links: false },
    })
}

/// How long drawing the report may take once the run is interrupted.
const PATIENCE: Duration = Duration::from_secs(10);

/// Draws the report, says what the run came to. Returns the exit code.
async fn finish(
    directory: &Directory,
    end: RunEnd,
    shown: Shown,
    common: &Common,
    spine: &Spine,
) -> anyhow::Result<Exit> {
    let place = path_text(directory.path());
    let quoted = path_quoted(directory.path());
    let resume = format!("railgauge run --resume {quoted}");
    let drawing = {
        let path = directory.path().to_owned();
        move || report::write(&path, &Parquet)
    };
    let exit = match aside(spine, PATIENCE, drawing).await.context("cannot write the report")? {
        Some(Ok(written)) => match shown {
            Shown::Nothing => exit_of(written.verdicts.status),
            shown => written_out(&written, matches!(shown, Shown::Json), common)?,
        },
        None => {
            tell(format_args!("the report takes long and was not written; write it with: railgauge report {quoted}"));
            Exit::Interrupted
        }
        Some(Err(error)) => {
            tell(format_args!("error: all results are in {place}, but the report could not be written: {error}"));
            tell(format_args!("help: fix this and run `railgauge report {quoted}`"));
            Exit::Unable
        }
    };
    Ok(match end {
        RunEnd::Complete => exit,
        RunEnd::Interrupted => {
            tell(format_args!("interrupted; continue with: {resume}"));
            Exit::Interrupted
        }
        RunEnd::Revoked(why) => {
            tell(format_args!("interrupted: {why}; continue in a new allocation with: {resume}"));
            Exit::Interrupted
        }
        RunEnd::Prevented(why, remedy) => {
            tell(format_args!("error: {why}"));
            match remedy {
                Some(remedy) => tell(format_args!("help: {remedy}, and run the plan anew")),
                None => tell(format_args!("help: continue with: {resume}")),
            }
            Exit::Unable
        }
    })
}

/// All a run needs before anything is touched.
struct Start {
    plan: Plan,
    binary: AgentBinary,
    directory: Directory,
    journal: Journal,
    past: Past,
    first: Event,
}

/// A new run; `None` after the mistakes of its plan were told.
fn fresh(args: &Args, common: &Common) -> anyhow::Result<Option<Start>> {
    let path = args.plan.as_deref().context("no plan given")?;
    let Some(loaded) = args.selection.load_of_hosts(path, common)? else { return Ok(None) };
    // Names that stand for nodes nobody has given yet: a run of them could never be resumed.
    if loaded.plan.hosts.iter().any(|host| host.name.starts_with(PLACEHOLDER)) {
        let cause = "this is no Slurm allocation, and the plan takes its hosts from one";
        let nodes = loaded.plan.hosts.len().to_string();
        let remedy = remedy::SLURM_NO_ALLOCATION.with([("plan", path_quoted(path)), ("nodes", nodes)]);
        return Err(Failure::new(Stage::Connect, Kind::Configuration, cause).remedy(remedy).into());
    }
    // Before anything is made: a run directory that holds nothing would stand in the way of the next try.
    let binary = AgentBinary::find()?;
    let place = args.output.clone();
    let place = place.unwrap_or_else(|| Directory::default_path(&loaded.plan.name, jiff::Timestamp::now()));
    begin(&place, loaded, binary).map(Some)
}

/// Makes the directory of a new run.
fn begin(place: &Path, mut loaded: Loaded, binary: AgentBinary) -> anyhow::Result<Start> {
    // The turn is recorded with the plan: going on with the run, and its report, take it from there.
    loaded.plan.rotate = loaded.plan.rotate.map(|_| turn(jiff::Timestamp::now()));
    let (directory, claim) = Directory::create(place).map_err(refused)?;
    files::write(&directory.plan(), &loaded.source).with_context(|| unwritable(&directory))?;
    let first = Event::Started {
        run_id: directory.run_id(),
        plan: loaded.plan.name.clone(),
        plan_hash: plan_hash(&loaded.source, loaded.plan.subset.as_ref()),
        resolved: Box::new(loaded.plan.clone()),
        version: env!("CARGO_PKG_VERSION").into(),
        controller: controller(),
        launcher: loaded.plan.launch.via.way().words,
    };
    let tail = Tail::of_new_run().context("no random bytes for the name of the run")?;
    let journal = begun(&directory, claim, tail)?;
    directory.sync().with_context(|| unwritable(&directory))?;
    Ok(Start { plan: loaded.plan, binary, directory, journal, past: Past::default(), first })
}

/// An earlier run, taken up again. A plan that is given must be the plan of that run.
fn resume(path: &Path, given: Option<&Path>) -> anyhow::Result<Start> {
    // Claimed before it is read: what is read here is what is gone on with. Nothing is changed before all of it is found
    // to be a run that can be gone on with.
    let (directory, claim) = Directory::open(path).map_err(refused)?;
    let earlier = journal::read(&directory.journal())?;
    if let Some(given) = given {
        let given_name = path_text(given);
        let plan = plan::text_of(given).map_err(|fault| Misuse(format!("{given_name}: the plan {fault}")))?;
        if plan_hash(plan.as_bytes(), earlier.plan.subset.as_ref()) != earlier.plan_hash {
            let run = path_text(path);
            let cause =
                format!("{given_name} is not the plan of the run in {run}: leave it out, or start a new run with it");
            return Err(Misuse(cause).into());
        }
    }
    let done = settled(&earlier)?;
    let soaked = earlier.soaked.iter().map(|part| Duration::from(part.until.saturating_sub(part.from))).sum();
    let past = Past { soaked, cases: earlier.cases, further: earlier.further, done, configured: earlier.configured };
    let (mut plan, binary) = (earlier.plan, AgentBinary::find()?);
    found_again(&mut plan)?;
    let first = Event::Resumed { unread: earlier.damage.iter().filter_map(|damage| damage.numbers).collect() };
    let journal = begun(&directory, claim, earlier.tail)?;
    // Of the killed process that is resumed, however short ago: its claim is ours.
    files::sweep(directory.path(), Duration::ZERO).with_context(|| unwritable(&directory))?;
    Ok(Start { plan, binary, directory, journal, past, first })
}

/// The turn of a plan that rotates: days since 1970, UTC.
fn turn(now: jiff::Timestamp) -> u64 {
    u64::try_from(now.as_second().div_euclid(86_400)).unwrap_or_default()
}

/// The first Ctrl-C, `kill` or hang-up of the terminal stops the run cleanly, a second Ctrl-C or `kill` at once.
pub(super) async fn interrupts(spine: Spine) {
    let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
        spine.log("controller", "cannot catch signals: an interrupt ends the run at once");
        return;
    };
    // Ctrl-C comes from a person. The others may come from the scheduler whose allocation this is, and then it knows why.
    let revoked = tokio::select! {
        _ = int.recv() => None,
        _ = term.recv() => cluster::ending().await,
        () = hang_up() => cluster::ending().await,
    };
    spine.halt(revoked.map_or(Halt::Interrupted, Halt::Revoked));
    tokio::select! {
        _ = int.recv() => {}
        _ = term.recv() => {}
    }
    cluster::end_all();
    std::process::exit(Exit::Interrupted.code().into());
}

/// Resolves when the terminal is closed; never under `nohup`, which lets a process start with that signal ignored.
async fn hang_up() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    // proc_pid_status(5): a mask in hexadecimal, signal 1 in its lowest bit.
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let kind = SignalKind::hangup();
    match signal(kind) {
        Ok(mut heard) if mask.is_some_and(|mask| mask >> (kind.as_raw_value() - 1) & 1 == 0) => _ = heard.recv().await,
        _ => std::future::pending().await,
    }
}

/// What the controller runs on, in words.
fn controller() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", hostname().unwrap_or_default(), release.trim())
}
