//! The ceiling of a row: of its link, of a collective, or of what flows at once share.

use std::collections::HashSet;

use railgauge_wire::{
    facts::HostFacts,
    terms::{Metric, Transport},
};

use super::{
    ceiling::{self, RankHost},
    results::CaseResult,
    together::Ceilings,
};

/// The ceilings of the rows of some cases. `F` looks up by its name what a host says of itself.
pub(super) struct RowCeilings<F> {
    facts: F,
    /// Those of flows at once.
    shared: Ceilings,
}

impl<'f, F: Fn(&str) -> Option<&'f HostFacts>> RowCeilings<F> {
    /// Those of these cases. All flows of a round must be among them.
    pub(super) fn new<'r>(facts: F, results: impl Iterator<Item = &'r CaseResult<'r>>) -> Self {
        let shared = Ceilings::new(&facts, results, |result| of_link(&facts, result));
        Self { facts, shared }
    }

    /// The ceiling of a row in its unit, where one can be computed.
    pub(super) fn of(&self, result: &CaseResult<'_>, metric: Metric) -> Option<f64> {
        match (&result.part, metric) {
            _ if !metric.has_ceiling() => None,
            (Some(_), metric) => self.shared.of(result.case.id, metric),
            (None, Metric::Bandwidth) => of_link(&self.facts, result),
            (None, Metric::Busbw) => of_group(&self.facts, result),
            (None, _) => None,
        }
    }
}

/// The ceiling of a case, computed from its link and the facts of its two hosts.
fn of_link<'f>(facts: &impl Fn(&str) -> Option<&'f HostFacts>, result: &CaseResult<'_>) -> Option<f64> {
    let flow = &result.case.flow;
    let (from, to) = (facts(&flow.from.host), facts(&flow.to.host));
    ceiling::of_case(result.link?, from, to, &result.case.cell, result.test.bidirectional).map(|found| found.gbps)
}

/// The ceiling of a collective's bus bandwidth, computed from what carried it and the facts of its hosts.
fn of_group<'f>(facts: &impl Fn(&str) -> Option<&'f HostFacts>, result: &CaseResult<'_>) -> Option<f64> {
    let flow = &result.case.flow;
    if result.case.cell.transport == Transport::Nccl {
        let (_, sample) = result.samples.last()?;
        let seats: Vec<_> =
            sample.ranks.iter().map(|rank| RankHost { facts: facts(&rank.host), gpu: rank.gpu }).collect();
        return ceiling::of_nccl(result.link?, &seats, &result.case.cell);
    }
    let hosts = u32::try_from(flow.hosts().len()).unwrap_or(u32::MAX);
    let group = (flow.ranks(), hosts, ports(result)?);
    let (from, to) = (facts(&flow.from.host), facts(&flow.to.host));
    ceiling::of_group(result.link?, from, to, &result.case.cell, group)
}

/// Ports of a host that the ranks of a collective use.
fn ports(result: &CaseResult<'_>) -> Option<u32> {
    let (_, sample) = result.samples.last()?;
    let host = &sample.ranks.first()?.host;
    let devices: HashSet<&str> =
        sample.ranks.iter().filter(|rank| rank.host == *host).map(|rank| rank.device.as_str()).collect();
    u32::try_from(devices.len()).ok()
}
