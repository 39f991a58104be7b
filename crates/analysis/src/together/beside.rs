//! Flows measured alone and alongside other traffic (an incast, connections, a command): both figures, whether they
//! differ, and the port counters of that time.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::{
    border::text::command,
    journal::event::{Neighbour, Sample},
    plan::model::{BesideCommand, BesideWay},
};
use railgauge_stats::robust::median;
use railgauge_wire::{Bytes, Congestion, GigabitsPerSecond, Metric, drivers::congestion};
use serde::Serialize;

use super::{
    cells::{cell, ends, on},
    victims::Loss,
    victims::is_telling,
    victims::rates,
};
use crate::{
    case::CaseResult,
    words::{count, short, size, some},
};

const NAMED: usize = 4;

/// In the order of listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The interval lies above zero.
    Lost,
    Unknown,
    /// The interval holds zero or lies below: no loss above its upper end.
    NoLoss,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    pub test: String,
    pub case: u64,
    pub alone_case: u64,
    /// `gpu01:0 → gpu02:0`.
    pub flow: String,
    #[serde(flatten)]
    pub other: Other,
    pub size_bytes: Bytes,
    pub qps: u32,
    /// Median of the repeats, in Gb/s.
    pub alone_gbps: Option<f64>,
    /// Median of the repeats, in Gb/s.
    pub beside_gbps: Option<f64>,
    /// Traffic of the connections in all directions: median of the repeats, in Gb/s.
    pub neighbours_gbps: Option<f64>,
    /// Mean over the repeats in percent of the rate alone; negative for a gain.
    pub loss_percent: Option<f64>,
    /// 95 % for all flows of the test together.
    pub interval_percent: Option<(f64, f64)>,
    pub answer: Answer,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why_unknown: String,
    /// Hosts on the same machine as an end of the flow, including that end: then a loss may not be in the fabric.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_machine: Vec<String>,
    pub counted: Counted,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Other {
    Incast {
        incast: String,
        incast_flows: usize,
    },
    Command {
        command: BesideCommand,
    },
    Connections {
        neighbours: u32,
        direction: BesideWay,
        /// Total of one direction, in Gb/s; `None` for unlimited.
        wanted_gbps: Option<GigabitsPerSecond>,
        /// Source and sink of the first direction.
        interfaces: Option<(String, String)>,
    },
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Counted {
    pub ports: usize,
    #[serde(flatten)]
    pub kinds: BTreeMap<Congestion, OfKind>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct OfKind {
    pub counting: usize,
    pub rose: BTreeMap<String, BTreeMap<String, u64>>,
}

/// In the order of the cases.
pub fn beside(results: &[&CaseResult<'_>]) -> Vec<Beside> {
    results.iter().filter_map(|result| one(result, results)).collect()
}

/// `None` without other traffic.
fn one(result: &CaseResult<'_>, all: &[&CaseResult<'_>]) -> Option<Beside> {
    let alone = result.part.as_ref()?.alone.as_ref()?;
    let (other, round) = match (result.test.beside.as_ref(), result.case.cell.neighbours) {
        (Some(beside), Some(neighbours)) => (connections(result, beside, neighbours), vec![result]),
        _ => incast(result, all),
    };
    let trusted = is_telling(result);
    let rates = if trusted { rates(result) } else { BTreeMap::new() };
    let middle = |gbps: &BTreeMap<u32, f64>| median(&gbps.values().copied().collect::<Vec<_>>()).ok();
    let loss = Loss::of(result, Metric::BesideLoss).filter(|_| trusted);
    let both = alone.gbps.keys().filter(|repeat| rates.contains_key(repeat)).count();
    let (answer, why_unknown) = match (&loss, &alone.distrusted) {
        (Some(_), _) if !alone.one_machine.is_empty() => (
            Answer::Unknown,
            format!("{} are one machine, whose ports share more than the fabric", alone.one_machine.join(" and ")),
        ),
        (Some(loss), _) if loss.interval.0 > 0.0 => (Answer::Lost, String::new()),
        (Some(_), _) => (Answer::NoLoss, String::new()),
        (None, _) if !trusted => (Answer::Unknown, result.error().unwrap_or_else(|| result.state.word().to_owned())),
        (None, Some(why)) => (Answer::Unknown, why.clone()),
        (None, None) => (
            Answer::Unknown,
            format!("{} with both figures, and three are needed to separate a loss from noise", count(both, "repeat")),
        ),
    };
    let moved: Vec<f64> = result.samples.iter().filter_map(|(repeat, _)| moved(result, *repeat)).collect();
    Some(Beside {
        test: result.case.test.to_string(),
        case: result.case.id,
        alone_case: alone.case,
        flow: result.link_name(),
        other,
        size_bytes: result.case.cell.size,
        qps: result.case.cell.qps,
        alone_gbps: middle(&alone.gbps),
        beside_gbps: middle(&rates),
        neighbours_gbps: median(&moved).ok(),
        loss_percent: loss.map(|loss| loss.percent),
        interval_percent: loss.map(|loss| loss.interval),
        answer,
        why_unknown,
        one_machine: alone.one_machine.clone(),
        counted: counted(&round),
    })
}

fn incast<'r>(result: &CaseResult<'_>, all: &[&'r CaseResult<'r>]) -> (Other, Vec<&'r CaseResult<'r>>) {
    let place = |one: &CaseResult<'_>| (one.case.test.clone(), one.case.round);
    let here = |other: &&&CaseResult<'_>| place(other) == place(result) && cell(other.case) == cell(result.case);
    let round: Vec<&CaseResult<'_>> = all.iter().filter(here).copied().collect();
    let is_victim = |other: &&&CaseResult<'_>| other.part.as_ref().is_some_and(|part| part.alone.is_some());
    let flows: Vec<_> = round.iter().filter(|other| !is_victim(other)).collect();
    let hosts: BTreeSet<&str> = flows.iter().map(|other| &*ends(other.case).1.host).collect();
    let incast = hosts.into_iter().collect::<Vec<_>>().join(", ");
    (Other::Incast { incast, incast_flows: flows.len() }, round)
}

fn connections(result: &CaseResult<'_>, beside: &railgauge_model::plan::model::Beside, neighbours: u32) -> Other {
    if let Some(command) = beside.command.clone() {
        return Other::Command { command };
    }
    let first = result.samples.iter().find_map(|(_, sample)| sample.neighbours.first());
    let interfaces = first.map(|one| (one.from_device.clone(), one.to_device.clone()));
    Other::Connections { neighbours, direction: beside.direction, wanted_gbps: beside.rate, interfaces }
}

/// Gb/s of the traffic next to a flow in one repeat, counted by its receivers while the flow ran; `None` if unknown.
pub(super) fn moved(result: &CaseResult<'_>, repeat: u32) -> Option<f64> {
    let (_, sample) = result.samples.iter().find(|(of, _)| *of == repeat)?;
    let overlap = result.part.as_ref()?.passes.get(&repeat)?.overlap?;
    let together = sample.together.as_deref()?;
    let of_one = |one: &Neighbour| {
        let (from, until) = on(if one.opposite { together.from } else { together.to }, overlap);
        let bytes = one.receiver.as_ref()?.bytes_within(from, until);
        Some(bytes * 8.0 / until.saturating_sub(from).as_f64())
    };
    let rate: f64 = sample.neighbours.iter().map(of_one).sum::<Option<f64>>()?;
    (rate > 0.0 && rate.is_finite()).then_some(rate)
}

/// Total payload of the traffic next to a sample in one direction. `opposite`: against the initiator's.
pub(super) fn carried(sample: &Sample, opposite: bool) -> Bytes {
    let all = sample.neighbours.iter().filter(|one| one.opposite == opposite);
    let moved = all.map(|one| one.sender.moved.unwrap_or(one.sender.bytes));
    moved.fold(Bytes::ZERO, Bytes::saturating_add)
}

/// The counters of a port are read once for all flows of a pass, so each of its samples has the same numbers.
fn counted(round: &[&CaseResult<'_>]) -> Counted {
    let mut ports: BTreeMap<String, BTreeMap<u32, &BTreeMap<String, u64>>> = BTreeMap::new();
    for result in round {
        let Some(link) = result.link else { continue };
        for (repeat, sample) in &result.samples {
            let flow = &result.case.flow;
            for (port, device, counters) in [
                (&flow.from, &link.from_device, &sample.from_counters),
                (&flow.to, &link.to_device, &sample.to_counters),
            ] {
                if !counters.is_empty() {
                    ports.entry(format!("{} {device}", port.host)).or_default().insert(*repeat, counters);
                }
            }
        }
    }
    let kinds = Congestion::ALL.map(|kind| (kind, OfKind::default())).into();
    let mut counted = Counted { ports: ports.len(), kinds };
    for (port, repeats) in ports {
        let mut sums: BTreeMap<Congestion, BTreeMap<String, u64>> = BTreeMap::new();
        for (name, rose) in repeats.values().copied().flatten() {
            if let Some(kind) = congestion(name) {
                let sum = sums.entry(kind).or_default().entry(name.clone()).or_default();
                *sum = sum.saturating_add(*rose);
            }
        }
        for (kind, mut counters) in sums {
            let of = counted.kinds.entry(kind).or_default();
            of.counting += 1;
            counters.retain(|_, rose| *rose > 0);
            if !counters.is_empty() {
                of.rose.insert(port.clone(), counters);
            }
        }
    }
    counted
}

impl Beside {
    pub fn words(&self) -> String {
        let what = format!("{}, {}", self.flow, size(self.size_bytes));
        let moved = self.neighbours_gbps.map_or_else(String::new, |gbps| format!(", which moved {} Gb/s", short(gbps)));
        let with_it = format!("alongside {}{moved}", self.other.words());
        let rates = match (self.alone_gbps, self.beside_gbps) {
            (Some(alone), Some(with)) => format!(": {} Gb/s alone, {} Gb/s with it", short(alone), short(with)),
            _ => String::new(),
        };
        let interval = self
            .interval_percent
            .map_or_else(String::new, |(low, high)| format!(" ({} to {} %)", short(low), short(high)));
        let loss = short(self.loss_percent.unwrap_or_default());
        match self.answer {
            Answer::Lost => format!("{what} lost {loss} %{interval} {with_it}{rates}"),
            Answer::NoLoss => {
                let most = self.interval_percent.map_or(0.0, |(_, high)| high).max(0.0);
                let most = short(most);
                format!("{what} has no loss above {most} % {with_it}: {loss} %{interval} is within the noise{rates}")
            }
            Answer::Unknown => {
                format!("whether {what} lost something {with_it} is not known: {}{rates}", self.why_unknown)
            }
        }
    }
}

impl Other {
    pub fn words(&self) -> String {
        match self {
            Self::Incast { incast, incast_flows } => format!("{} into {incast}", count(*incast_flows, "flow")),
            Self::Command { command: BesideCommand { words, on } } => format!("`{}` {}", command(words), on.words()),
            Self::Connections { neighbours, direction, wanted_gbps, .. } => {
                let direction = match direction {
                    BesideWay::Same => "the same way",
                    BesideWay::Opposite => "against it",
                    BesideWay::Both => "both ways",
                };
                let wanted = wanted_gbps.map_or_else(String::new, |rate| format!(", {} Gb/s each way", short(rate.0)));
                format!("{} {direction}{wanted}", count(*neighbours as usize, "TCP connection"))
            }
        }
    }
}

impl Counted {
    /// As a sentence without its full stop. Pauses and notifications are independent: without congestion control there
    /// are no notifications, and that is not a fault. Zeros of discards are not kept.
    pub fn words(&self) -> String {
        let kinds = self.kinds.iter().filter(|(kind, of)| **kind != Congestion::Discard || !of.rose.is_empty());
        let words = |(kind, of): (&Congestion, &OfKind)| {
            let name = kind.words();
            if of.rose.is_empty() {
                return match of.counting {
                    0 => format!("no port counts {name}"),
                    n => format!("{name} did not rise on {}", count(n, "port")),
                };
            }
            format!("{name} rose on {}", some(&of.rose.keys().collect::<Vec<_>>(), NAMED))
        };
        kinds.map(words).collect::<Vec<_>>().join("; ")
    }
}
