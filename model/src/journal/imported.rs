//! What was taken from the outputs of other tools. Such a journal has two lines: this, and `Finished`.

use railgauge_wire::terms::Metric;
use serde::{Deserialize, Serialize};

use super::event::Case;
use crate::plan::Plan;

/// Everything of an imported run. It was not measured by railgauge, and nothing of it was checked where it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// Identity of the run: the name of its directory.
    pub run_id: String,
    pub version: String,
    /// A plan that would measure something of this kind: names of hosts and tests stand in it. Nobody ran it.
    pub plan: Box<Plan>,
    /// The files, in the order in which they were given.
    pub files: Vec<ImportedFile>,
    /// What was measured, each once.
    pub cases: Vec<Case>,
    /// Every value, in the order of the files and their lines.
    pub values: Vec<ImportedValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    pub name: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// What wrote it: `perftest 6.06`; without a number where the version is not known.
    pub tool: String,
    /// What of it was not read, and what is not known of it, in words.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedValue {
    /// Number of the file, from 0.
    pub file: usize,
    /// Line of the file, from 1.
    pub line: u64,
    pub case: u64,
    pub metric: Metric,
    pub written: String,
    /// What one of it is in the metric's unit, as a fraction: value = written × multiply ÷ divide.
    pub multiply: f64,
    /// See `multiply`.
    pub divide: f64,
    /// What carried the bytes, where the file says it: a word of ours, or the tool's.
    pub transport: String,
    pub link_layer: String,
    /// Device of the end that wrote the file, where it says it.
    pub device: String,
    /// What the file says against the value, in words; `None` if nothing.
    pub error: Option<String>,
    pub wrong: u64,
}

impl ImportedValue {
    /// The value in the metric's unit; `None` where the text is no finite number.
    pub fn value(&self) -> Option<f64> {
        let value = self.written.parse::<f64>().ok()? * self.multiply / self.divide;
        value.is_finite().then_some(value)
    }
}
