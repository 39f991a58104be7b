//! The report of a run that has not ended.

use std::path::Path;

use jiff::Timestamp;
use railgauge_analysis::{journal, status::Status};

use super::{
    ReportError, html,
    view::View,
    write::{Drawn, draw},
};

/// With a line on the progress of the run, which the page keeps current.
///
/// # Errors
/// The records cannot be read or rendered.
pub fn page(records: &Path, course: &str, now: Timestamp) -> Result<String, ReportError> {
    let journal = journal::read(records)?;
    let Drawn { mut view, .. } = draw(&journal, records)?;
    unsettled(&mut view);
    let at = now.strftime("%H:%M:%S UTC");
    view.run.remarks.push(format!("This report is of {at}: load the page again for a newer one."));
    html::live_page(&view, course).map_err(ReportError::drawing("the report of a run that has not ended"))
}

pub fn policy() -> String {
    html::live_policy()
}

/// Nothing passes before the run has ended: demands met so far are shown as such.
fn unsettled(view: &mut View) {
    for row in view.expectations.iter_mut().filter(|row| row.status == Status::Pass) {
        row.status = Status::Inconclusive;
        row.reason = format!("met so far: {}", row.reason);
        row.reasons = vec![row.reason.clone()];
    }
    if view.status == Status::Pass {
        view.status = Status::Inconclusive;
    }
}
