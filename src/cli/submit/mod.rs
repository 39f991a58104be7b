//! `railgauge submit PLAN`: a plan as a batch job of Slurm.

mod interrupts;
mod job;
mod script;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use railgauge_analysis::journal;
use railgauge_model::{
    border::text::{path_quoted, path_text},
    directory::{Directory, JOURNAL, VERDICTS},
    plan::model::Launcher,
};
use serde_json::json;

use self::{
    interrupts::Interrupts,
    job::{Job, Watched},
    script::Work,
};
use super::{Common, Exit, Misuse, print, run_directory, tell};

/// Version of the JSON document.
const VERSION: u32 = 1;

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
    /// Print the verdicts of the run, or with --no-wait the job, as JSON on stdout
    #[arg(long, conflicts_with = "print")]
    json: bool,
}

/// Submits a plan, and waits for the run's end.
///
/// # Errors
/// The plan cannot be submitted, its job can never start, or nothing is known of the job any more.
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
    let interrupts = Interrupts::noted();
    let before = verdicts(&work.directory);
    let Some(job) = Job::submit(&script, &interrupts)? else {
        let name = script::job_name(&work.plan);
        tell(format_args!(
            "interrupted while sbatch submitted; see whether there is a job with: squeue --me --name={name}"
        ));
        return Ok(Exit::Interrupted);
    };
    common.say(format_args!("job {}: run directory {}", job.number(), path_text(&work.directory)));
    common.say(format_args!("job {}: output in {}", job.number(), path_text(&work.log)));
    if args.no_wait {
        let document = json!({
            "version": VERSION, "job": job.number(), "run": path_text(&work.directory), "log": path_text(&work.log),
        });
        common.answer(args.json, &document, |_| format!("{}\n", job.number()))?;
        return Ok(Exit::Passed);
    }
    let watched = job.watch(&interrupts, |line| common.say(line))?;
    match args.json {
        // What an earlier job left there is not of this one.
        true => verdicts(&work.directory)
            .filter(|after| before.as_ref() != Some(after))
            .map_or(Ok(()), |text| print(&text))?,
        false => output(&work)?,
    }
    match watched {
        Some(watched) => Ok(told(&job, &watched, &work)),
        None => Ok(forgotten(&job, &work, before.as_deref())),
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
            run_directory(&directory)?;
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

/// Prints the job's output.
fn output(work: &Work) -> anyhow::Result<()> {
    match fs::read(&work.log) {
        Ok(bytes) => print(&String::from_utf8_lossy(&bytes))?,
        Err(error) => tell(format_args!("the job's output cannot be read here: {}: {error}", path_text(&work.log))),
    }
    Ok(())
}

/// What a run directory says of how its run ended: the text of verdicts.json, if there is one.
fn verdicts(directory: &Path) -> Option<String> {
    fs::read_to_string(directory.join(VERDICTS)).ok()
}

/// Says that Slurm does not know any more how the job ended. Returns the exit code that the run left in its directory, if it did so
/// after the job was submitted.
fn forgotten(job: &Job, work: &Work, before: Option<&str>) -> Exit {
    let number = job.number();
    let after = verdicts(&work.directory).filter(|after| Some(after.as_str()) != before);
    let code = after.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok()?["run_exit_code"].as_u64());
    if let Some(exit) = code.and_then(|code| Exit::of_code(u8::try_from(code).ok()?)) {
        tell(format_args!("Slurm has forgotten job {number}; its run ended, and left its exit code"));
        return exit;
    }
    tell(format_args!(
        "error: Slurm has forgotten job {number}, and its run left no exit code: it did not come to its end"
    ));
    go_on(work);
    Exit::Unable
}

/// Says how to continue, if there is something to continue.
fn go_on(work: &Work) {
    if work.directory.join(JOURNAL).exists() {
        let quoted = path_quoted(&work.directory);
        tell(format_args!("help: continue with: railgauge submit --resume {quoted}"));
    }
}

/// Says how the job ended. Returns the exit code of the run in it.
fn told(job: &Job, watched: &Watched, work: &Work) -> Exit {
    let exit = watched.exit(work.directory.join(JOURNAL).exists());
    let number = job.number();
    match (exit, watched.ending()) {
        // A run that was told to end, shortly before its time limit or by an interrupt here, has a hint for inside an allocation.
        (Some(Exit::Interrupted), None) => tell(format_args!("job {number} ended before its run was complete")),
        (Some(exit), None) => return exit,
        (_, Some(why)) => tell(format_args!("job {number} {why}")),
        (None, None) => {
            tell(format_args!(
                "error: job {number} ended with a status that no run of railgauge has: {}",
                watched.status()
            ));
        }
    }
    go_on(work);
    exit.unwrap_or(Exit::Unable)
}
