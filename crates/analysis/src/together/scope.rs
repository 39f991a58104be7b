//! The scope of a round's row: the ends of one flow, a shared NIC, or everything in the round.

use std::collections::HashMap;

use railgauge_model::schedule::Port;
use railgauge_wire::Metric;

use super::cells::{Cell, cell, ends};
use crate::case::CaseResult;

#[derive(Debug, Default)]
pub struct Subjects<'r> {
    rounds: HashMap<(u32, Cell<'r>), Vec<&'r Port>>,
}

impl<'r> Subjects<'r> {
    pub fn new(results: &[&'r CaseResult<'r>]) -> Self {
        let mut rounds: HashMap<(u32, Cell<'r>), Vec<&Port>> = HashMap::new();
        for result in results.iter().filter(|result| result.test.at_once()) {
            let flow = &result.case.flow;
            rounds.entry((result.case.round, cell(result.case))).or_default().extend([&flow.from, &flow.to]);
        }
        Self { rounds }
    }

    /// The ends of its flow or all ranks of its group; for a sum the NIC that its flows share, or the ends of all flows of the round.
    fn of(&self, result: &'r CaseResult<'r>, metric: Metric) -> Vec<&'r Port> {
        let (source, sink) = ends(result.case);
        match metric {
            Metric::IngressBandwidth => vec![sink],
            Metric::EgressBandwidth => vec![source],
            Metric::TotalBandwidth => {
                self.rounds.get(&(result.case.round, cell(result.case))).cloned().unwrap_or_default()
            }
            _ if result.case.flow.members.is_empty() => vec![&result.case.flow.from, &result.case.flow.to],
            _ => result.case.flow.members.iter().collect(),
        }
    }

    /// Whether the row of `metric` is about these hosts and rails only. `rail` is the row's own, for a flow that of its
    /// initiator; a sum is about the NIC that its flows share, or about all NICs of the round.
    pub fn are_within(
        &self,
        (result, metric, rail): (&'r CaseResult<'r>, Metric, u32),
        rails: &[u32],
        is_member: impl Fn(&str) -> bool,
    ) -> bool {
        let ports = self.of(result, metric);
        let on_rails = || match metric.is_sum() {
            true => ports.iter().all(|port| rails.contains(&port.rail)),
            false => rails.contains(&rail),
        };
        (rails.is_empty() || on_rails()) && ports.iter().all(|port| is_member(&port.host))
    }
}
