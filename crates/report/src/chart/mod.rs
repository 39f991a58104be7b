//! Charts as SVG inside the page. `layers` renders axes, lines, areas and dots; the others are drawn by themselves.
//!
//! Colours are classes of the page's style sheet, so that one SVG works for light, dark and paper. `theme` adds them to
//! the output of plotters.

mod error;
pub(super) mod forest;
pub(super) mod layers;
pub(super) mod matrix;
pub(super) mod series;
pub(super) mod theme;
pub(super) mod ticks;
pub(super) mod timeline;

pub(super) use error::ChartError;
pub(super) use layers::Tip;

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
