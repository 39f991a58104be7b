use std::io;

use plotters::drawing::DrawingAreaErrorKind;

/// Every variant is a bug.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    #[error(transparent)]
    Plotters(#[from] DrawingAreaErrorKind<io::Error>),
    /// The output of plotters is not one SVG element.
    #[error("plotters drew no SVG")]
    NoSvg,
}
