//! `railgauge index RUNS`: what each run of a directory came to.

use std::path::{Path, PathBuf};

use railgauge_model::{border::text::path_text, directory::JOURNAL};

use super::{
    Common, Exit,
    common::{INDEX, no_run, only_indexes, page_path},
};
use crate::{night, report::index as page};

/// Runs that the terminal shows.
const SHOWN: usize = 30;

/// Arguments of `index`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A directory of run directories, or a quoted pattern
    runs: String,
    /// Runs of this plan only
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// The page to write [default: index.html in RUNS, or reports/index-<UTC time>.html for a pattern]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the whole index as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Writes the page and shows the newest runs. Whether they passed is in it: the exit code says only whether it was made.
///
/// # Errors
/// There is no run, or the page cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    // Not into a run: nothing but its own files belongs there.
    let above = Path::new(&args.runs);
    let inside = (above.is_dir() && !above.join(JOURNAL).exists()).then(|| above.join(INDEX));
    let output = args.output.or(inside);
    let path = page_path(output, "index", only_indexes)?;
    let above = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let index = night::index(&args.runs, args.plan.as_deref(), Some(above), jiff::Timestamp::now()).map_err(no_run)?;
    page::write(&index, &path)?;
    common.answer(args.json, &index, true, |_| {
        format!("{}index: {}\n", page::summary(&index, SHOWN), path_text(&path))
    })?;
    Ok(Exit::Passed)
}
