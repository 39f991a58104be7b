//! `railgauge drain RUNS`: commands that take bad hosts out of service. They are printed and not executed.

use jiff::{SignedDuration, Timestamp};

use super::{
    Common, Exit,
    common::{no_run, print, tell},
    status::length,
};
use crate::night::{Lists, Scheduler, Standing, newest};

/// Arguments of `drain`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A run directory, a directory of run directories, or a quoted pattern: the newest counts that is not still going on
    runs: String,
    /// Whose commands
    #[arg(long, value_enum, default_value = "slurm")]
    r#for: Scheduler,
    /// Print the commands that take it back
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
    let run = newest(&args.runs).map_err(no_run)?;
    let lists = Lists::of(&Standing::of(&run, None, args.max_age, Timestamp::now()), args.r#for);
    match args.json {
        true => print(&(serde_json::to_string_pretty(&lists)? + "\n"))?,
        false => print(&lists.text(args.undo))?,
    }
    for remark in &lists.remarks {
        tell(remark);
    }
    Ok(Exit::Passed)
}
