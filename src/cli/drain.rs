//! `railgauge drain RUNS`: commands that take faulty hosts out of service. They are printed and not executed.

use jiff::{SignedDuration, Timestamp};

use super::{Common, Exit, no_run, print, tell};
use crate::night::{Lists, Nights, Scheduler, Standing};

/// Arguments of `drain`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A directory of run directories, a quoted pattern, or a run directory
    runs: String,
    /// The plan, where the directory holds runs of several
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Whose commands
    #[arg(long, value_enum, default_value = "slurm")]
    r#for: Scheduler,
    /// Print the commands that take back hosts that were faulty and that a later run measured as good
    #[arg(long)]
    undo: bool,
    /// Print hosts, reasons and both lists of commands as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the commands, one a line, on stdout; why there is none on stderr.
///
/// # Errors
/// There is no run, or stdout cannot be written.
pub(super) fn run(args: Args, _common: &Common) -> anyhow::Result<Exit> {
    let now = Timestamp::now();
    let nights = Nights::of(&args.runs, args.plan.as_deref(), now).map_err(no_run)?;
    // A fault has no age.
    let standing = Standing::of(&nights, SignedDuration::MAX, now);
    let lists = Lists::of(&nights, &standing, args.r#for);
    match args.json {
        true => print(&(serde_json::to_string_pretty(&lists)? + "\n"))?,
        false => print(&lists.text(args.undo))?,
    }
    let list = if args.undo { &lists.undo } else { &lists.drain };
    if list.is_empty() {
        tell(match args.undo {
            true => "there is nothing to undo: no host that was faulty was measured as good since",
            false => "there is nothing to drain: no host is faulty",
        });
    }
    lists.remarks.iter().for_each(tell);
    Ok(Exit::Passed)
}
