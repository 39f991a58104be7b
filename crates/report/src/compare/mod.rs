//! The report of a comparison: one page and the terminal text, from one view.

pub mod text;
mod view;

use std::path::Path;

use railgauge_analysis::compare::Comparison;

use super::{
    error::{ReportError, text_file},
    html,
};

pub use view::{CompareView, SideView, view};

/// Replaces the page as a whole or not at all.
///
/// # Errors
/// A chart cannot be rendered, or the file cannot be written.
pub fn write(comparison: &Comparison, path: &Path) -> Result<CompareView, ReportError> {
    let view = view(comparison).map_err(ReportError::drawing("the chart of changes"))?;
    let page = html::page("compare.html", &view).map_err(ReportError::drawing("the page of a comparison"))?;
    text_file(path, &page)?;
    Ok(view)
}
