use std::{
    fs::File,
    path::{Path, PathBuf},
    thread::Builder,
};

use railgauge_analysis::{
    case::CaseResult,
    compare::interleaved,
    frames::FrameFile,
    journal::{self, Journal},
    localise::localise,
    outliers::outliers,
    parallel,
    results::{further, results},
    row::Row,
    rows::{Maker, judged_rows},
    sums::Sums,
    verdict::{Verdicts, verdicts_of},
};
use railgauge_model::directory::{FRAME, JOURNAL, JUNIT, PAGE, VERDICTS};
use railgauge_model::files;

use super::{
    error::{ReportError, text_file},
    html, junit,
    view::{self, View},
};

#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    pub verdicts: Verdicts,
    pub view: View,
    pub page: PathBuf,
}

#[derive(Debug, Clone)]
pub struct Drawn {
    pub verdicts: Verdicts,
    pub view: View,
}

/// Writes all reports of a run directory from its `records.jsonl`: `records.parquet`, `verdicts.json`, `junit.xml` and
/// `report.html`. Replaces every file as a whole or not at all; the same records give the same bytes.
///
/// # Errors
/// The journal cannot be read or contradicts itself, or a file cannot be written.
pub fn write(run: &Path, frames: &dyn FrameFile) -> Result<Written, ReportError> {
    let path = run.join(JOURNAL);
    // Before reading: lines written meanwhile make it another journal.
    let sum = Sums::of_file(&path).unwrap_or_default();
    let journal = journal::read(&path)?;
    let results = results_of(&journal, &path)?;
    let parquet = run.join(FRAME);
    let unwritten = |cause| ReportError::File { path: parquet.clone(), cause };
    let write_frame = |file: &File| {
        let further = further(&journal);
        let mut batches = made(&journal, &results).chain(made(&journal, &further));
        frames.write(&mut batches, file, &parquet).map_err(ReportError::from)
    };
    let (frame, drawn) = parallel::both(
        || files::prepare(&parquet, write_frame, unwritten),
        || judged(&journal, &results, &judged_rows(&journal, &results)),
    );
    let (mut verdicts, view) = drawn?;
    frame?.place().map_err(unwritten)?;
    let frame = Sums::of_file(&parquet).map_err(unwritten)?;
    let whole = journal.unhealed().next().is_none() && journal.contradicted().is_none();
    verdicts.sums = Some(Sums { journal: sum, frame, whole });
    text_file(&run.join(JUNIT), &junit_document(&journal, &verdicts, &view)?)?;
    let page = run.join(PAGE);
    text_file(&page, &html::page("report.html", &view).map_err(ReportError::drawing(PAGE))?)?;
    // Last: it contains the end of the run, which must be absent if one of the others could not be written.
    let json = verdicts.json().map_err(ReportError::drawing(VERDICTS))?;
    text_file(&run.join(VERDICTS), &json)?;
    drop(results);
    // Freeing millions of cases takes seconds; do not wait for it.
    let _ = Builder::new().name("freeing".to_owned()).spawn(move || drop(journal));
    Ok(Written { verdicts, view, page })
}

/// # Errors
/// The XML cannot be written.
pub fn junit_document(journal: &Journal, verdicts: &Verdicts, view: &View) -> Result<String, ReportError> {
    junit::document(verdicts, view, journal).map_err(ReportError::drawing(JUNIT))
}

/// Judges a journal and makes the view; `path` is for errors.
///
/// # Errors
/// The journal contradicts itself.
pub fn draw(journal: &Journal, path: &Path) -> Result<Drawn, ReportError> {
    let results = results_of(journal, path)?;
    let (verdicts, view) = judged(journal, &results, &judged_rows(journal, &results))?;
    Ok(Drawn { verdicts, view })
}

pub(super) fn results_of<'j>(journal: &'j Journal, path: &Path) -> Result<Vec<CaseResult<'j>>, ReportError> {
    results(journal).map_err(|cause| ReportError::Mismatch { path: path.to_owned(), cause })
}

/// Cases per batch of rows of the frame.
pub(super) const CASES: usize = 1 << 14;

fn made<'r>(journal: &'r Journal, results: &'r [CaseResult<'r>]) -> impl Iterator<Item = Vec<Row>> + 'r {
    let maker = Maker::new(journal, results);
    results.chunks(CASES).map(move |some| maker.rows(some, |_, _| true))
}

/// Includes the settling of suspects, which the rest of the report does not count among the tests. `path` is for errors.
///
/// # Errors
/// The journal contradicts itself.
pub fn frame_rows(journal: &Journal, path: &Path) -> Result<Vec<Row>, ReportError> {
    let (results, further) = (results_of(journal, path)?, further(journal));
    Ok(made(journal, &results).chain(made(journal, &further)).flatten().collect())
}

fn judged(journal: &Journal, results: &[CaseResult<'_>], rows: &[Row]) -> Result<(Verdicts, View), ReportError> {
    let turns = interleaved(journal, results).map_err(ReportError::drawing("the comparison of tests in turn"))?;
    let localisation = localise(journal, results, rows);
    let outliers = outliers(journal, results, rows, &localisation);
    let verdicts = verdicts_of(journal, results, rows, turns, &outliers);
    let view = view::view(journal, results, rows, &verdicts, &outliers)?;
    Ok((verdicts, view))
}
