//! `railgauge check PLAN`: every mistake in a plan, with its place.

use std::path::PathBuf;

use railgauge_model::plan;

use crate::{
    cli::{Common, Exit, common::print},
    cluster,
};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan, a TOML file
    plan: PathBuf,
    /// Print the mistakes as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Reads the plan; mistakes go to stderr, or as JSON to stdout.
///
/// # Errors
/// stdout cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    if args.json {
        let (found, exit) = match plan::load_in(&args.plan, cluster::allocation().as_ref()) {
            Ok(loaded) => (loaded.notes, Exit::Passed),
            Err(mistakes) => (mistakes, Exit::Wrong),
        };
        print(&format!("{:#}\n", found.json()))?;
        return Ok(exit);
    }
    let Some(loaded) = common.plan(&args.plan) else { return Ok(Exit::Wrong) };
    if !common.quiet {
        print(&format!("{}\n", loaded.summary()))?;
    }
    Ok(Exit::Passed)
}
