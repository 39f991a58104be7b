//! Draws a run directory again.

use std::{
    io,
    path::{Path, PathBuf},
};

use railgauge_model::directory::{FRAME, JOURNAL, JUNIT, PAGE, VERDICTS};
use railgauge_model::{border::text::path_text, files};

use super::{
    html, junit,
    view::{self, View},
};
use crate::analysis::{
    compare::interleaved,
    frame::{self, Frame, FrameError},
    journal::{self, Journal, JournalError},
    outliers::outliers,
    results::{further, results},
    rows::rows,
    verdict::{Sums, Verdicts, verdicts},
};

/// Why a report cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal contradicts itself.
    #[error("{}: {cause}", path_text(path))]
    Contradiction {
        /// The journal.
        path: PathBuf,
        /// In words.
        cause: String,
    },
    /// The frame cannot be built or written.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A file of the report cannot be written.
    #[error("{}: cannot be written: {cause}; the file that was there before is untouched", path_text(path))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
    /// The page, a chart or a document cannot be built: a mistake of ours.
    #[error("{what} cannot be drawn: {cause}; this is a mistake in railgauge, please report it with the records")]
    Drawing {
        /// What was being drawn.
        what: String,
        /// What went wrong.
        cause: String,
    },
}

/// What was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// What is demanded and whether it was met.
    pub verdicts: Verdicts,
    /// Everything shown, as data.
    pub view: View,
    /// The page.
    pub page: PathBuf,
}

/// What a journal comes to, before anything is written.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// The frame.
    pub frame: Frame,
    /// The verdicts.
    pub verdicts: Verdicts,
    /// Everything shown.
    pub view: View,
}

/// Draws everything of a run directory from its `records.jsonl`: `records.parquet`, `verdicts.json`, `junit.xml` and
/// `report.html`. Every file is replaced as a whole or not at all; the same records give the same bytes.
///
/// # Errors
/// The journal cannot be read or contradicts itself, or a file cannot be written.
pub fn write(run: &Path) -> Result<Written, ReportError> {
    let path = run.join(JOURNAL);
    // Before it is read: lines that are written meanwhile make it another journal.
    let sum = files::read(&path).map(|bytes| Sums::of(&bytes)).unwrap_or_default();
    let journal = journal::read(&path)?;
    let Drawn { mut frame, mut verdicts, view } = draw(&journal, &path)?;
    let parquet = run.join(FRAME);
    files::replace(
        &parquet,
        |file| frame::write_parquet(&mut frame, file, &parquet).map_err(ReportError::from),
        |cause| ReportError::File { path: parquet.clone(), cause },
    )?;
    let written = files::read(&parquet).map_err(|cause| ReportError::File { path: parquet.clone(), cause })?;
    let whole = journal.unhealed().next().is_none() && journal.contradicted().is_none();
    verdicts.sums = Some(Sums { journal: sum, frame: Sums::of(&written), whole });
    text_file(&run.join(JUNIT), &junit::document(&verdicts, &view, &journal).map_err(|e| drawing(JUNIT, e))?)?;
    let page = run.join(PAGE);
    text_file(&page, &html::page("report.html", &view).map_err(|e| drawing(PAGE, e))?)?;
    // Last: it says how the run ended, which is not so where one of the others could not be written.
    let json = verdicts.json().map_err(|e| drawing(VERDICTS, e.to_string()))?;
    text_file(&run.join(VERDICTS), &json)?;
    Ok(Written { verdicts, view, page })
}

/// Judges a journal and makes the view of it; `path` is what errors name.
///
/// # Errors
/// The journal contradicts itself.
pub fn draw(journal: &Journal, path: &Path) -> Result<Drawn, ReportError> {
    let results = results(journal).map_err(|cause| ReportError::Contradiction { path: path.to_owned(), cause })?;
    let mut all = rows(journal, &results);
    let tested = all.len();
    // The frame has the settling of suspects too; nothing else of the report counts it among the tests.
    all.extend(rows(journal, &further(journal)));
    let rows = &all[..tested];
    let turns = interleaved(journal, &results).map_err(|cause| drawing("the comparison of tests in turn", cause))?;
    let verdicts = verdicts(journal, &results, rows, turns);
    let frame = frame::frame(&all)?;
    let outliers = outliers(journal, &results, rows, &verdicts.localisation);
    let view = view::view(journal, &results, rows, &frame, &verdicts, &outliers)?;
    Ok(Drawn { frame, verdicts, view })
}

/// A mistake of ours.
pub(super) fn drawing(what: &str, cause: String) -> ReportError {
    ReportError::Drawing { what: what.to_owned(), cause }
}

/// Writes a file that is there as a whole or not at all.
///
/// # Errors
/// It cannot be written.
pub(super) fn text_file(path: &Path, content: &str) -> Result<(), ReportError> {
    files::write(path, content).map_err(|cause| ReportError::File { path: path.to_owned(), cause })
}
