//! The ceiling of a row: of its link, of a collective, or of a shared NIC.

use std::collections::HashSet;

use railgauge_wire::{HostFacts, Metric, Transport};

use super::{
    ceiling::{self, RankHost},
    together::Ceilings,
};
use crate::case::CaseResult;

/// `F` looks up a host's facts by name.
pub(super) struct RowCeilings<F> {
    facts: F,
    shared: Ceilings,
}

impl<'f, F: Fn(&str) -> Option<&'f HostFacts>> RowCeilings<F> {
    /// All flows of a round must be among the cases.
    pub(super) fn new<'r>(facts: F, results: impl Iterator<Item = &'r CaseResult<'r>>) -> Self {
        let shared = Ceilings::new(&facts, results, |result| of_link(&facts, result));
        Self { facts, shared }
    }

    /// In the row's unit.
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

fn of_link<'f>(facts: &impl Fn(&str) -> Option<&'f HostFacts>, result: &CaseResult<'_>) -> Option<f64> {
    let flow = &result.case.flow;
    let (from, to) = (facts(&flow.from.host), facts(&flow.to.host));
    ceiling::of_case(result.link?, from, to, &result.case.cell, result.test.bidirectional).map(|found| found.gbps)
}

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

fn ports(result: &CaseResult<'_>) -> Option<u32> {
    let (_, sample) = result.samples.last()?;
    let host = &sample.ranks.first()?.host;
    let devices: HashSet<&str> =
        sample.ranks.iter().filter(|rank| rank.host == *host).map(|rank| rank.device.as_str()).collect();
    u32::try_from(devices.len()).ok()
}
