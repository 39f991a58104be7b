//! The page and the terminal text of a preflight: findings on the hosts, demands of the plan, and what was not read.

mod text;
mod view;

use std::path::Path;

use super::{
    error::{ReportError, text_file},
    html,
};

pub use text::summary;
pub use view::{Card, Looked, Lost, PreflightView, Unread, view};

/// # Errors
/// The page cannot be rendered or written.
pub fn write(view: &PreflightView, page: &Path) -> Result<(), ReportError> {
    let text = html::page("preflight.html", view).map_err(ReportError::drawing("the page of the preflight"))?;
    text_file(page, &text)
}
