//! `railgauge compare BEFORE AFTER`: improved, regressed, equivalent or undecided.

use std::{collections::HashSet, path::PathBuf};

use railgauge_analysis::{
    compare::{Options, Table, When, compare},
    history::{self, RunError},
};
use railgauge_frame::Parquet;
use railgauge_model::border::text::path_text;
use railgauge_report::compare as page;
use railgauge_wire::Metric;

use super::{Common, Exit, Misuse, PAGES, metric, no_file_of_a_run, report::exit_of, unusable, write_page};

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Runs before: a run directory, a directory of them, or a quoted pattern
    before: String,
    /// Runs after
    after: String,
    /// Largest change in percent that does not count as a change [default: the larger of 1 and twice the noise floor]
    #[arg(long, value_name = "PERCENT")]
    margin: Option<f64>,
    /// Judge this metric; repeat for more [default: bandwidth, memory_bandwidth, memory_latency, compute, busbw, latency_p50, latency_p99]
    #[arg(long, value_name = "NAME", value_parser = metric)]
    metric: Vec<Metric>,
    /// The page to write [default: reports/compare-<UTC time>.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the whole comparison as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Compares two sets of runs.
///
/// # Errors
/// A side names no run, a run cannot be read, or the page cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    if let Some(margin) = args.margin.filter(|margin| !(*margin > 0.0 && *margin < 100.0)) {
        return Err(Misuse(format!("--margin {margin}: must be more than 0 and less than 100 percent")).into());
    }
    args.output.as_deref().map_or(Ok(()), no_file_of_a_run)?;
    let before = history::run_directories(&args.before).map_err(|none| Misuse(none.to_string()))?;
    let after = history::run_directories(&args.after).map_err(|none| Misuse(none.to_string()))?;
    let real: HashSet<PathBuf> = after.iter().map(|run| history::real(run)).collect();
    if let Some(both) = before.iter().find(|run| real.contains(&history::real(run))) {
        return Err(Misuse(format!("{} is on both sides: name it on one of them", path_text(both))).into());
    }
    let metrics = if args.metric.is_empty() { &history::METRICS[..] } else { &args.metric };
    let (mut table, mut failed, mut number) = (Table::default(), None, 0);
    let both = [&before[..], &after[..]].concat();
    history::read_all(&both, metrics, &Parquet, |_, run| {
        let when = if number < before.len() { When::Before } else { When::After };
        number += 1;
        match run {
            Ok(run) => table.add(when, run),
            Err(RunError::Imported { run, .. }) => table.add(when, *run),
            Err(error) => failed = failed.take().or(Some(error)),
        }
    });
    if let Some(error) = failed {
        return Err(unusable(error));
    }
    let comparison = compare(table, &Options { margin_percent: args.margin })
        .map_err(|cause| anyhow::anyhow!("cannot compare the runs: {cause}"))?;
    let (view, path) = write_page(args.output, "compare", &PAGES, |path| page::write(&comparison, path))?;
    common.answer(args.json, &comparison, |screen| page::text::summary(&view, &path, screen))?;
    Ok(exit_of(comparison.status))
}
