//! `railgauge signoff RUN`: one page to hand over, drawn from the records of a run.

use std::path::PathBuf;

use railgauge_model::border::text::path_text;

use super::{
    Common, Exit,
    common::{only_signoffs, page_path, run_directory},
    report::exit_of,
};
use crate::report::signoff;

/// Arguments of `signoff`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run directory, which holds records.jsonl
    run: PathBuf,
    /// The page to write [default: reports/signoff-<UTC time>.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print what is on the page as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Writes the page. Ends as the run's verdicts do.
///
/// # Errors
/// The directory is not a run directory, its records cannot be read, or the page cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    run_directory(&args.run)?;
    let page = page_path(args.output, "signoff", only_signoffs)?;
    let view = signoff::write(&args.run, &page)?;
    let exit = exit_of(view.status);
    common.answer(args.json, &view, exit == Exit::Passed, |_| {
        let word = view.status.word().to_uppercase();
        format!("{word:<12} {}\nsign-off: {}\n", view.sentence, path_text(&page))
    })?;
    Ok(exit)
}
