//! `railgauge drain RUNS`: commands that take bad hosts out of service. They are printed and not executed.

use jiff::{SignedDuration, Timestamp};

use super::{
    Common, Exit,
    common::{no_run, print, tell},
    status::length,
};
use crate::night::{Lists, Runs, Scheduler, Standing};

/// Arguments of `drain`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A run directory, a directory of run directories, or a quoted pattern: the newest counts that is not still going on
    runs: String,
    /// The plan, where the directory holds runs of several
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Whose commands
    #[arg(long, value_enum, default_value = "slurm")]
    r#for: Scheduler,
    /// Print the commands that take back what this run drains, whatever its age: name the run whose hosts were drained
    #[arg(long)]
    undo: bool,
    /// Oldest result that counts
    #[arg(long, value_name = "TIME", default_value = "26h", value_parser = length)]
    max_age: SignedDuration,
    /// Print hosts, reasons and both lists of commands as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the commands, one a line, on stdout; why there is none on stderr.
///
/// # Errors
/// There is no run that can be read, or stdout cannot be written.
pub(super) fn run(args: Args, _common: &Common) -> anyhow::Result<Exit> {
    let run = Runs::of(&args.runs, args.plan.as_deref()).and_then(|runs| runs.newest()).map_err(no_run)?;
    let standing = Standing::of(&run, args.max_age, Timestamp::now());
    let lists = Lists::of(&run, &standing, args.r#for);
    match args.json {
        true => print(&(serde_json::to_string_pretty(&lists)? + "\n"))?,
        false => print(&lists.text(args.undo))?,
    }
    if args.undo && lists.undo.is_empty() {
        tell(format_args!(
            "there is nothing to undo: run {} blames no host; name the run whose hosts were drained",
            lists.run_id
        ));
    }
    if !args.undo && lists.drain.is_empty() && lists.remarks.is_empty() {
        tell(format_args!("there is nothing to drain: run {} blames no host", lists.run_id));
    }
    for remark in lists.remarks.iter().filter(|_| !args.undo) {
        tell(remark);
    }
    Ok(Exit::Passed)
}
