//! The command line: one file per command, arguments to library calls to an exit code.
//!
//! A new command is one file with `Args` and `run`, one variant of [`Command`], one arm of [`dispatch`] and its section in help.txt.

mod check;
mod common;
mod compare;
mod discover;
#[cfg(test)]
mod docs_test;
mod drain;
mod dry_run;
pub(crate) mod exit;
mod init;
mod kit;
mod preflight;
pub(crate) mod report;
mod run;
mod runs;
mod schema;
mod selection;
mod shell_files;
mod signoff;
mod status;
mod submit;
mod trend;
mod version;

use std::{process::ExitCode, sync::Arc};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};

pub(crate) use common::Common;
pub(in crate::cli) use common::{
    BASELINES, INDEXES, METRICS, PAGES, SIGNOFFS, found_again, hostname, metric, no_file_of_a_run, no_run, page_path,
    print, run_directory, runtime, tell, unusable, write_out, write_page,
};
pub(crate) use exit::{Exit, Misuse};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "railgauge", version, about, help_template = template())]
struct CommandLine {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// What can be done, in the order of the help.
#[derive(Debug, Subcommand)]
enum Command {
    /// Read the hosts and write a plan that runs
    Init(init::Args),
    /// Find every error in a plan; contacts no host
    Check(check::Args),
    /// Print the JSON Schema of the plan format
    Schema(schema::Args),
    /// Run a plan: measure, judge and report
    Run(run::Args),
    /// Check the configuration of the hosts; sends no test traffic
    Preflight(preflight::Args),
    /// Run a plan as a Slurm batch job
    Submit(submit::Args),
    /// Write the report of a run again from its records
    Report(report::Args),
    /// Compare two sets of runs: improved, regressed or equivalent
    Compare(compare::Args),
    /// Find changes over nightly runs
    Trend(trend::Args),
    /// List, query, import and delete runs, or make a baseline of them
    Runs(runs::Args),
    /// Write the page to hand over, or verify the files of a run
    Signoff(signoff::Args),
    /// Show the state of the cluster or a host, also for monitoring
    Status(status::Args),
    /// Print commands that take faulty hosts out of service
    Drain(drain::Args),
    /// Write [topology] from what hosts and switches report
    Discover(discover::Args),
    /// Pack host configuration and a short run as a support archive
    Bundle(kit::Args),
    /// Write completions for bash, zsh and fish, and manual pages
    #[command(hide = true)]
    ShellFiles(shell_files::Args),
}

/// Groups of the help by the first command of each.
const GROUPS: [(&str, &str); 4] = [("init", "Plan"), ("run", "Run"), ("report", "Results"), ("status", "Operate")];

/// The help of the whole command line: clap has no groups of commands.
fn template() -> String {
    let all = Command::augment_subcommands(clap::Command::new("railgauge"));
    let head = all.get_styles().get_header();
    let mut commands = String::new();
    for command in all.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        if let Some((_, title)) = GROUPS.iter().find(|(first, _)| *first == name) {
            commands += &format!("\n{head}{title}:{head:#}\n");
        }
        commands += &format!("  {name:<10} {}\n", command.get_about().map(ToString::to_string).unwrap_or_default());
    }
    format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n{commands}\n{head}Other:{head:#}\n  {:<10} Show the help of a command\n\n\
         {head}Options:{head:#}\n{{options}}{{after-help}}",
        "help"
    )
}

/// Examples and exit codes of every command.
const ENDINGS: &str = include_str!("help.txt");

/// How the help of a command ends.
fn ending(name: &str) -> &'static str {
    let section = ENDINGS.split("\n== ").find_map(|section| section.strip_prefix(name)?.strip_prefix('\n'));
    section.unwrap_or_default().trim_end()
}

/// A command, and those below it, with the ends of their help.
fn ended(command: clap::Command) -> clap::Command {
    let ending = ending(command.get_name());
    command.after_help(ending).mut_subcommands(ended)
}

fn dispatch(line: CommandLine) -> anyhow::Result<Exit> {
    let common = line.common;
    match line.command {
        Command::Init(args) => init::run(args, &common),
        Command::Check(args) => check::run(args, &common),
        Command::Schema(args) => schema::run(args, &common),
        Command::Run(args) => run::run(args, &common),
        Command::Preflight(args) => preflight::run(args, &common),
        Command::Submit(args) => submit::run(args, &common),
        Command::Report(args) => report::run(args, &common),
        Command::Compare(args) => compare::run(args, &common),
        Command::Trend(args) => trend::run(args, &common),
        Command::Runs(args) => runs::run(args, &common),
        Command::Signoff(args) => signoff::run(args, &common),
        Command::Status(args) => status::run(args, &common),
        Command::Drain(args) => drain::run(args, &common),
        Command::Discover(args) => discover::run(args, &common),
        Command::Bundle(args) => kit::run(args, &common),
        Command::ShellFiles(args) => shell_files::run(args, &common, ended(CommandLine::command())),
    }
}

/// Libraries panic where the machine gives no further thread or file: as any error, that has words and an exit code.
fn unable(panic: &std::panic::PanicHookInfo<'_>) {
    let words = panic.payload_as_str().unwrap_or("an internal error");
    // `expect` has errors of the system as `Os { code: 24, kind: …`.
    let error = words.split_once("Os { code: ").and_then(|(what, error)| {
        let code = error.split_once(',')?.0.parse().ok()?;
        Some(format!("{what}{}", std::io::Error::from_raw_os_error(code)))
    });
    let words = error.as_deref().unwrap_or(words);
    let help = match panic.location() {
        Some(place) if !words.contains("(os error ") => format!("report this fault of railgauge, at {place}"),
        _ => "raise the limit of open files (`ulimit -n`) or of processes (`ulimit -u`)".to_owned(),
    };
    tell(format_args!("error: {words}\nhelp: {help}"));
    std::process::exit(Exit::Unable.code().into());
}

/// Runs the command line. Returns its exit code.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(unable));
    // A monitoring system takes 2 for critical, and a health check drains a node for it.
    let wrong = || status::misunderstood(std::env::args_os()).unwrap_or(Exit::Wrong);
    let of_help = std::env::args_os().nth(1).is_some_and(|command| command == "help");
    let words = std::env::args_os().filter(|word| !(of_help && (word == "--help" || word == "-h")));
    let line = ended(CommandLine::command()).try_get_matches_from(words);
    let done = match line.and_then(|line| CommandLine::from_arg_matches(&line)) {
        Ok(line) => {
            // A file that would grow beyond `ulimit -f` is then an error of the write, as on a full disk, and not the end of the
            // process (setrlimit(2), RLIMIT_FSIZE). Where it cannot be caught all is as before.
            let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
            dispatch(line)
        }
        Err(message) if message.kind() == ErrorKind::DisplayVersion => version::show().map(|()| Exit::Passed),
        Err(message) => {
            // clap itself prints help and errors, on stdout and stderr, and honours NO_COLOR. If even this cannot be written,
            // the exit code is all that is left.
            let _ = message.print();
            Ok(if message.use_stderr() { wrong() } else { Exit::Passed })
        }
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            tell(format_args!("error: {error:#}"));
            if error.is::<Misuse>() { wrong() } else { Exit::Unable }.into()
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
