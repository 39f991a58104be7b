//! Charts as SVG inside the page. Each file renders one kind of chart; lines and areas use `layers`.
//!
//! Colours are classes of the page's style sheet, so that one SVG works for light, dark and paper. `theme` adds them to
//! the output of plotters.

mod error;
pub(super) mod forest;
pub(super) mod lanes;
pub(super) mod layers;
pub(super) mod matrix;
mod plot;
pub(super) mod series;
pub(super) mod theme;
pub(super) mod ticks;
pub(super) mod timeline;

pub(super) use error::ChartError;
pub(super) use plot::Tip;
