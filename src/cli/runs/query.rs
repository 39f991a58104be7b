//! `railgauge runs query RUNS`: rows of the frames of many runs, for people and for other programs.

use anyhow::Context;
use clap::ValueEnum;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use railgauge_analysis::{history, words::count};
use railgauge_model::border::{hostlist, text::for_terminal};
use railgauge_wire::Metric;

use crate::{
    cli::{Common, Exit, Misuse, metric, print},
    query::{self, Filter, QueryError},
};

/// Columns of the table: the others would not fit a terminal.
const TABLE: [&str; 11] =
    ["run_id", "started_at", "test", "metric", "value", "unit", "size_bytes", "src_host", "dst_host", "error", "phase"];

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people, with the columns that fit
    Table,
    /// Comma-separated values
    Csv,
    /// One JSON document
    Json,
}

/// Arguments of `runs query`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Run directories, directories of runs, or quoted patterns
    #[arg(required = true)]
    runs: Vec<String>,
    /// Only rows of this test; may be repeated
    #[arg(long = "test", value_name = "NAME")]
    tests: Vec<String>,
    /// Only rows of this metric, such as bandwidth or latency_p99; may be repeated
    #[arg(long = "metric", value_name = "NAME", value_parser = metric)]
    metrics: Vec<Metric>,
    /// Only rows with one of these hosts at either end, such as gpu[001-004]; may be repeated
    #[arg(long = "host", value_name = "HOSTS")]
    hosts: Vec<String>,
    /// Only cases that began then or later, such as 2026-11-26 or 2026-11-26T03:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,
    /// Only what could not be measured, or has a value that cannot be trusted
    #[arg(long)]
    failed: bool,
    /// How rows are written
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// A point in time, or the start of a day in UTC.
fn time(text: &str) -> Result<Timestamp, String> {
    let of_day = || Some(text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    text.parse().ok().or_else(of_day).ok_or_else(|| "write 2026-11-26 or 2026-11-26T03:00:00Z".to_owned())
}

/// Writes the rows.
///
/// # Errors
/// An argument is wrong, or no run can be read.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    let format = if args.json { Format::Json } else { args.format };
    let Args { tests, metrics, since, failed, .. } = args;
    let mut hosts = Vec::new();
    for word in &args.hosts {
        hosts.extend(hostlist::expand(word).map_err(|wrong| Misuse(format!("--host {word}: {wrong}")))?);
    }
    let mut directories = Vec::new();
    for word in &args.runs {
        directories.extend(history::run_directories(word).map_err(|none| Misuse(none.to_string()))?);
    }
    let directories = history::without_repeats(directories);
    let columns = (format == Format::Table).then_some(&TABLE[..]);
    let filter = Filter { tests, metrics, hosts, since, failed };
    let answer = query::answer(&directories, &filter, columns).map_err(|error| match error {
        QueryError::Unknown { .. } => Misuse(error.to_string()).into(),
        QueryError::NoRun { .. } => anyhow::Error::from(error),
    })?;
    match format {
        Format::Csv => print(&query::csv(&answer))?,
        Format::Json => {
            print(&(serde_json::to_string_pretty(&query::document(&answer)).context("cannot write the rows")? + "\n"))?;
        }
        Format::Table => print(&for_terminal(&query::table(&answer), false))?,
    }
    for note in answer.notes() {
        common.say(format_args!("note: {note}"));
    }
    common.say(format_args!(
        "{} of {}",
        count(answer.runs.iter().map(|run| run.rows).sum(), "row"),
        count(answer.runs.len(), "run")
    ));
    Ok(if answer.left_out.is_empty() { Exit::Passed } else { Exit::Inconclusive })
}
