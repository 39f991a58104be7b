//! `railgauge report RUN`: everything of a run directory drawn again, from its records alone.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use railgauge_analysis::{journal, status::Status};
use railgauge_frame::Parquet;
use railgauge_model::directory::{JOURNAL, JUNIT, PAGE, VERDICTS};
use railgauge_report::{self as report, ReportError, Written, imported, text};

use crate::cli::{Common, Exit, run_directory, write_out};

/// How the report is written on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A summary for people
    Text,
    /// The verdicts as one JSON document
    Json,
    /// JSON lines of the OCP Test & Validation specification: measurements, diagnoses and errors. Replaces no file
    Ocp,
}

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run directory, which holds records.jsonl
    run: PathBuf,
    /// How the report is written on stdout
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Draws the report; the summary, or the verdicts as JSON, go to stdout.
///
/// # Errors
/// The directory is not a run directory, its journal cannot be read, or a file cannot be written.
pub(crate) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    run_directory(&args.run)?;
    if args.format == Format::Ocp {
        return ocp(&args.run);
    }
    let json = args.json || args.format == Format::Json;
    if let Some(view) = imported::write(&args.run, &Parquet)? {
        common.answer(json, &view, |_| view.text())?;
        return Ok(Exit::Inconclusive);
    }
    let written = report::write(&args.run, &Parquet).map_err(|error| stale(error, &args.run))?;
    written_out(&written, json, common)
}

fn ocp(run: &Path) -> anyhow::Result<Exit> {
    let path = run.join(JOURNAL);
    let journal = journal::read(&path).map_err(ReportError::from)?;
    let run = report::ocp::Run::of(&journal, &path)?;
    write_out(|out| run.write(out))?;
    Ok(exit_of(run.status()))
}

/// Says that what lies beside the records is of an earlier drawing, if it is.
fn stale(error: ReportError, run: &Path) -> anyhow::Error {
    let older: Vec<&str> = [VERDICTS, JUNIT, PAGE].into_iter().filter(|name| run.join(name).exists()).collect();
    match older.as_slice() {
        [] => error.into(),
        older => {
            anyhow::anyhow!(
                "{error}; {} there are from an earlier report and do not match these records",
                older.join(", ")
            )
        }
    }
}

/// Shows what was written of a run. Returns the exit code that its verdicts ask for.
///
/// # Errors
/// stdout cannot be written.
pub(crate) fn written_out(written: &Written, json: bool, common: &Common) -> anyhow::Result<Exit> {
    common.answer(json, &written.verdicts, |screen| text::summary(&written.view, &written.page, screen))?;
    Ok(exit_of(written.verdicts.status))
}

/// What a status makes of the process.
pub(crate) fn exit_of(status: Status) -> Exit {
    match status {
        Status::Pass => Exit::Passed,
        Status::Fail => Exit::Failed,
        Status::Inconclusive | Status::NotRun => Exit::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_the_one_in_the_document() {
        for status in [Status::Pass, Status::Fail, Status::Inconclusive, Status::NotRun] {
            assert_eq!(exit_of(status).code(), status.exit_code());
        }
    }
}
