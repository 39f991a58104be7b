//! Charts as SVG inside the page. One file draws one kind of chart; a chart is one function. What is lines and areas is drawn by
//! `layers` from the file that shows it.
//!
//! Colours are classes of the page's style sheet and not numbers, so that one drawing serves light, dark and paper.
//! `theme` knows how a plotters drawing gets them.

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
