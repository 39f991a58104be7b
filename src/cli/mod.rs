//! The command line: one file per command, arguments to library calls to an exit code.
//!
//! A new command is one file with `Args` and `run`, one variant of [`Command`] and one arm of [`dispatch`].

mod baseline;
mod check;
mod common;
mod compare;
#[cfg(test)]
mod docs;
mod drain;
pub(crate) mod exit;
mod import;
mod index;
mod init;
mod kit;
mod metrics;
mod plan;
mod preflight;
mod prune;
mod query;
pub(crate) mod report;
mod run;
mod schema;
mod selection;
mod shell_files;
mod signoff;
mod status;
mod submit;
mod topology;
mod trend;
mod verify;
mod version;

use std::{process::ExitCode, sync::Arc};

use clap::{CommandFactory, Parser, Subcommand};

pub(crate) use common::Common;
pub(crate) use exit::{Exit, Misuse};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "railgauge", version, about, after_help = exit::HELP)]
struct CommandLine {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
enum Command {
    /// Connect to hosts, read what they are, and write a plan that runs
    Init(init::Args),
    /// Make a baseline from earlier runs, for plans to compare with
    Baseline(baseline::Args),
    /// Read a plan and print every mistake in it; contacts no host
    Check(check::Args),
    /// Show what a run would do: hosts, rounds, cases, expected time and bytes; contacts no host
    Plan(plan::Args),
    /// Write the report of a run directory again, from its records alone
    Report(report::Args),
    /// Write one page to hand over: limits and results, coverage, what was not tested, inventory, hashes
    Signoff(signoff::Args),
    /// Prove that the files of a run directory are those that its records make, and the records those that were signed
    Verify(verify::Args),
    /// Compare two sets of runs: improved, regressed, equivalent, or not enough data
    Compare(compare::Args),
    /// Take outputs of perftest, nccl-tests, OSU micro-benchmarks and iperf3 as a run that is marked as not ours, for `compare`
    Import(import::Args),
    /// Rows of the frames of many runs, by test, metric, host, time or failure, as a table, CSV or JSON
    Query(query::Args),
    /// Find changes over nightly runs: when they happened, which belong together, and which remain
    Trend(trend::Args),
    /// The state of the cluster or of a host after all runs, also for Nagios and Slurm's node health check
    Status(status::Args),
    /// One page of the runs of a directory: hosts by nights, what each run came to, and its first bad part
    Index(index::Args),
    /// List old runs of a directory, and delete them with --yes
    Prune(prune::Args),
    /// Write the newest run, and the states of hosts and devices after all, as metrics for Prometheus
    Metrics(metrics::Args),
    /// Print commands that take faulty hosts out of service, and back once they were measured as good; executes none
    Drain(drain::Args),
    /// Connect, collect facts and check every host's configuration; sends no test traffic
    Preflight(preflight::Args),
    /// Collect host configuration and a short test run into one archive to send to the developers; nothing is uploaded
    Kit(kit::Args),
    /// Deploy agents, measure, judge and report
    Run(run::Args),
    /// Submit a plan with `via = "slurm"` as a batch job of Slurm, wait for it, and end as the run in it
    Submit(submit::Args),
    /// Ask the hosts for their switches (lldpcli, ibnetdiscover) and write files for [topology] of the plan
    Topology(topology::Args),
    /// Print the JSON Schema of the plan format
    Schema(schema::Args),
    /// Show version, build, protocol and the agents that would be sent
    Version(version::Args),
    /// Write completions for bash, zsh and fish, and manual pages
    ShellFiles(shell_files::Args),
}

fn dispatch(line: CommandLine) -> anyhow::Result<Exit> {
    let common = line.common;
    match line.command {
        Command::Init(args) => init::run(args, &common),
        Command::Baseline(args) => baseline::run(args, &common),
        Command::Check(args) => check::run(args, &common),
        Command::Plan(args) => plan::run(args, &common),
        Command::Report(args) => report::run(args, &common),
        Command::Signoff(args) => signoff::run(args, &common),
        Command::Verify(args) => verify::run(args, &common),
        Command::Compare(args) => compare::run(args, &common),
        Command::Import(args) => import::run(args, &common),
        Command::Query(args) => query::run(args, &common),
        Command::Trend(args) => trend::run(args, &common),
        Command::Status(args) => status::run(args, &common),
        Command::Index(args) => index::run(args, &common),
        Command::Prune(args) => prune::run(args, &common),
        Command::Metrics(args) => metrics::run(args, &common),
        Command::Drain(args) => drain::run(args, &common),
        Command::Preflight(args) => preflight::run(args, &common),
        Command::Kit(args) => kit::run(args, &common),
        Command::Run(args) => run::run(args, &common),
        Command::Submit(args) => submit::run(args, &common),
        Command::Topology(args) => topology::run(args, &common),
        Command::Schema(args) => schema::run(args, &common),
        Command::Version(args) => version::run(&args, &common),
        Command::ShellFiles(args) => shell_files::run(args, &common, CommandLine::command()),
    }
}

/// Runs the command line. Returns its exit code.
pub fn main() -> ExitCode {
    // clap itself prints help and mistakes, on stdout and stderr, and honours NO_COLOR.
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(message) => {
            // Nothing is left to tell anybody if even this cannot be written.
            let _ = message.print();
            // A monitoring system takes 2 for critical, and a health check drains a node for it.
            if let Some(exit) = status::misunderstood(std::env::args_os()).filter(|_| message.use_stderr()) {
                return exit.into();
            }
            return if message.use_stderr() { Exit::Wrong } else { Exit::Passed }.into();
        }
    };
    // A file that would grow beyond `ulimit -f` is then an error of the write, as on a full disk, and not the end of the
    // process (setrlimit(2), RLIMIT_FSIZE). Where it cannot be caught all is as before.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    match dispatch(line) {
        Ok(exit) => exit.into(),
        Err(error) => {
            common::tell(format_args!("error: {error:#}"));
            if error.is::<Misuse>() { Exit::Wrong } else { Exit::Unable }.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }
}
