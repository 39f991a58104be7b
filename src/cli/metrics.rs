//! `railgauge metrics RUNS`: the newest run, and the states of components after all runs, in Prometheus' text format.

use std::path::PathBuf;

use anyhow::Context;
use railgauge_model::{border::text::path_text, files};

use super::{
    Common, Exit,
    common::{no_run, only_metrics, print},
};
use crate::night::{Judged, Nights, metrics};

/// Arguments of `metrics`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A directory of run directories, a quoted pattern, or a run directory
    runs: String,
    /// The plan, where the directory holds runs of several
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// The file to replace, whole or not at all; for the textfile collector it has to end in .prom [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the metrics of the newest run. Whether it passed is in them: the exit code says only whether they were written.
///
/// # Errors
/// There is no run that can be read, or the file cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    args.output.as_deref().map_or(Ok(()), only_metrics)?;
    let nights = Nights::of(&args.runs, args.plan.as_deref(), jiff::Timestamp::now()).map_err(no_run)?;
    let newest = Judged::read(&nights.newest().directory).map_err(no_run)?;
    let text = metrics(&newest, &nights.states).context("cannot write the metrics")?;
    let Some(path) = &args.output else {
        print(&text)?;
        return Ok(Exit::Passed);
    };
    files::write(path, &text).with_context(|| format!("cannot write {}", path_text(path)))?;
    common.say(format_args!("metrics: {}", path_text(path)));
    Ok(Exit::Passed)
}
