//! Cases that do not simply count as measured.

use railgauge_wire::{
    Bytes, Failure, Op, Stage,
    failure::{self},
    remedy::{self, Remedy},
};
use serde::{Deserialize, Serialize};

use crate::case::{CaseResult, Objections, State};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trouble {
    pub case: u64,
    pub test: String,
    pub link: String,
    /// Distinguishes it from others of the same link and size; mostly empty.
    pub variant: String,
    pub op: String,
    pub size_bytes: Bytes,
    pub qps: u32,
    pub src_host: String,
    pub src_rail: u32,
    pub dst_host: String,
    pub dst_rail: u32,
    /// `failed`, `not run`, `wrong bytes`, `contaminated`, …
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failed>,
    #[serde(flatten)]
    pub against: Objections,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<(String, String, u64)>,
    #[serde(skip)]
    pub hosts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    pub stage: Stage,
    pub kind: failure::Kind,
}

impl Failed {
    fn of(failure: &Failure) -> Self {
        let Failure { host, peer, stage, kind, .. } = failure.clone();
        Self { host, peer, stage, kind }
    }
}

impl Trouble {
    /// `None` where it simply counts as measured.
    pub(super) fn of(result: &CaseResult<'_>) -> Option<Self> {
        if result.state == State::Measured {
            return None;
        }
        let case = result.case;
        Some(Self {
            case: case.id,
            test: case.test.to_string(),
            link: result.link_name(),
            variant: result.variant(),
            op: case.cell.op.word().to_owned(),
            size_bytes: case.cell.size,
            qps: case.cell.qps,
            src_host: case.flow.from.host.to_string(),
            src_rail: case.flow.from.rail,
            dst_host: case.flow.to.host.to_string(),
            dst_rail: case.flow.to.rail,
            state: result.state,
            failure: result.failure.map(Failed::of),
            against: result.against(),
            remedy: if result.state == State::Wrong { Some(of_wrong(result)) } else { result.remedy() },
            counters: if result.state == State::Contaminated { counters(result) } else { Vec::new() },
            hosts: case.flow.hosts().into_iter().map(ToString::to_string).collect(),
        })
    }
}

/// For wrong bytes, which outweigh all other objections of a case.
fn of_wrong(result: &CaseResult<'_>) -> Remedy {
    let is_within = result.case.flow.hosts().len() == 1;
    match result.case.cell.op {
        Op::GpuMemoryTest => remedy::GPU_MEMORY_ERRORS.into(),
        _ if is_within => remedy::WRONG_BYTES_WITHIN_HOST.into(),
        _ => remedy::WRONG_BYTES.into(),
    }
}

fn counters(result: &CaseResult<'_>) -> Vec<(String, String, u64)> {
    let flow = &result.case.flow;
    result
        .samples
        .iter()
        .flat_map(|(_, sample)| [(&flow.from.host, &sample.from_counters), (&flow.to.host, &sample.to_counters)])
        .flat_map(|(host, counters)| counters.iter().map(move |(name, change)| (host, name, *change)))
        .filter(|(_, _, change)| *change > 0)
        .map(|(host, name, change)| (host.to_string(), name.clone(), change))
        .collect()
}
