//! A row of the frame: one per case and metric. The format of run directories fixes the columns.

use std::{collections::HashSet, ops::Deref, sync::Arc};

use railgauge_wire::{Better, Bytes, Metric};

use super::compact::{Moment, Number};

railgauge_wire::words! {
    Phase {
        Test = "test",
        /// Settles a suspect after the tests. Such a row does not count in a test's values or expectations.
        Confirmation = "confirmation",
        Imported = "imported",
    }
}

/// Optional columns are null in the frame. Columns shared by all rows of a case are in [`CaseColumns`], through `Deref`.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub of: Arc<CaseColumns>,
    pub metric: Metric,
    /// Median over the samples; null without any.
    pub value: Option<f64>,
    pub value_min: Number,
    pub value_max: Number,
    pub better: Better,
    pub n: u32,
    /// In the row's unit; null if unknown.
    pub ceiling: Option<f64>,
    /// Host, stage and cause, if the value is null or not trusted.
    pub error: Option<Box<str>>,
}

/// Columns shared by all rows of a case. A case has about five rows, and a run may have millions. Columns shared by
/// thousands of cases are in [`CellColumns`], through `Deref`.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseColumns {
    pub of: Arc<CellColumns>,
    pub case: u64,
    pub round: u32,
    /// Start of the first sample; null if not started, or at an impossible time.
    pub started_at: Moment,
    pub src_host: Arc<str>,
    pub dst_host: Arc<str>,
    pub rail: u32,
    pub verified_bytes: u64,
    pub wrong: u64,
}

/// Columns shared by cases of one test cell on the same devices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CellColumns {
    pub run_id: Arc<str>,
    pub plan: Arc<str>,
    pub test: Arc<str>,
    pub op: Arc<str>,
    pub size_bytes: Bytes,
    /// 2 for a pair.
    pub ranks: u32,
    pub qps: u32,
    /// Empty if nothing carried bytes.
    pub transport: Arc<str>,
    pub link_layer: Arc<str>,
    pub src_memory: Arc<str>,
    pub dst_memory: Arc<str>,
    pub gpu_path: Arc<str>,
    pub src_device: Arc<str>,
    pub src_gpu: Option<u32>,
    pub dst_device: Arc<str>,
    pub dst_gpu: Option<u32>,
    /// Cell of an environment matrix, `KEY=value` joined by spaces; may be empty.
    pub env: Arc<str>,
    pub phase: Phase,
    /// `railgauge` and its version, or the tool whose output was imported.
    pub tool: Arc<str>,
}

impl Deref for CaseColumns {
    type Target = CellColumns;

    fn deref(&self) -> &CellColumns {
        &self.of
    }
}

impl Row {
    pub const fn unit(&self) -> &'static str {
        self.metric.unit()
    }
}

impl Deref for Row {
    type Target = CaseColumns;

    fn deref(&self) -> &CaseColumns {
        &self.of
    }
}

/// Interns texts that occur in thousands of rows.
#[derive(Debug, Default)]
pub struct Texts(HashSet<Arc<str>>);

impl Texts {
    pub fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.0.insert(Arc::clone(&new));
        new
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Untrusted {
    #[error("{error}")]
    Objection {
        /// The frame's column `error`: words for people.
        error: String,
    },
    #[error("the value {value} has no logarithm")]
    NoLogarithm {
        /// The value, in the metric's unit.
        value: f64,
    },
    #[error("no value")]
    NoValue,
}

/// The part of a [`Row`] that comparisons and trends need.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub case: u64,
    pub metric: Metric,
    /// In the metric's unit, or the reason against it: an untrusted value does not count.
    pub value: Result<f64, Untrusted>,
    pub wrong: u64,
    /// Empty if nothing carried bytes.
    pub transport: Arc<str>,
    /// Of the initiator and the responder; empty without a link.
    pub devices: [Arc<str>; 2],
}

impl Reading {
    /// # Errors
    /// The reason not to trust it.
    pub fn trusted(value: Option<f64>, error: Option<&str>) -> Result<f64, Untrusted> {
        match (value, error) {
            (_, Some(error)) => Err(Untrusted::Objection { error: error.to_owned() }),
            (Some(value), None) if value > 0.0 && value.is_finite() => Ok(value),
            (Some(value), None) => Err(Untrusted::NoLogarithm { value }),
            (None, None) => Err(Untrusted::NoValue),
        }
    }
}

impl From<&Row> for Reading {
    fn from(row: &Row) -> Self {
        Self {
            case: row.case,
            metric: row.metric,
            value: Self::trusted(row.value, row.error.as_deref()),
            wrong: row.wrong,
            transport: Arc::clone(&row.transport),
            devices: [Arc::clone(&row.src_device), Arc::clone(&row.dst_device)],
        }
    }
}
