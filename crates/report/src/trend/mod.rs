//! The report of a trend: one page and the terminal text, from one view.

pub mod text;
mod view;

use std::path::Path;

use railgauge_analysis::trend::Trend;

use super::{
    error::{ReportError, text_file},
    html,
};

pub use view::{ChangeView, TrendView, view};

/// Replaces the page as a whole or not at all.
///
/// # Errors
/// A chart cannot be rendered, or the file cannot be written.
pub fn write(trend: &Trend, path: &Path) -> Result<TrendView, ReportError> {
    let view = view(trend).map_err(ReportError::drawing("the chart of a series"))?;
    let page = html::page("trend.html", &view).map_err(ReportError::drawing("the page of a trend"))?;
    text_file(path, &page)?;
    Ok(view)
}
