//! The frame's row: one per case and metric. The columns are fixed by the run directory's contract.

use std::{collections::HashSet, ops::Deref, sync::Arc};

use railgauge_wire::{
    terms::{Better, Metric},
    unit::Bytes,
};
use serde::{Deserialize, Serialize};

use super::compact::{Moment, Number};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    Test,
    /// The settling of a suspect, after the tests. Such a row has no part in a test's values or expectations.
    Confirmation,
    Imported,
}

impl Phase {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Confirmation => "confirmation",
            Self::Imported => "imported",
        }
    }
}

/// One row of the frame. Optional columns are null in the frame. The columns that all rows of a case share stand in [`CaseColumns`], and are
/// fields of the row by its `Deref`.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What the rows of its case have in common.
    pub of: Arc<CaseColumns>,
    pub metric: Metric,
    /// Median over the samples; null if nothing was measured.
    pub value: Option<f64>,
    pub value_min: Number,
    pub value_max: Number,
    pub better: Better,
    pub n: u32,
    /// Computed ceiling in the row's unit; null where none can be computed.
    pub ceiling: Option<f64>,
    /// Which host, stage and cause, if the value is null or not to be trusted.
    pub error: Option<Box<str>>,
}

/// The columns that all rows of a case share. A case has about five rows, and a run may have millions. Those that thousands of cases
/// share stand in [`CellColumns`], and are fields of a case's by its `Deref`.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseColumns {
    pub of: Arc<CellColumns>,
    pub case: u64,
    pub round: u32,
    /// Start of the first sample; null if nothing was started, or at no time of day.
    pub started_at: Moment,
    pub src_host: Arc<str>,
    pub dst_host: Arc<str>,
    pub rail: u32,
    /// Bytes that were verified.
    pub verified_bytes: u64,
    /// Bytes that were wrong.
    pub wrong: u64,
}

/// The columns that cases of one cell of a test share where the same devices carried their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CellColumns {
    pub run_id: Arc<str>,
    pub plan: Arc<str>,
    pub test: Arc<str>,
    pub op: Arc<str>,
    /// Message size in bytes.
    pub size_bytes: Bytes,
    /// Ranks of a collective; 2 for a pair.
    pub ranks: u32,
    pub qps: u32,
    /// What carried the bytes; empty if nothing did.
    pub transport: Arc<str>,
    pub link_layer: Arc<str>,
    /// Where the bytes lived.
    pub memory: Arc<str>,
    pub gpu_path: Arc<str>,
    pub src_device: Arc<str>,
    pub src_gpu: Option<u32>,
    pub dst_device: Arc<str>,
    pub dst_gpu: Option<u32>,
    /// Cell of an environment matrix, `KEY=value` joined by spaces; empty without one.
    pub env: Arc<str>,
    pub phase: Phase,
    /// What measured: `railgauge` and its version, or the tool whose output was imported.
    pub tool: Arc<str>,
}

impl Deref for CaseColumns {
    type Target = CellColumns;

    fn deref(&self) -> &CellColumns {
        &self.of
    }
}

impl Row {
    /// Unit of the value.
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

/// Texts that stand in thousands of rows, each once.
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

/// Why a value must not be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Untrusted {
    #[error("{error}")]
    Objection {
        /// The column `error` of the frame: words for people.
        error: String,
    },
    #[error("the value {value} has no logarithm")]
    NoLogarithm {
        /// The value, in the metric's unit.
        value: f64,
    },
    /// There is none.
    #[error("no value")]
    NoValue,
}

/// What comparisons and trends need of a [`Row`].
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub case: u64,
    pub metric: Metric,
    /// The value in the metric's unit, or what stands against it: a value that must not be trusted is none.
    pub value: Result<f64, Untrusted>,
    /// Bytes that were wrong.
    pub wrong: u64,
    /// What carried the bytes; empty if nothing did.
    pub transport: Arc<str>,
    /// Devices of the initiator and the responder; empty where no link was opened.
    pub devices: [Arc<str>; 2],
}

impl Reading {
    /// The value if it may be trusted.
    ///
    /// # Errors
    /// What stands against it.
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

/// A row of a pair, for tests: case, host and size go with its number.
#[cfg(test)]
pub(crate) fn made(case: u64) -> Row {
    let of = CellColumns {
        run_id: "night-1".into(),
        plan: "nightly".into(),
        test: "write-bw".into(),
        op: "write".into(),
        size_bytes: Bytes(65536 << case),
        ranks: 2,
        qps: 1,
        transport: "verbs-rc".into(),
        link_layer: "infiniband".into(),
        memory: "host".into(),
        gpu_path: "none".into(),
        src_device: "mlx5_0".into(),
        src_gpu: None,
        dst_device: "mlx5_0".into(),
        dst_gpu: None,
        env: "".into(),
        phase: Phase::Test,
        tool: "railgauge 0.1.0".into(),
    };
    let of = CaseColumns {
        of: of.into(),
        case,
        round: 0,
        started_at: None.into(),
        src_host: format!("gpu{:02}", case + 1).into(),
        dst_host: "gpu09".into(),
        rail: 0,
        verified_bytes: 0,
        wrong: 0,
    };
    Row {
        of: of.into(),
        metric: Metric::Bandwidth,
        value: Some(390.0),
        value_min: Some(390.0).into(),
        value_max: Some(392.0).into(),
        better: Better::Higher,
        n: 3,
        ceiling: Some(400.0),
        error: None,
    }
}
