//! `railgauge trend RUNS`: what changed when, which changed together, and whether it is still so.

use std::path::PathBuf;

use railgauge_analysis::{
    history,
    trend::{History, Options, date, day, trend},
};
use railgauge_frame::Parquet;
use railgauge_model::border::text;
use railgauge_report::trend as page;
use railgauge_wire::Metric;

use super::{Common, Exit, Misuse, PAGES, metric, report::exit_of, write_page};
use crate::night;

/// Arguments of `trend`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A directory of run directories, or a quoted pattern
    runs: String,
    /// Smallest change in percent worth an alert [default: `least_effect` of [localise] in the newest plan, 1 if it has none]
    #[arg(long, value_name = "PERCENT")]
    least: Option<f64>,
    /// Follow this metric; repeat for more [default: bandwidth, memory_bandwidth, memory_latency, compute, busbw, latency_p50, latency_p99]
    #[arg(long, value_name = "NAME", value_parser = metric)]
    metric: Vec<Metric>,
    /// Accept the values from this day on as normal, with an optional reason: 2026-11-21 or "2026-11-21 new switches"
    #[arg(long, value_name = "DATE", value_parser = epoch)]
    epoch: Vec<(i64, String)>,
    /// The page to write [default: reports/trend-<UTC time>.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the whole trend as JSON on stdout
    #[arg(long)]
    json: bool,
}

fn epoch(said: &str) -> Result<(i64, String), String> {
    let (date, what) = said.split_once(' ').unwrap_or((said, ""));
    if date.len() != "2026-11-21".len() {
        let date = text::printable(date);
        return Err(format!("`{date}` is not a date; write it as 2026-11-21, then a space and the reason"));
    }
    let what = text::printable(what.trim());
    let day = day(date).map_err(|error| text::printable(&error.to_string()))?;
    Ok((day, if what.is_empty() { "declared".to_owned() } else { what }))
}

/// Watches the runs of a directory.
///
/// # Errors
/// It holds no run, or the page cannot be written. A single run that cannot be read is left out and said.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    if let Some(least) = args.least.filter(|least| !(*least > 0.0 && *least < 100.0)) {
        return Err(Misuse(format!("--least {least}: must be more than 0 and less than 100 percent")).into());
    }
    args.output.as_deref().map_or(Ok(()), |path| PAGES.only(path))?;
    let now = jiff::Timestamp::now();
    // A day ahead: somewhere it is tomorrow already.
    let tomorrow = now.as_second().div_euclid(86_400) + 1;
    if let Some((day, _)) = args.epoch.iter().find(|(day, _)| *day > tomorrow) {
        let (day, today) = (date(*day), date(tomorrow - 1));
        return Err(Misuse(format!("--epoch {day}: that day is in the future, today is {today}")).into());
    }
    let runs = history::run_directories(&args.runs).map_err(|none| Misuse(none.to_string()))?;
    let metrics = if args.metric.is_empty() { &history::METRICS[..] } else { &args.metric };
    let mut collected = History::until(now);
    let mut newest = (jiff::Timestamp::MIN, Options::default().least_percent);
    history::read_all(&runs, metrics, &Parquet, |directory, run| match run {
        Ok(run) => {
            if run.started >= newest.0 {
                newest = (run.started, run.plan.localise.least_percent);
            }
            collected.add(run);
        }
        Err(error) => collected.unreadable(directory, &error),
    });
    collected.report(night::reported(&args.runs, now));
    let options = Options { least_percent: args.least.unwrap_or(newest.1), epochs: args.epoch };
    let trend = trend(collected, &options).map_err(|cause| anyhow::anyhow!("cannot follow the runs: {cause}"))?;
    let (view, path) = write_page(args.output, "trend", &PAGES, |path| page::write(&trend, path))?;
    common.answer(args.json, &trend, |screen| page::text::summary(&view, &path, screen))?;
    Ok(exit_of(trend.status))
}
