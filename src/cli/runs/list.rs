//! `railgauge runs list RUNS`: the result of each run of a directory.

use std::path::PathBuf;

use railgauge_model::{border::text::path_text, files};
use railgauge_report::index as page;

use crate::{
    cli::{Common, Exit, INDEXES, no_run, page_path},
    night,
};

/// Runs that the terminal shows.
const SHOWN: usize = 30;

/// Arguments of `runs list`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A directory of run directories, or a quoted pattern
    runs: String,
    /// Runs of this plan only
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Also write a page of the runs, such as RUNS/index.html
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print all runs as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Shows the newest runs, and writes the page. Whether they passed is in both: the exit code says only whether the runs were listed.
///
/// # Errors
/// There is no run, or the page cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    let html = args.html.map(|path| page_path(Some(path), "index", &INDEXES)).transpose()?;
    let above = html.as_deref().map(files::directory_of);
    let plan = args.plan.as_deref();
    let index = night::index(&args.runs, plan, above, jiff::Timestamp::now()).map_err(no_run)?;
    if let Some(path) = &html {
        page::write(&index, path)?;
    }
    common.answer(args.json, &index, |screen| {
        let page = html.map_or_else(String::new, |path| format!("page: {}\n", path_text(&path)));
        page::summary(&index, SHOWN, screen) + &page
    })?;
    Ok(Exit::Passed)
}
