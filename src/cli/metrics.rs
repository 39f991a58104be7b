//! `railgauge metrics RUNS`: the newest run in Prometheus' text format.

use std::path::PathBuf;

use anyhow::Context;
use railgauge_model::{border::text::path_text, files};

use super::{
    Common, Exit,
    common::{no_run, only_metrics, print},
};
use crate::night::{Runs, metrics};

/// Arguments of `metrics`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A run directory, a directory of run directories, or a quoted pattern: the newest counts that is not still going on
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
    let text = metrics(&Runs::of(&args.runs, args.plan.as_deref()).and_then(|runs| runs.newest()).map_err(no_run)?)
        .context("cannot write the metrics")?;
    let Some(path) = &args.output else {
        print(&text)?;
        return Ok(Exit::Passed);
    };
    files::write(path, &text).with_context(|| format!("cannot write {}", path_text(path)))?;
    common.say(format_args!("metrics: {}", path_text(path)));
    Ok(Exit::Passed)
}
