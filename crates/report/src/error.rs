use std::{
    io,
    path::{Path, PathBuf},
};

use railgauge_analysis::{frames::FrameError, journal::JournalError, results::Mismatch};
use railgauge_model::{border::text::path_text, files};
use railgauge_stats::Refusal;

use super::{chart::ChartError, html::PageError};

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{}: {cause}", path_text(path))]
    Mismatch {
        path: PathBuf,
        /// What does not belong together.
        cause: Mismatch,
    },
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("{}: cannot be read: {cause}", path_text(path))]
    Unread { path: PathBuf, cause: io::Error },
    #[error(
        "no files can be written to a temporary directory: {0}; set TMPDIR to a directory that can be written and has space"
    )]
    Elsewhere(io::Error),
    #[error(
        "{}: cannot be written: {cause}{}",
        path_text(path),
        if path.exists() { "; the file that was there before is untouched" } else { "" }
    )]
    File { path: PathBuf, cause: io::Error },
    /// The page, a chart or a document cannot be built: a bug.
    #[error("{what} cannot be rendered: {cause}; this is a bug in railgauge, please report it with the records")]
    Drawing { what: String, cause: DrawError },
}

/// By what was being rendered. Every variant is a bug.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum DrawError {
    Chart(#[from] ChartError),
    Page(#[from] PageError),
    Junit(#[from] JunitError),
    Json(#[from] serde_json::Error),
    Statistic(#[from] Refusal),
}

impl ReportError {
    /// Converts a failure to render `what`.
    pub(super) fn drawing<E: Into<DrawError>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |cause| Self::Drawing { what, cause: cause.into() }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JunitError(pub(super) String);

/// Writes the file as a whole or not at all.
///
/// # Errors
/// It cannot be written.
pub(super) fn text_file(path: &Path, content: &str) -> Result<(), ReportError> {
    files::write(path, content).map_err(|cause| ReportError::File { path: path.to_owned(), cause })
}
