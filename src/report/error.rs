//! Why a report cannot be drawn.

use std::{io, path::PathBuf};

use railgauge_model::border::text::path_text;
use railgauge_stats::Refusal;

use super::{chart::ChartError, html::PageError, junit::JunitError};
use crate::analysis::{frame::FrameError, journal::JournalError, results::Mismatch};

/// Why a report cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal is not of its own plan.
    #[error("{}: {cause}", path_text(path))]
    Mismatch {
        path: PathBuf,
        /// What does not belong together.
        cause: Mismatch,
    },
    /// The frame cannot be built or written.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A file of a run cannot be read.
    #[error("{}: cannot be read: {cause}", path_text(path))]
    Unread { path: PathBuf, cause: io::Error },
    /// There is no room to draw in.
    #[error(
        "no files can be written to a temporary directory: {0}; set TMPDIR to a directory that can be written and has space"
    )]
    Elsewhere(io::Error),
    /// A file of the report cannot be written.
    #[error(
        "{}: cannot be written: {cause}{}",
        path_text(path),
        if path.exists() { "; the file that was there before is untouched" } else { "" }
    )]
    File { path: PathBuf, cause: io::Error },
    /// The page, a chart or a document cannot be built: a mistake of ours.
    #[error("{what} cannot be drawn: {cause}; this is a mistake in railgauge, please report it with the records")]
    Drawing { what: String, cause: DrawError },
}

/// What went wrong in drawing, by what was drawn. Every one is a mistake of ours.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum DrawError {
    Chart(#[from] ChartError),
    Page(#[from] PageError),
    /// The JUnit document.
    Junit(#[from] JunitError),
    Json(#[from] serde_json::Error),
    Statistic(#[from] Refusal),
}

impl ReportError {
    /// What a failed drawing of `what` becomes.
    pub(super) fn drawing<E: Into<DrawError>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |cause| Self::Drawing { what, cause: cause.into() }
    }
}
