//! Cases that stand out in a verdict, and their number in its scope.

use railgauge_wire::Bytes;
use serde::{Deserialize, Serialize};

use crate::{case::CaseResult, row::Row, together, words::size};

/// Limit per verdict; the frame has them all.
pub const OFFENDERS: usize = 50;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Offender {
    pub case: u64,
    pub link: String,
    /// Distinguishes it from others of the same link and size; mostly empty.
    pub variant: String,
    pub src_host: String,
    pub dst_host: String,
    pub rail: u32,
    pub size_bytes: Bytes,
    pub qps: u32,
    /// In the verdict's unit.
    pub value: Option<f64>,
    /// In the verdict's unit.
    pub limit: Option<f64>,
    pub error: Option<String>,
}

impl Offender {
    pub(super) fn new(result: &CaseResult<'_>, row: &Row, limit: Option<f64>) -> Self {
        Self {
            case: row.case,
            link: together::name(result, row.metric),
            variant: result.variant(),
            src_host: row.src_host.to_string(),
            dst_host: row.dst_host.to_string(),
            rail: row.rail,
            size_bytes: row.size_bytes,
            qps: row.qps,
            value: row.value,
            limit,
            error: row.error.as_deref().map(str::to_owned),
        }
    }

    /// `gpu01:0 → gpu02:0, 64 KiB, 4 queue pairs`.
    pub fn place(&self) -> String {
        let variant = if self.variant.is_empty() { String::new() } else { format!(", {}", self.variant) };
        format!("{}, {}{variant}", self.link, size(self.size_bytes))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    pub in_scope: usize,
    pub judged: usize,
    pub violating: usize,
    pub doubtful: usize,
    /// Without a value.
    pub missing: usize,
    #[serde(default, skip_serializing_if = "railgauge_wire::unit::is_zero")]
    pub unlimited: usize,
}
