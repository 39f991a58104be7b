//! The sign-off: one page to hand over, rendered from the records of a run, and the proof that files are unchanged.

mod proof;
mod view;

use std::path::Path;

use railgauge_analysis::journal;
use railgauge_model::directory::JOURNAL;

use super::{
    error::{ReportError, text_file},
    html,
};

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
