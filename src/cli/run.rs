//! `railgauge run PLAN`: the main job.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use sha2::{Digest, Sha256};

use super::{Common, Exit, Misuse, common::print};
use crate::{
    analysis::{
        journal, localise,
        results::results,
        rows::{ceilings, rows},
    },
    cluster::AgentBinary,
    plan::{self, Plan, model::Launcher},
    report,
    run::{
        confirm::FollowUp,
        directory::Directory,
        event::{Case, Event},
        execute::{self, End, Past},
        journal::Journal,
        progress::Progress,
        spine::{Halt, Spine},
    },
};

/// Arguments of `railgauge run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan to run; with --resume it may be left out
    #[arg(required_unless_present = "resume")]
    plan: Option<PathBuf>,
    /// The run directory to make [default: reports/<plan name>-<UTC time>]
    #[arg(short, long, value_name = "DIR", conflicts_with = "resume")]
    output: Option<PathBuf>,
    /// Go on with an earlier run: measure only what is missing or failed
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Print the verdicts as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Runs a plan, or takes an earlier run up again.
///
/// # Errors
/// What keeps a run from starting at all: the run directory, the agent binary, the journal.
pub fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    let ready = match &args.resume {
        Some(path) => resume(path, &args),
        None => fresh(&args, common),
    };
    let Start { plan, directory, past, first } = match ready? {
        Ok(start) => start,
        Err(exit) => return Ok(exit),
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let end = runtime.block_on(async {
        let binary = AgentBinary::find()?;
        let journal = Journal::open(&directory.journal(), &directory.reserve())
            .with_context(|| format!("no space for results in {}", directory.path().display()))?;
        let spine = Spine::new(journal, &directory.log(), Progress::new(common.quiet, common.verbose > 0))?;
        spine.emit(first);
        tokio::spawn(interrupts(spine.clone()));
        let path = directory.journal();
        let follow_up: FollowUp = Arc::new(move || follow_up(&path));
        anyhow::Ok(execute::execute(Arc::new(plan), &directory, past, binary, follow_up, &spine).await)
    });
    // Agents that do not say goodbye end by themselves once their pipe is closed.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    let end = match end {
        Ok(end) => end,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(Exit::Unable);
        }
    };
    finish(&directory, end, &args, common)
}

/// What analysis wants to be measured beside what the journal holds.
fn follow_up(path: &Path) -> Result<Vec<Case>, String> {
    let journal = journal::read(path).map_err(|error| error.to_string())?;
    let results = results(&journal)?;
    let rows = rows(&journal, &results, &ceilings(&journal, &results));
    Ok(localise::further(&journal, &results, &rows))
}

/// Draws the report, says what the run came to, and answers with the exit code.
fn finish(directory: &Directory, end: End, args: &Args, common: &Common) -> anyhow::Result<Exit> {
    let place = directory.path().display();
    let resume = format!("railgauge run --resume {place}");
    let exit = match report::write(directory.path()) {
        Ok(written) => {
            if args.json {
                print(&written.verdicts.json()?)?;
            } else {
                let colour = common.colour() && std::io::stdout().is_terminal();
                print(&report::text::summary(&written.view, &written.page, colour))?;
            }
            super::report::exit(&written.verdicts)
        }
        Err(error) => {
            eprintln!("error: everything measured is in {place}, but the report could not be written: {error}");
            eprintln!("help: make room and run `railgauge report {place}`");
            Exit::Unable
        }
    };
    Ok(match end {
        End::Complete => exit,
        End::Interrupted => {
            eprintln!("interrupted; go on with: {resume}");
            Exit::Interrupted
        }
        End::Prevented(why) => {
            eprintln!("error: {why}");
            eprintln!("help: go on with: {resume}");
            Exit::Unable
        }
    })
}

/// All a run needs before anything is touched.
struct Start {
    plan: Plan,
    directory: Directory,
    past: Past,
    first: Event,
}

fn fresh(args: &Args, common: &Common) -> anyhow::Result<Result<Start, Exit>> {
    let path = args.plan.as_deref().context("no plan given")?;
    let loaded = match plan::load(path) {
        Ok(loaded) => loaded,
        Err(mistakes) => {
            eprint!("{}", mistakes.render(common.colour()));
            return Ok(Err(Exit::Wrong));
        }
    };
    let place = args.output.clone();
    let place = place.unwrap_or_else(|| Directory::default_path(&loaded.plan.name, jiff::Timestamp::now()));
    let made = Directory::create(&place).map_err(anyhow::Error::msg).and_then(|directory| {
        std::fs::write(directory.plan(), &loaded.source)
            .with_context(|| format!("no space for results in {}", place.display()))?;
        Ok(directory)
    });
    let directory = match made {
        Ok(directory) => directory,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(Err(Exit::Unable));
        }
    };
    let first = Event::Started {
        run_id: directory.run_id(),
        plan: loaded.plan.name.clone(),
        plan_hash: Sha256::digest(&loaded.source).iter().map(|byte| format!("{byte:02x}")).collect(),
        resolved: Box::new(loaded.plan.clone()),
        version: env!("CARGO_PKG_VERSION").into(),
        controller: controller(),
        launcher: match &loaded.plan.launch.via {
            Launcher::Local => "agents as processes of this machine".into(),
            Launcher::Ssh(_) => "ssh".into(),
            Launcher::Command(words) => format!("command: {}", words.join(" ")),
        },
    };
    Ok(Ok(Start { plan: loaded.plan, directory, past: Past::default(), first }))
}

fn resume(path: &Path, args: &Args) -> anyhow::Result<Result<Start, Exit>> {
    let directory = Directory::open(path).map_err(Misuse)?;
    let journal = journal::read(&directory.journal())?;
    if let Some(given) = &args.plan
        && std::fs::read(given)? != std::fs::read(directory.plan())?
    {
        eprintln!("error: {} is not the plan of the run in {}", given.display(), path.display());
        eprintln!("help: leave the plan out, or start a new run with it");
        return Ok(Err(Exit::Wrong));
    }
    // Wrong bytes count as measured: a second try must not hide them.
    let measured = journal.tries.iter().filter(|tried| tried.result.is_ok());
    let done = measured.map(|tried| (tried.case, tried.repeat)).collect();
    let past = Past { cases: journal.cases, further: journal.further, done };
    Ok(Ok(Start { plan: journal.plan, directory, past, first: Event::Resumed }))
}

/// The first interrupt ends the run in good order, the second at once.
async fn interrupts(spine: Spine) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
        return;
    };
    tokio::select! {
        _ = int.recv() => {}
        _ = term.recv() => {}
    }
    spine.halt(Halt::Interrupted);
    int.recv().await;
    std::process::exit(130);
}

/// What the controller runs on, in words.
fn controller() -> String {
    let read = |path| std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    format!("{} {}", read("/proc/sys/kernel/hostname"), read("/proc/sys/kernel/osrelease"))
}
