//! `railgauge status RUNS`: the state of a cluster or a host after all runs, for a monitoring system, a health check or a message.

use std::{ffi::OsString, path::PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp};
use railgauge_model::{border::text::path_text, files};

use super::{Common, Exit, METRICS, Misuse, hostname, no_run, print};
use crate::night::{Judged, Message, NAMED, NightError, Nights, Standing, State, metrics};

/// How the state is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines for people
    Text,
    /// One JSON document; its `text` serves as a message
    Json,
    /// One line and the exit codes of a monitoring plugin
    Nagios,
    /// One line and the exit codes of Slurm's node health check, for --host or this machine
    Nhc,
    /// One line for a chat or mail, or with --json an object for a web service: state, faulty components, first step, report
    Message,
    /// Metrics of the newest run and of the state, in Prometheus' text format
    Prometheus,
}

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A directory of run directories, a quoted pattern, or a run directory
    runs: String,
    /// How the state is written
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// With --format message: URL of the directory with the runs, the beginning of the link to the report
    #[arg(long, value_name = "URL", value_parser = url)]
    link: Option<String>,
    /// With --format prometheus: the file to replace, whole or not at all; its name must end in .prom for the textfile collector
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// This host only, whether the newest run measured it or not [default with --format nhc: the name of this machine]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Oldest age of the newest run: with an older one the cluster's state is unknown unless a component is faulty
    #[arg(long, value_name = "TIME", default_value = "26h", value_parser = length)]
    max_age: SignedDuration,
    /// The plan, where the directory holds runs of several
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// The same as --format json
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Refuses options that have no effect with this format.
    fn check(&self) -> Result<(), Misuse> {
        use Format::{Json, Message, Nagios, Nhc, Prometheus, Text};
        let wrong = [
            ("--json", self.json, &[Text, Json, Message][..]),
            ("--link", self.link.is_some(), &[Message]),
            ("--output", self.output.is_some(), &[Prometheus]),
            ("--host", self.host.is_some(), &[Text, Json, Nagios, Nhc]),
        ];
        match wrong.iter().find(|(_, is_given, formats)| *is_given && !formats.contains(&self.format)) {
            Some((option, ..)) => Err(Misuse(format!("{option} has no effect with this --format; see --help"))),
            None => Ok(()),
        }
    }
}

/// The beginning of a link: what a chat or a mail shows as one.
fn url(text: &str) -> Result<String, String> {
    let rest = ["https://", "http://"].into_iter().find_map(|scheme| text.strip_prefix(scheme));
    let is_one = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '<' | '>' | '"' | '@' | '`' | '\\'));
    if is_one {
        Ok(text.to_owned())
    } else {
        Err("write it as https://host/path, without spaces and passwords".to_owned())
    }
}

/// A length of time as `26h`, `90min` or `2 days`.
pub(super) fn length(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("`{text}` is not a length of time; write it as 26h or 90min");
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let length = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    if length.is_positive() { Ok(length) } else { Err(format!("`{text}` has to be more than 0")) }
}

/// Reports the state. That nothing can be read is an answer too: unknown; but there are no metrics then.
///
/// # Errors
/// An option does not fit the format, or stdout or the file of metrics cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    args.check()?;
    args.output.as_deref().map_or(Ok(()), |path| METRICS.only(path))?;
    let now = Timestamp::now();
    let nights = Nights::of(&args.runs, args.plan.as_deref(), now);
    if args.format == Format::Prometheus {
        let nights = nights.map_err(no_run)?;
        let state = Standing::of(&nights, args.max_age, now).state;
        return write_metrics(&nights, state, args.output, common);
    }
    let host = args.host.or_else(|| (args.format == Format::Nhc).then(this_machine).flatten());
    let host = host.as_deref();
    // A host that one of several plans shows to be faulty is faulty.
    let in_all = match (&nights, host) {
        (Err(NightError::SeveralPlans { .. }), Some(host)) => {
            Standing::of_host_in_all(&args.runs, host, args.max_age, now)
        }
        _ => None,
    };
    let standing = in_all.unwrap_or_else(|| match (&nights, host) {
        (Ok(nights), Some(host)) => Standing::of_host(nights, host, args.max_age, now),
        (Ok(nights), None) => Standing::of(nights, args.max_age, now),
        (Err(error), _) => Standing::of_nothing(error, host, args.max_age),
    });
    let plugin = |code| {
        // A plugin whose line cannot be read still has its code.
        let _ = print(&(standing.plugin_line() + "\n"));
        Ok(Exit::Plugin(code))
    };
    match args.format {
        Format::Nagios => plugin(standing.state.code()),
        Format::Nhc => plugin(health_code(&standing)),
        Format::Message => {
            let message = Message::of(nights.as_ref().ok(), &standing, args.link.as_deref());
            common.answer(args.json, &message, |_| message.text.clone() + "\n")?;
            Ok(exit(message.state))
        }
        format => shown(&standing, args.json || format == Format::Json, common),
    }
}

/// Writes the metrics. Whether the newest run passed is in them: the exit code says only whether they were written.
fn write_metrics(nights: &Nights, state: State, output: Option<PathBuf>, common: &Common) -> anyhow::Result<Exit> {
    let newest = Judged::read(&nights.newest().directory);
    if let Err(error) = &newest {
        common.say(format_args!("without metrics of the newest run: {error}"));
    }
    let text =
        metrics(newest.as_ref().ok(), &nights.plan, &nights.states, state).context("cannot write the metrics")?;
    match output {
        Some(path) => {
            files::write(&path, &text).with_context(|| format!("cannot write {}", path_text(&path)))?;
            common.say(format_args!("metrics: {}", path_text(&path)));
        }
        None => print(&text)?,
    }
    Ok(Exit::Passed)
}

const fn exit(state: State) -> Exit {
    match state {
        State::Ok => Exit::Passed,
        State::Critical => Exit::Failed,
        State::Warning | State::Unknown => Exit::Inconclusive,
    }
}

/// Anything but a certain fault of this host leaves the node in service.
fn health_code(standing: &Standing) -> u8 {
    u8::from(standing.state == State::Critical && standing.host.is_some())
}

/// How a command line ends that could not be understood, where its codes are those of a plugin: in a way that is not an alarm and drains no
/// node.
pub(super) fn misunderstood(words: impl Iterator<Item = OsString>) -> Option<Exit> {
    // `--format=nhc` is `--format nhc`.
    let parts = |word: OsString| word.to_string_lossy().split('=').map(str::to_owned).collect::<Vec<_>>();
    let mut words = words.skip_while(|word| word != "status").flat_map(parts).skip_while(|word| word != "--format");
    match words.nth(1)?.as_str() {
        "nagios" => {
            let _ = print("RAILGAUGE UNKNOWN - the command line is wrong: run it in a shell to see why\n");
            Some(Exit::Plugin(State::Unknown.code()))
        }
        "nhc" => Some(Exit::Plugin(0)),
        _ => None,
    }
}

fn shown(standing: &Standing, json: bool, common: &Common) -> anyhow::Result<Exit> {
    common.answer(json, standing, |screen| {
        let host = standing.host.as_ref().map_or_else(String::new, |host| format!("{host}: "));
        let first = format!("{}  {host}", standing.state.word());
        let heads = std::iter::once(first.as_str()).chain(std::iter::repeat("  "));
        let mut lines: Vec<String> = heads.zip(&standing.said).map(|(head, one)| format!("{head}{one}")).collect();
        // The text has the first ones, and how many more there are.
        let alike = standing.components.chunk_by(|a, b| a.state == b.state);
        let rest = alike.flat_map(|all| all.iter().skip(NAMED)).filter(|_| screen.verbose);
        lines.extend(rest.map(|one| format!("  {}", one.sentence())));
        lines.extend(standing.remarks.iter().map(|remark| format!("  {remark}")));
        let ended = standing.ended.as_ref();
        lines.extend(ended.map(|ended| format!("{}, last run {}, ended {ended}", standing.plan, standing.run_id)));
        lines.iter().map(|line| screen.wrapped(line, "    ")).collect()
    })?;
    Ok(exit(standing.state))
}

/// The name of this machine as Slurm's nodes have it: without its domain.
fn this_machine() -> Option<String> {
    Some(hostname()?.split('.').next()?.to_owned())
}
