//! `railgauge submit PLAN`: a plan as a batch job of Slurm.

mod job;
mod script;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use railgauge_model::{
    border::text::{path_quoted, path_text},
    directory::{Directory, JOURNAL},
    plan::{Plan, allocation::PLACEHOLDER, model::Launcher},
};

use self::job::{Job, Watched};
use super::{
    Common, Exit, Misuse,
    common::{print, tell},
};
use crate::analysis::journal;

/// Arguments of `submit`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan; optional with --resume
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    plan: Option<PathBuf>,
    /// The run directory that the job creates [default: reports/<plan name>-<UTC time>]
    #[arg(short, long, value_name = "DIR", conflicts_with = "resume")]
    output: Option<PathBuf>,
    /// Resume an earlier run in a new job on the same nodes
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// End as soon as the job is submitted
    #[arg(long)]
    no_wait: bool,
    /// Print the batch script, and submit nothing
    #[arg(long)]
    print: bool,
}

/// Submits a plan, and waits for the run's end.
///
/// # Errors
/// The plan cannot be submitted, or nothing is known of the job any more.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    let Some(work) = work(&args, common)? else { return Ok(Exit::Wrong) };
    let script = script::script(&work)?;
    if args.print {
        print(&script)?;
        return Ok(Exit::Passed);
    }
    if let Some(parent) = work.log.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", path_text(parent)))?;
    }
    let job = Job::submit(&script)?;
    common.say(format_args!("job {}: run directory {}", job.number(), path_text(&work.directory)));
    common.say(format_args!("job {}: output in {}", job.number(), path_text(&work.log)));
    if args.no_wait {
        print(&format!("{}\n", job.number()))?;
        return Ok(Exit::Passed);
    }
    let watched = job.watch(|line| common.say(line))?;
    told(&job, &watched, &work)
}

/// What is submitted.
struct Work {
    plan: Plan,
    /// Words of the run after `railgauge run`.
    run: Vec<String>,
    directory: PathBuf,
    log: PathBuf,
}

impl Work {
    /// Whether the plan's hosts are names, and not only a number.
    fn is_named(&self) -> bool {
        !self.plan.hosts.iter().all(|host| host.name.starts_with(PLACEHOLDER))
    }
}

/// Reads what is to be submitted; `None` after the mistakes of a plan were told.
fn work(args: &Args, common: &Common) -> anyhow::Result<Option<Work>> {
    let here = std::env::current_dir().context("the current directory is gone")?;
    let text = |path: &Path| {
        let words = path.to_str().map(str::to_owned);
        words.ok_or_else(|| Misuse(format!("the path {} is not UTF-8", path_text(path))))
    };
    let work = match (&args.resume, &args.plan) {
        (Some(directory), _) => {
            let directory = here.join(directory);
            let plan = journal::read(&directory.join(JOURNAL))?.plan;
            let run = vec!["--resume".to_owned(), text(&directory)?];
            Work { plan, run, log: beside(&directory), directory }
        }
        (None, Some(path)) => {
            // Its nodes are those of the job, whatever allocation this is.
            let Some(loaded) = common.plan_in(path, None) else { return Ok(None) };
            let default = || Directory::default_path(&loaded.plan.name, jiff::Timestamp::now());
            let directory = here.join(args.output.clone().unwrap_or_else(default));
            let run = vec![text(&here.join(path))?, "--output".to_owned(), text(&directory)?];
            Work { plan: loaded.plan, run, log: beside(&directory), directory }
        }
        (None, None) => return Err(Misuse("no plan given".into()).into()),
    };
    if !matches!(work.plan.launch.via, Launcher::Slurm(_)) {
        let via = work.plan.launch.via.word();
        return Err(
            Misuse(format!("the plan reaches its hosts via \"{via}\"; only via = \"slurm\" can be submitted")).into()
        );
    }
    Ok(Some(work))
}

/// Where the output of a job goes: a file beside the run directory, which the run itself makes.
fn beside(directory: &Path) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(".slurm.log");
    name.into()
}

/// Says how the job ended. Returns the exit code of the run in it.
fn told(job: &Job, watched: &Watched, work: &Work) -> anyhow::Result<Exit> {
    let output = fs::read(&work.log);
    match &output {
        Ok(bytes) => print(&String::from_utf8_lossy(bytes))?,
        Err(error) => tell(format_args!("the job's output cannot be read here: {}: {error}", path_text(&work.log))),
    }
    let exit = watched.exit();
    let number = job.number();
    match (exit, watched.ending()) {
        // A run that was told to end, shortly before its time limit or by an interrupt here, has a hint for inside an allocation.
        (Some(Exit::Interrupted), None) => tell(format_args!("job {number} ended before its run was complete")),
        (Some(exit), None) => return Ok(exit),
        (_, Some(why)) => tell(format_args!("job {number} {why}")),
        (None, None) => {
            tell(format_args!(
                "error: job {number} ended with a status that no run of railgauge has: {}",
                watched.status()
            ));
        }
    }
    if work.directory.join(JOURNAL).exists() {
        let quoted = path_quoted(&work.directory);
        tell(format_args!("help: continue with: railgauge submit --resume {quoted}"));
    }
    Ok(exit.unwrap_or(Exit::Unable))
}
