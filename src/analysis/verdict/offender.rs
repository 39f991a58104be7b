//! Cases that stand out in a verdict, and how many of its scope do.

use railgauge_wire::unit::Bytes;
use serde::{Deserialize, Serialize};

use crate::analysis::{results::CaseResult, row::Row, together, words::size};

/// Offenders kept in a verdict; the frame has them all.
pub const OFFENDERS: usize = 50;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Offender {
    pub case: u64,
    pub link: String,
    /// What sets it apart beside link and size; empty for most tests.
    pub variant: String,
    pub src_host: String,
    pub dst_host: String,
    pub rail: u32,
    /// Message size in bytes.
    pub size_bytes: Bytes,
    pub qps: u32,
    /// Its value, in the verdict's unit.
    pub value: Option<f64>,
    /// What it was held against, in the verdict's unit.
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

const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// How many rows were in a verdict's scope, and what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    pub in_scope: usize,
    /// Those with a value that may be trusted and a limit to hold it against.
    pub judged: usize,
    pub violating: usize,
    /// Those with a value that must not be trusted, or measured too few times.
    pub doubtful: usize,
    /// Those without a value.
    pub missing: usize,
    /// Those with a value that may be trusted and no limit to hold it against, of an expectation.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlimited: usize,
}
