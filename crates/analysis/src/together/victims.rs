//! A flow alongside an incast on other NIC ports, or alongside other traffic of its own hosts: its loss against the same flow alone.
//!
//! The two are measured in consecutive rounds, so a repeat holds both of them shortly one after the other. The loss is
//! computed repeat by repeat, and the scatter of the repeats is the noise.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use railgauge_model::{
    journal::event::Sample,
    plan::{limits::cells, model::Victim},
    schedule::Flow,
};
use railgauge_stats::student::paired;
use railgauge_wire::{Family, Metric, Overlap};

use super::cells::{Cell, cell, direction};
use crate::{
    case::{Alone, CaseResult, State},
    journal::HostUp,
    value,
};

/// Fewest repeats with a useful scatter: with two the 95 % interval is 13 standard errors wide on either side.
const FEWEST: usize = 3;

/// Loss of a flow alongside an incast or other traffic, in percent of its rate alone; negative for a gain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    pub percent: f64,
    pub interval: (f64, f64),
    pub repeats: usize,
}

/// Links every flow alongside an incast or other traffic with the same flow alone. `hosts` shows which are one machine.
pub(super) fn join(results: &mut [CaseResult<'_>], hosts: &BTreeMap<String, HostUp>) {
    let mut rounds: HashMap<(&str, u32), BTreeSet<&str>> = HashMap::new();
    let mut looks: HashMap<&str, usize> = HashMap::new();
    for result in results.iter().filter(|result| result.case.cell.neighbours.is_some()) {
        *looks.entry(&result.case.test).or_default() += 1;
    }
    for result in results.iter().filter(|result| result.test.has_victim()) {
        let case = result.case;
        rounds.entry((&case.test, case.round)).or_default().extend(case.flow.hosts().into_iter().map(|host| &**host));
        *looks.entry(&case.test).or_default() += usize::from(Victim::is_alone_in(case.round));
    }
    let mut alone: HashMap<(&str, u32, Cell<'_>, &Flow), Alone> = HashMap::new();
    for result in results.iter().filter(|result| result.test.has_victim() || result.test.timed_together()) {
        let case = result.case;
        let looks = looks.get(&*case.test).copied().unwrap_or(1);
        let of = |one_machine| Alone { case: case.id, gbps: rates(result), distrusted: None, one_machine, looks };
        if let Some(beside) = result.test.beside.as_ref().filter(|_| case.cell.neighbours.is_none()) {
            for flows in &beside.flows {
                let (size, qps, _, applied) = cell(case);
                let beside = (size, qps, Some(*flows), applied);
                alone.insert((&*case.test, case.round, beside, &case.flow), of(Vec::new()));
            }
        } else if result.test.has_victim() && Victim::is_alone_in(case.round) {
            let beside = rounds.get(&(&*case.test, case.round + 1));
            let shared = one_machine(&case.flow, beside.into_iter().flatten().copied(), hosts);
            alone.insert((&*case.test, case.round + 1, cell(case), &case.flow), of(shared));
        }
    }
    for result in results.iter_mut() {
        let case = result.case;
        let found = alone.remove(&(&*case.test, case.round, cell(case), &case.flow));
        if let (Some(part), Some(found)) = (&mut result.part, found) {
            part.alone = Some(found);
        }
    }
}

/// Of the hosts in `beside`, those on the same machine as an end of a flow.
fn one_machine<'h>(
    flow: &Flow,
    beside: impl Iterator<Item = &'h str>,
    hosts: &BTreeMap<String, HostUp>,
) -> Vec<String> {
    // Agents on one machine report the same machine name, whatever the plan calls them.
    let machine = |host: &str| hosts.get(host).map(|up| up.facts.hostname.as_str()).filter(|name| !name.is_empty());
    let mut shared = BTreeSet::new();
    for host in beside {
        for end in flow.hosts() {
            if **end != *host && machine(end).is_some() && machine(end) == machine(host) {
                shared.extend([end.to_string(), host.to_owned()]);
            }
        }
    }
    shared.into_iter().collect()
}

/// Whether a case shows what flows do to each other. Lost or repeated packets are not an objection to that: without
/// flow control they are how a full port signals that it is full. The case itself stays contaminated.
pub fn is_telling(result: &CaseResult<'_>) -> bool {
    match result.state {
        State::Measured | State::Short => true,
        State::Contaminated => !result.doubts.is_empty() && result.doubts.iter().all(|doubt| doubt.lost().is_some()),
        _ => false,
    }
}

/// Removes untrusted numbers of flows alone. A flow alone cannot fill a port: if it lost packets, its path has a fault
/// or there was foreign traffic, so it is not a reference.
pub fn judge_victims(results: &mut [CaseResult<'_>]) {
    let mut wanted: HashMap<u64, Vec<usize>> = HashMap::new();
    for (place, result) in results.iter().enumerate() {
        if let Some(alone) = result.part.as_ref().and_then(|part| part.alone.as_ref()) {
            wanted.entry(alone.case).or_default().push(place);
        }
    }
    if wanted.is_empty() {
        return;
    }
    let distrusted: Vec<(usize, String)> = results
        .iter()
        .filter(|result| !result.state.is_trusted() || result.loses())
        .flat_map(|result| {
            let lost = || result.loss().map_or_else(|| result.state.word().to_owned(), |(_, doubt)| doubt.to_string());
            let why = result.error().unwrap_or_else(lost);
            let places = wanted.get(&result.case.id).into_iter().flatten();
            places.map(move |place| (*place, format!("the flow alone: {why}")))
        })
        .collect();
    for (place, why) in distrusted {
        if let Some(alone) = results[place].part.as_mut().and_then(|part| part.alone.as_mut()) {
            alone.gbps.clear();
            alone.distrusted = Some(why);
        }
    }
}

pub(super) fn rates(result: &CaseResult<'_>) -> BTreeMap<u32, f64> {
    let rate = |(repeat, sample): &(u32, &Sample)| {
        let rate = value::of(Metric::Bandwidth, sample, direction(result, *repeat, sample)).ok().flatten()?;
        (rate > 0.0 && rate.is_finite()).then_some((*repeat, rate))
    };
    result.samples.iter().filter_map(rate).collect()
}

/// In percent; `None` if the flow lacks either number.
pub(super) fn of_repeat(result: &CaseResult<'_>, repeat: u32) -> Option<f64> {
    let alone = result.part.as_ref()?.alone.as_ref()?.gbps.get(&repeat)?;
    let beside = rates(result).get(&repeat).copied()?;
    Some(100.0 * (1.0 - beside / alone))
}

impl Loss {
    /// With an interval that covers the truth in 95 % of cases for all such flows of its test together (Bonferroni);
    /// `None` for other cases, and with too few repeats.
    pub fn of(result: &CaseResult<'_>, metric: Metric) -> Option<Self> {
        if metric.family() == Family::Overlap {
            let looks = usize::try_from(cells(result.test)).unwrap_or(usize::MAX);
            let of = if metric == Metric::OverlapLoss { Overlap::loss } else { Overlap::loss_of_other };
            let losses = result.samples.iter().filter_map(|(_, sample)| of(sample.overlap.as_deref()?));
            return Self::of_repeats(&losses.collect::<Vec<_>>(), looks);
        }
        let looks = result.part.as_ref()?.alone.as_ref()?.looks;
        let losses: Vec<f64> = result.samples.iter().filter_map(|(repeat, _)| of_repeat(result, *repeat)).collect();
        Self::of_repeats(&losses, looks)
    }

    /// From the loss of each repeat in percent, with an interval that covers the truth in 95 % of cases for `looks`
    /// together (Bonferroni); `None` with too few repeats.
    pub fn of_repeats(losses: &[f64], looks: usize) -> Option<Self> {
        if losses.len() < FEWEST {
            return None;
        }
        let mean = paired(losses).ok()?;
        let interval = mean.interval(1.0 - 0.05 / looks.max(1) as f64).ok()?;
        Some(Self { percent: mean.estimate, interval: (interval.low, interval.high), repeats: losses.len() })
    }
}
