//! Runs as directories.

use std::path::{Path, PathBuf};

use railgauge_analysis::history::{self, Run, RunError};
use railgauge_frame::Parquet;
use railgauge_report::{ReportError, Written};
use railgauge_wire::terms::Metric;

pub fn write(run: &Path) -> Result<Written, ReportError> {
    railgauge_report::write(run, &Parquet)
}

pub fn read(directory: &Path, metrics: &[Metric]) -> Result<Run, RunError> {
    history::read(directory, metrics, &Parquet)
}

pub fn read_all(directories: &[PathBuf], metrics: &[Metric], take: impl FnMut(&Path, Result<Run, RunError>)) {
    history::read_all(directories, metrics, &Parquet, take);
}
