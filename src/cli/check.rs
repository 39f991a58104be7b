//! `railgauge check PLAN`: every mistake in a plan, with its place.

use std::path::PathBuf;

use crate::{
    cli::{Common, Exit, common::print},
    plan,
};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub struct Args {
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
pub fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    match plan::load(&args.plan) {
        Ok(loaded) => {
            if args.json {
                print(&format!("{:#}\n", loaded.notes.json()))?;
            } else {
                if !common.quiet {
                    eprint!("{}", loaded.notes.render(common.colour()));
                    print(&format!("{}\n", loaded.summary()))?;
                }
            }
            Ok(Exit::Passed)
        }
        Err(mistakes) => {
            if args.json {
                print(&format!("{:#}\n", mistakes.json()))?;
            } else {
                eprint!("{}", mistakes.render(common.colour()));
            }
            Ok(Exit::Wrong)
        }
    }
}
