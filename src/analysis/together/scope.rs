//! What a row of a round is about: the ends of one flow, a NIC that flows share, or everything in the round.

use railgauge_wire::terms::Metric;

use super::{Cell, cell, ends};
use crate::{analysis::results::CaseResult, schedule::Port};

/// What the row of `metric` is about: the ends of its flow or all ranks of its group; for a sum the NIC that its flows share,
/// or the ends of all flows of the round. `results` are those of the row's test.
pub fn subjects<'r>(results: &[&'r CaseResult<'r>], result: &'r CaseResult<'r>, metric: Metric) -> Vec<&'r Port> {
    let (source, sink) = ends(result.case);
    match metric {
        Metric::IngressBandwidth => vec![sink],
        Metric::EgressBandwidth => vec![source],
        Metric::TotalBandwidth => {
            let place = |result: &CaseResult<'_>| -> (u32, Cell) { (result.case.round, cell(result.case)) };
            let same = results.iter().filter(|other| place(other) == place(result));
            same.flat_map(|other| [&other.case.flow.from, &other.case.flow.to]).collect()
        }
        _ if result.case.flow.members.is_empty() => vec![&result.case.flow.from, &result.case.flow.to],
        _ => result.case.flow.members.iter().collect(),
    }
}
