//! Why a chart could not be drawn.

use std::io;

use plotters::drawing::DrawingAreaErrorKind;

/// Why a chart could not be drawn. Every one is a mistake of ours.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    #[error(transparent)]
    Plotters(#[from] DrawingAreaErrorKind<io::Error>),
    /// What plotters made is not one SVG element.
    #[error("plotters drew no SVG")]
    NoSvg,
}
