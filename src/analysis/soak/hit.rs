//! The flows that an event hit.

use std::collections::BTreeSet;

use railgauge_wire::unit::Nanoseconds;
use serde::Serialize;

use super::traffic::{Stalled, Traffic};

/// Flows named of one event.
const NAMED: usize = 8;

/// The flows that an event hit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Hit {
    /// How many.
    pub flows_hit: usize,
    /// The first of them.
    pub flows: Vec<String>,
    /// The longest time for which one of them stalled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_stall: Option<FlowStall>,
    /// Numbers of their cases.
    #[serde(skip)]
    pub(super) cases: BTreeSet<u64>,
}

/// For how long a flow stalled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowStall {
    /// The flow.
    pub flow: String,
    /// How long, in nanoseconds.
    pub length: Nanoseconds,
    /// How far off that may be, in nanoseconds.
    pub length_error: Nanoseconds,
}

impl Hit {
    /// Adds a stall of one of the flows.
    pub(super) fn add(&mut self, traffic: &Traffic<'_>, stall: &Stalled) {
        self.cases.insert(stall.case);
        let length = stall.span.length();
        if self.longest_stall.as_ref().is_none_or(|known| length > known.length) {
            let flow = traffic.name(stall.case);
            self.longest_stall = Some(FlowStall { flow, length, length_error: stall.length_error() });
        }
    }

    /// Names the flows, once all are known.
    pub(super) fn finish(&mut self, traffic: &Traffic<'_>) {
        self.flows_hit = self.cases.len();
        self.flows = self.cases.iter().take(NAMED).map(|case| traffic.name(*case)).collect();
    }
}
