//! Ceilings of flows at once: the rate of each NIC, shared by the flows on it.

use std::collections::{BTreeMap, HashMap};

use railgauge_model::schedule::Port;
use railgauge_wire::{HostFacts, Metric};

use super::cells::{Cell, cell, ends};
use crate::{case::CaseResult, ceiling::of_nic};

/// In Gb/s.
pub struct Ceilings {
    by_case: HashMap<u64, Known>,
}

/// The ceilings of one case; `None` if a NIC's rate is unknown.
struct Known {
    flow: Option<f64>,
    ingress: Option<f64>,
    egress: Option<f64>,
    total: Option<f64>,
}

#[derive(Default)]
struct Lane {
    /// The rate of the NIC; `None` until a flow gives it.
    nic: Option<f64>,
    /// Ceilings of the flows on it, each alone; `None` if one is unknown.
    flows: Vec<Option<f64>>,
}

impl Lane {
    /// Limited by the NIC, or by its flows' other ends.
    fn most(&self) -> Option<f64> {
        let flows: f64 = self.flows.iter().copied().sum::<Option<f64>>()?;
        Some(self.nic?.min(flows))
    }

    fn share(&self) -> Option<f64> {
        Some(self.nic? / self.flows.len() as f64)
    }
}

impl Ceilings {
    /// `facts` returns those of a host by name; `alone` is the ceiling of a flow that shares no NIC.
    pub fn new<'r, 'f>(
        facts: &impl Fn(&str) -> Option<&'f HostFacts>,
        results: impl Iterator<Item = &'r CaseResult<'r>>,
        alone: impl Fn(&CaseResult<'_>) -> Option<f64>,
    ) -> Self {
        let mut rounds: BTreeMap<(&str, u32, Cell), Vec<&CaseResult<'_>>> = BTreeMap::new();
        for result in results.filter(|result| result.part.is_some()) {
            rounds.entry((&result.case.test, result.case.round, cell(result.case))).or_default().push(result);
        }
        let by_case = rounds.values().flat_map(|round| of_round(facts, round, &alone)).collect();
        Self { by_case }
    }

    /// `None` for metrics without one.
    pub fn of(&self, case: u64, metric: Metric) -> Option<f64> {
        let known = self.by_case.get(&case)?;
        match metric {
            Metric::Bandwidth => known.flow,
            Metric::IngressBandwidth => known.ingress,
            Metric::EgressBandwidth => known.egress,
            Metric::TotalBandwidth => known.total,
            _ => None,
        }
    }
}

fn of_round<'f>(
    facts: &impl Fn(&str) -> Option<&'f HostFacts>,
    round: &[&CaseResult<'_>],
    alone: &impl Fn(&CaseResult<'_>) -> Option<f64>,
) -> Vec<(u64, Known)> {
    let (mut out, mut into): (HashMap<&Port, Lane>, HashMap<&Port, Lane>) = Default::default();
    for result in round {
        let (source, sink) = ends(result.case);
        let own = alone(result);
        for (lanes, port, sends) in [(&mut out, source, true), (&mut into, sink, false)] {
            let lane = lanes.entry(port).or_default();
            lane.nic = lane.nic.or_else(|| own.and_then(|_| nic(facts, result, port, sends)));
            lane.flows.push(own);
        }
    }
    let all = |lanes: &HashMap<&Port, Lane>| lanes.values().map(Lane::most).sum::<Option<f64>>();
    let total = all(&out).zip(all(&into)).map(|(out, into)| out.min(into));
    let known = |result: &&CaseResult<'_>| {
        let (source, sink) = ends(result.case);
        let (out, into) = (&out[source], &into[sink]);
        let share = out.share().zip(into.share()).map(|(out, into)| out.min(into));
        let flow = alone(result).zip(share).map(|(own, share)| own.min(share));
        (result.case.id, Known { flow, ingress: into.most(), egress: out.most(), total })
    };
    round.iter().map(known).collect()
}

fn nic<'f>(
    facts: &impl Fn(&str) -> Option<&'f HostFacts>,
    result: &CaseResult<'_>,
    port: &Port,
    sends: bool,
) -> Option<f64> {
    let (link, facts) = (result.link?, facts(&port.host)?);
    let device = if *port == result.case.flow.from { &link.from_device } else { &link.to_device };
    of_nic(link, facts, device, &result.case.cell, sends)
}
