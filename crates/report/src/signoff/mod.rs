//! The sign-off: one page to hand over, rendered from the records of a run, and the proof that files are unchanged.

mod proof;
mod view;

use std::path::Path;

use railgauge_analysis::journal;
use railgauge_model::{directory::JOURNAL, files};

use super::{ReportError, html, write::text_file};

pub use proof::{Checked, Proof, Sameness, proof, sha256};
pub use view::{Hash, Limit, SignOff, view};

/// From the records alone.
///
/// # Errors
/// The journal cannot be read or contradicts itself, or the page cannot be written.
pub fn write(run: &Path, page: &Path) -> Result<SignOff, ReportError> {
    let path = run.join(JOURNAL);
    // Before reading: lines written meanwhile make it another journal, and the hash shows it.
    let hashes = proof::hashes(run)?;
    let journal = journal::read(&path)?;
    let drawn = super::draw(&journal, &path)?;
    let view = view(&journal, &drawn.verdicts, &drawn.view.carriers, hashes);
    let text = html::page("signoff.html", &view).map_err(ReportError::drawing("the sign-off"))?;
    text_file(page, &text)?;
    Ok(view)
}

/// `None` without the file.
fn bytes(path: &Path) -> Result<Option<Vec<u8>>, ReportError> {
    match files::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(ReportError::Unread { path: path.to_owned(), cause }),
    }
}
