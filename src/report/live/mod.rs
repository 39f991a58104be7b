//! The pages of a run that is still going on: how far it is, and the report as far as its records go.

mod view;

use std::path::Path;

use jiff::Timestamp;

use super::{
    ReportError, html,
    view::View,
    write::{Drawn, draw},
};
use crate::analysis::{journal, underway::Underway, verdict::Status};

pub use view::{LiveView, view};

/// The page of how far a run is, and the same as JSON. It asks for itself again after `every` seconds.
///
/// # Errors
/// The page cannot be drawn.
pub fn page(run: &Underway, now: Timestamp, every: u64) -> Result<(String, String), ReportError> {
    let view = view(run, now, every);
    let page = html::live_page(&view).map_err(ReportError::drawing("the page of a run that goes on"))?;
    let json = serde_json::to_string_pretty(&view).map_err(ReportError::drawing("the state of a run that goes on"))?;
    Ok((page, json))
}

/// The policy of [`page`], for the header of an answer.
pub fn policy() -> String {
    html::live_policy()
}

/// The report of a run that is still going on, from the records that are there.
///
/// # Errors
/// The records cannot be read or drawn.
pub fn so_far(records: &Path, now: Timestamp) -> Result<String, ReportError> {
    let journal = journal::read(records)?;
    let Drawn { mut view, .. } = draw(&journal, records)?;
    unsettled(&mut view);
    let drawn = now.strftime("%H:%M:%S UTC");
    view.run
        .remarks
        .push(format!("This page was drawn at {drawn} and does not change; load it again for a newer one."));
    html::page("report.html", &view).map_err(ReportError::drawing("the report of a run that goes on"))
}

/// Nothing has passed as long as the run goes on: what was met so far is told as that.
fn unsettled(view: &mut View) {
    for row in view.expectations.iter_mut().filter(|row| row.status == Status::Pass) {
        row.status = Status::Inconclusive;
        row.reason = format!("met so far, while the run is still going on: {}", row.reason);
    }
    if view.status == Status::Pass {
        view.status = Status::Inconclusive;
    }
    let mut met = 0;
    view.counts.retain(|(word, n)| {
        let is_met = word == Status::Pass.word();
        met += if is_met { *n } else { 0 };
        !is_met
    });
    match view.counts.iter_mut().find(|(word, _)| word == Status::Inconclusive.word()) {
        Some((_, n)) => *n += met,
        None if met > 0 => view.counts.push((Status::Inconclusive.word().to_owned(), met)),
        None => {}
    }
}
