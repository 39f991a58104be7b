//! The frame of a run as a file, seen from what reads and writes it. `railgauge-frame` implements it with polars, so that no other crate
//! links polars.

use std::{error::Error, fs::File, io, path::Path};

use railgauge_wire::Metric;

use super::row::{Reading, Row};

pub trait FrameFile: Sync {
    /// In the order of the frame.
    ///
    /// # Errors
    /// The file cannot be read, or is not a railgauge frame.
    fn readings(&self, path: &Path, metrics: &[Metric]) -> Result<Vec<Reading>, FrameError>;

    /// Takes rows in batches, because a run may have millions; `path` is for errors.
    ///
    /// # Errors
    /// The file cannot be written.
    fn write(&self, batches: &mut dyn Iterator<Item = Vec<Row>>, file: &File, path: &Path) -> Result<(), FrameError>;
}

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("{file}: {cause}")]
    Table {
        file: String,
        /// By the library for tables.
        cause: Box<dyn Error + Send + Sync>,
    },
    #[error("{file}: {cause}")]
    File { file: String, cause: io::Error },
    #[error("{file}: not a frame of railgauge: {cause}")]
    Foreign { file: String, cause: String },
}
