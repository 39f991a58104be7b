use railgauge_wire::Metric;
use serde::{Deserialize, Serialize};

use super::cases::Case;
use crate::plan::Plan;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    pub run_id: String,
    pub version: String,
    /// A plan that would measure the same kind of thing, with names of hosts and tests. It was never run.
    pub plan: Box<Plan>,
    pub files: Vec<ImportedFile>,
    #[serde(with = "super::cases")]
    pub cases: Vec<Case>,
    pub values: Vec<ImportedValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFile {
    pub name: String,
    pub sha256: String,
    /// `perftest 6.06`; without a number where the version is unknown.
    pub tool: String,
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
    pub device: String,
    pub error: Option<String>,
    pub wrong: u64,
}

impl ImportedValue {
    pub fn value(&self) -> Option<f64> {
        let value = self.written.parse::<f64>().ok()? * self.multiply / self.divide;
        value.is_finite().then_some(value)
    }
}
