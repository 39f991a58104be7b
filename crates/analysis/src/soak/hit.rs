use std::collections::BTreeSet;

use railgauge_wire::Nanoseconds;
use serde::{Serialize, Serializer};

use super::{silence::Stalled, traffic::Traffic};

/// Entries of each list that are reported, worst first, next to their total number.
pub const LISTED: usize = 50;

const NAMED: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Hit {
    pub flows_hit: usize,
    /// The first of them.
    pub flows: Vec<String>,
    pub stall_count: usize,
    /// Total length of their stalls, in nanoseconds.
    pub stalled: Nanoseconds,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_stall: Option<FlowStall>,
    /// In order of time.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "listed")]
    pub flow_stalls: Vec<FlowStall>,
    #[serde(skip)]
    last: Option<(u64, Nanoseconds)>,
    #[serde(skip)]
    pub(super) cases: BTreeSet<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowStall {
    pub flow: String,
    /// In nanoseconds since 1970.
    pub from: Nanoseconds,
    /// In nanoseconds.
    pub length: Nanoseconds,
    /// In nanoseconds.
    pub length_error: Nanoseconds,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

impl FlowStall {
    pub fn surely(&self) -> Nanoseconds {
        self.length.saturating_sub(self.length_error)
    }
}

pub(super) fn listed<T: Serialize, S: Serializer>(all: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().take(LISTED))
}

impl Hit {
    /// A stall that meets both ends of a flow, or a port twice, is added once.
    pub(super) fn add(&mut self, traffic: &Traffic<'_>, stall: &Stalled) {
        if self.last.replace((stall.case, stall.span.from)) == Some((stall.case, stall.span.from)) {
            return;
        }
        self.cases.insert(stall.case);
        let flow = traffic.name(stall.case);
        let (from, length) = (stall.span.from, stall.span.length());
        let stall = FlowStall { flow, from, length, length_error: stall.length_error(), open: stall.open };
        self.stall_count += 1;
        self.stalled = self.stalled.saturating_add(length);
        let size = |stall: &FlowStall| (stall.surely(), stall.length);
        if self.longest_stall.as_ref().is_none_or(|known| size(&stall) > size(known)) {
            self.longest_stall = Some(stall.clone());
        }
        self.flow_stalls.push(stall);
    }

    pub(super) fn finish(&mut self, traffic: &Traffic<'_>) {
        self.flows_hit = self.cases.len();
        self.flows = self.cases.iter().take(NAMED).map(|case| traffic.name(*case)).collect();
    }
}
