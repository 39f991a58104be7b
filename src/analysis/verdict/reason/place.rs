//! The case that a ground is about.

use std::fmt;

use railgauge_wire::unit::Bytes;
use serde::Serialize;

use crate::analysis::{results::CaseResult, row::Row, together, words::size};

/// Where a case measures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Number of the case.
    pub case: u64,
    /// The link or group, in words; what a sum is over, where the value is one.
    pub link: String,
    /// What sets it apart beside link and size; empty for most tests.
    pub variant: String,
    /// Initiator's host.
    pub src_host: String,
    /// Rail of the initiator.
    pub src_rail: u32,
    /// Responder's host.
    pub dst_host: String,
    /// Rail of the responder.
    pub dst_rail: u32,
    /// Message size in bytes.
    pub size_bytes: Bytes,
}

impl Place {
    /// Where a case measures.
    pub fn of_case(result: &CaseResult<'_>) -> Self {
        let (case, flow) = (result.case, &result.case.flow);
        Self {
            case: case.id,
            link: result.link_name(),
            variant: result.variant(),
            src_host: flow.from.host.to_string(),
            src_rail: flow.from.rail,
            dst_host: flow.to.host.to_string(),
            dst_rail: flow.to.rail,
            size_bytes: case.cell.size,
        }
    }

    /// What a row is about: the sum of its flows, where it is one.
    pub fn of_row(result: &CaseResult<'_>, row: &Row) -> Self {
        Self { link: together::name(result, row.metric), ..Self::of_case(result) }
    }
}

/// `gpu01:0 → gpu02:0, 64 KiB, 4 queue pairs`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.link, size(self.size_bytes))?;
        if self.variant.is_empty() { Ok(()) } else { write!(f, ", {}", self.variant) }
    }
}

/// A case, and what stands against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blamed {
    /// The case.
    #[serde(flatten)]
    pub place: Place,
    /// What stands against it, in words.
    pub error: String,
}

/// `gpu01:0 → gpu02:0, 64 KiB, 4 queue pairs: gpu02: join: …`.
impl fmt::Display for Blamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.error)
    }
}
