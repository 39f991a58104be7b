//! Results taken from the outputs of other tools. Such a journal has two lines: this, and `Finished`.

use railgauge_wire::terms::Metric;
use serde::{Deserialize, Serialize};

use super::event::Case;
use crate::plan::Plan;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The name of the run's directory.
    pub run_id: String,
    pub version: String,
    /// A plan that would measure the same kind of thing, with names of hosts and tests. It was never run.
    pub plan: Box<Plan>,
    pub files: Vec<ImportedFile>,
    pub cases: Vec<Case>,
    /// In the order of the files and their lines.
    pub values: Vec<ImportedValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    pub name: String,
    pub sha256: String,
    /// `perftest 6.06`; without a number where the version is unknown.
    pub tool: String,
    /// What was not read or is unknown, in words.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedValue {
    pub file: usize,
    pub line: u64,
    pub case: u64,
    pub metric: Metric,
    pub written: String,
    /// Conversion to the metric's unit, as a fraction: value = written × multiply ÷ divide.
    pub multiply: f64,
    pub divide: f64,
    /// What carried the bytes, if the file says it: our word or the tool's.
    pub transport: String,
    pub link_layer: String,
    /// Device of the end that wrote the file, if given.
    pub device: String,
    /// What the file says against the value, in words.
    pub error: Option<String>,
    pub wrong: u64,
}

impl ImportedValue {
    /// The value in the metric's unit; `None` where the text is not a finite number.
    pub fn value(&self) -> Option<f64> {
        let value = self.written.parse::<f64>().ok()? * self.multiply / self.divide;
        value.is_finite().then_some(value)
    }
}
