//! `railgauge runs …`: commands for many run directories.

mod baseline;
mod import;
mod list;
mod prune;
mod query;

use super::{Common, Exit};

/// Arguments of `runs`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What is done with runs.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List runs with verdict and first faulty component, also as a page
    List(list::Args),
    /// Print rows of results of many runs as a table, CSV or JSON
    Query(query::Args),
    /// Make a run of the output of perftest, nccl-tests, nixlbench or iperf3
    Import(import::Args),
    /// Make a baseline from earlier runs, for plans to compare with
    Baseline(baseline::Args),
    /// List old runs, and delete them with --yes
    Prune(prune::Args),
}

/// Runs one of them.
///
/// # Errors
/// As its own.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    match args.command {
        Command::List(args) => list::run(args, common),
        Command::Query(args) => query::run(args, common),
        Command::Import(args) => import::run(args, common),
        Command::Baseline(args) => baseline::run(args, common),
        Command::Prune(args) => prune::run(args, common),
    }
}
