//! Charts as SVG inside the page. One file draws one kind of chart; a chart is one function.
//!
//! Colours are classes of the page's style sheet and not numbers, so that one drawing serves light, dark and paper.
//! `theme` knows how a plotters drawing gets them.

pub(super) mod curve;
pub(super) mod distribution;
pub(super) mod flows;
pub(super) mod forest;
pub(super) mod matrix;
mod plot;
pub(super) mod series;
pub(super) mod slices;
mod theme;
mod ticks;
