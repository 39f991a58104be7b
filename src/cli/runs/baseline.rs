//! `railgauge runs baseline RUNS`: results of earlier runs, for plans to compare with.

use std::path::PathBuf;

use anyhow::Context;
use railgauge_analysis::{
    baseline::{LEAST_VALUES, learn},
    history,
    words::count,
};
use railgauge_frame::Parquet;
use railgauge_model::{border::text::path_text, files, plan::baseline::Baseline};
use railgauge_wire::Metric;

use crate::cli::{BASELINES, Common, Exit, Misuse, metric, print, unusable};

/// Arguments of `runs baseline`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The runs to use: run directories, directories of runs, or quoted patterns
    #[arg(required = true)]
    runs: Vec<String>,
    /// The file to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Use this metric; repeat for more [default: all]
    #[arg(long, value_name = "NAME", value_parser = metric)]
    metric: Vec<Metric>,
}

/// Learns a baseline.
///
/// # Errors
/// No run is named, a run cannot be read, runs contradict each other, or the file cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    args.output.as_deref().map_or(Ok(()), |path| BASELINES.only(path))?;
    let mut directories = Vec::new();
    for word in &args.runs {
        directories.extend(history::run_directories(word).map_err(|none| Misuse(none.to_string()))?);
    }
    let directories = history::each_once(directories);
    let metrics = if args.metric.is_empty() { Metric::ALL } else { &args.metric };
    let mut runs = Vec::new();
    history::read_all(&directories, metrics, &Parquet, |_, run| runs.push(run));
    let runs = runs.into_iter().collect::<Result<Vec<_>, _>>().map_err(unusable)?;
    if let Some((run, subset)) = runs.iter().find_map(|run| Some((run, run.plan.subset.as_ref()?))) {
        let path = path_text(&run.path);
        let what = subset.words();
        return Err(Misuse(format!("{path}: only a part of its plan was run ({what}); leave this run out")).into());
    }
    let baseline = learn(runs).map_err(|cause| anyhow::anyhow!("cannot make a baseline: {cause}"))?;
    let document = serde_json::to_string_pretty(&baseline).context("cannot write the baseline")? + "\n";
    match &args.output {
        Some(path) => {
            files::write(path, &document).with_context(|| format!("cannot write {}", path_text(path)))?;
            common.say(format!("{}: {}", path_text(path), summary(&baseline)));
        }
        None => {
            print(&document)?;
            common.say(summary(&baseline));
        }
    }
    Ok(if baseline.entries.is_empty() { Exit::Inconclusive } else { Exit::Passed })
}

/// `1 run, 2 tests, 24 entries of 6 to 24 values; 3 entries have fewer than the 5 values that are needed`.
fn summary(baseline: &Baseline) -> String {
    let entries = &baseline.entries;
    let values = || entries.iter().map(|entry| entry.n);
    let of = match values().min().zip(values().max()) {
        Some((least, most)) if least == most => format!(" of {}", count(least, "value")),
        Some((least, most)) => format!(" of {least} to {most} values"),
        None => String::new(),
    };
    let few = match values().filter(|n| *n < LEAST_VALUES).count() {
        0 => String::new(),
        few => format!("; {few} of them with fewer than the {LEAST_VALUES} values that are needed"),
    };
    let entry = if entries.len() == 1 { "entry" } else { "entries" };
    format!(
        "{}, {}, {} {entry}{of}{few}",
        count(baseline.runs.len(), "run"),
        count(baseline.settings.len(), "test"),
        entries.len()
    )
}
