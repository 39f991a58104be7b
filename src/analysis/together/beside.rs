//! What became of flows beside incasts: the figures alone and beside, whether that is a loss, and what the ports counted meanwhile.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use railgauge_stats::robust::median;
use railgauge_wire::{
    drivers::{Congestion, congestion},
    unit::Bytes,
};
use serde::Serialize;

use super::{Loss, cell, ends, is_telling, victims::rates};
use crate::analysis::{
    results::CaseResult,
    words::{count, short, size},
};

/// Ports named for one kind of counter.
const NAMED: usize = 4;

/// Whether a flow lost something beside an incast, or beside other traffic of its hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Its interval lies above zero.
    Lost,
    /// Its interval holds zero, or lies below: no loss above the upper end.
    NoLoss,
    /// Too little is known.
    Unknown,
}

impl Answer {
    /// The order in which flows are told, each by its answer and its loss in percent: what lost most comes first, and what nobody knows
    /// before what lost nothing.
    pub fn order((a, lost_a): (Self, Option<f64>), (b, lost_b): (Self, Option<f64>)) -> Ordering {
        let rank = |answer| match answer {
            Self::Lost => 0,
            Self::Unknown => 1,
            Self::NoLoss => 2,
        };
        rank(a).cmp(&rank(b)).then(lost_b.unwrap_or_default().total_cmp(&lost_a.unwrap_or_default()))
    }
}

/// A flow that was measured alone and beside an incast.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VictimOfIncast {
    /// Name of the test.
    pub test: String,
    /// Number of the case beside the incast.
    pub case: u64,
    /// Number of the case alone.
    pub alone_case: u64,
    /// The flow: `gpu01:0 → gpu02:0`.
    pub flow: String,
    /// The port that the flow arrives at: `gpu02:0`.
    pub into: String,
    /// Where the incast went: hosts, or ports where the rails do not say the same.
    pub incast: String,
    /// Flows of the incast.
    pub incast_flows: usize,
    /// Message size.
    pub size_bytes: Bytes,
    /// Queue pairs or streams of each flow.
    pub qps: u32,
    /// Median of the repeats alone, in Gb/s.
    pub alone_gbps: Option<f64>,
    /// Median of the repeats beside the incast, in Gb/s.
    pub beside_gbps: Option<f64>,
    /// Mean loss of the repeats in percent of what it moved alone; below zero where it moved more.
    pub loss_percent: Option<f64>,
    /// Its interval, 95 % for all flows of the test together.
    pub interval_percent: Option<(f64, f64)>,
    /// Whether that is a loss.
    pub answer: Answer,
    /// Why nothing is known; empty where something is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why_unknown: String,
    /// Hosts that are one machine with an end of the flow, this end among them: whether the fabric took something is not known then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_machine: Vec<String>,
    /// What the ports of all its flows counted while it ran beside the incast.
    pub counted: Counted,
}

/// What ports counted of congestion, over all repeats.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Counted {
    /// Ports whose counters could be asked, by host and device.
    pub ports: usize,
    /// Pause frames.
    pub pauses: OfKind,
    /// Packets marked by ECN.
    pub ecn: OfKind,
    /// Congestion notification packets.
    pub cnp: OfKind,
    /// Packets thrown away.
    pub discards: OfKind,
}

/// One kind of counter over all ports.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct OfKind {
    /// Ports that count this kind.
    pub counting: usize,
    /// Host and device, and by counter how much it rose; only what rose.
    pub rose: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Every flow beside an incast of some results, in the order of the cases.
pub fn victims(results: &[CaseResult<'_>]) -> Vec<VictimOfIncast> {
    victims_of(&results.iter().filter(|result| result.test.has_victim()).collect::<Vec<_>>())
}

/// The same of results that are picked already.
pub fn victims_of(results: &[&CaseResult<'_>]) -> Vec<VictimOfIncast> {
    let beside = |result: &&CaseResult<'_>| result.part.as_ref().is_some_and(|part| part.alone.is_some());
    let all: Vec<&CaseResult<'_>> = results.iter().copied().filter(beside).collect();
    let of = |result: &&CaseResult<'_>| {
        let others = |other: &&CaseResult<'_>| {
            (&other.case.test, other.case.round, cell(other.case))
                == (&result.case.test, result.case.round, cell(result.case))
        };
        one(result, &results.iter().copied().filter(others).collect::<Vec<_>>())
    };
    all.iter().map(of).collect()
}

/// One flow. `round` are all cases of its round and cell, itself among them.
fn one(result: &CaseResult<'_>, round: &[&CaseResult<'_>]) -> VictimOfIncast {
    let against = Against::of(result);
    let is_victim = |other: &&&CaseResult<'_>| other.part.as_ref().is_some_and(|part| part.alone.is_some());
    let incast: Vec<_> = round.iter().filter(|other| !is_victim(other)).collect();
    let hosts: BTreeSet<&str> = incast.iter().map(|other| &*ends(other.case).1.host).collect();
    let (_, into) = ends(result.case);
    VictimOfIncast {
        test: result.case.test.to_string(),
        case: result.case.id,
        alone_case: against.alone_case,
        flow: result.link_name(),
        into: format!("{}:{}", into.host, into.rail),
        incast: hosts.into_iter().collect::<Vec<_>>().join(", "),
        incast_flows: incast.len(),
        size_bytes: result.case.cell.size,
        qps: result.case.cell.qps,
        alone_gbps: against.alone_gbps,
        beside_gbps: against.beside_gbps,
        loss_percent: against.loss.map(|loss| loss.percent),
        interval_percent: against.loss.map(|loss| loss.interval),
        answer: against.answer(),
        why_unknown: against.why_unknown,
        one_machine: against.one_machine,
        counted: counted(round),
    }
}

/// A flow beside something, held against the same flow alone.
pub(super) struct Against {
    /// Number of the case alone.
    pub alone_case: u64,
    /// Median of the repeats alone, in Gb/s.
    pub alone_gbps: Option<f64>,
    /// Median of the repeats beside it.
    pub beside_gbps: Option<f64>,
    /// What it lost.
    pub loss: Option<Loss>,
    /// Why that is not known; empty where it is.
    pub why_unknown: String,
    /// Hosts that are one machine with an end of the flow.
    pub one_machine: Vec<String>,
}

impl Against {
    /// Of a case.
    pub(super) fn of(result: &CaseResult<'_>) -> Self {
        let alone = result.part.as_ref().and_then(|part| part.alone.clone()).unwrap_or_default();
        let trusted = is_telling(result);
        let rates = if trusted { rates(result) } else { BTreeMap::new() };
        let middle = |gbps: &BTreeMap<u32, f64>| median(&gbps.values().copied().collect::<Vec<_>>()).ok();
        let loss = Loss::of(result).filter(|_| trusted);
        let (alone_gbps, beside_gbps) = (middle(&alone.gbps), middle(&rates));
        let both = alone.gbps.keys().filter(|repeat| rates.contains_key(repeat)).count();
        let why_unknown = match (&loss, &alone.distrusted) {
            (Some(_), _) if !alone.one_machine.is_empty() => {
                format!("{} are one machine, whose ports share more than the fabric", alone.one_machine.join(" and "))
            }
            (Some(_), _) => String::new(),
            (None, _) if !trusted => result.error().unwrap_or_else(|| result.state.word().to_owned()),
            (None, Some(why)) => why.clone(),
            (None, None) => {
                format!("{} with both figures, and three are needed to tell a loss from noise", count(both, "repeat"))
            }
        };
        let one_machine = alone.one_machine;
        Self { alone_case: alone.case, alone_gbps, beside_gbps, loss, why_unknown, one_machine }
    }

    /// Whether that is a loss.
    pub(super) fn answer(&self) -> Answer {
        match self.loss {
            None => Answer::Unknown,
            Some(_) if !self.one_machine.is_empty() => Answer::Unknown,
            Some(loss) if loss.interval.0 > 0.0 => Answer::Lost,
            Some(_) => Answer::NoLoss,
        }
    }
}

/// What the ports of these cases counted. The counters of a port are read once for all flows of a pass, so that of several flows on
/// it each sample has the same numbers.
pub(super) fn counted(round: &[&CaseResult<'_>]) -> Counted {
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
    let mut counted = Counted { ports: ports.len(), ..Counted::default() };
    for (port, repeats) in ports {
        let mut sums: BTreeMap<Congestion, BTreeMap<String, u64>> = BTreeMap::new();
        for (name, rose) in repeats.values().copied().flatten() {
            if let Some(kind) = congestion(name) {
                let sum = sums.entry(kind).or_default().entry(name.clone()).or_default();
                *sum = sum.saturating_add(*rose);
            }
        }
        for (kind, mut counters) in sums {
            let of = match kind {
                Congestion::Pause => &mut counted.pauses,
                Congestion::Ecn => &mut counted.ecn,
                Congestion::Cnp => &mut counted.cnp,
                Congestion::Discard => &mut counted.discards,
            };
            of.counting += 1;
            counters.retain(|_, rose| *rose > 0);
            if !counters.is_empty() {
                of.rose.insert(port.clone(), counters);
            }
        }
    }
    counted
}

impl VictimOfIncast {
    /// The flow with what sets it apart from others on the same ports: `gpu01:0 → gpu02:0, 64 KiB`.
    pub fn name(&self) -> String {
        format!("{}, {}", self.flow, size(self.size_bytes))
    }

    /// What became of it, in a sentence without its full stop.
    pub fn words(&self) -> String {
        let Self { flow, into, incast, incast_flows, .. } = self;
        let beside = format!("{} into {incast}", count(*incast_flows, "flow"));
        let rates = match (self.alone_gbps, self.beside_gbps) {
            (Some(alone), Some(with)) => format!(": {} Gb/s alone, {} Gb/s beside it", short(alone), short(with)),
            _ => String::new(),
        };
        let interval = self
            .interval_percent
            .map_or_else(String::new, |(low, high)| format!(" ({} to {} %)", short(low), short(high)));
        match (self.answer, self.loss_percent) {
            (Answer::Lost, Some(loss)) => {
                format!(
                    "{into} lost {} %{interval} of {flow} beside {beside} though it shares no port with {incast}{rates}",
                    short(loss)
                )
            }
            (Answer::NoLoss, Some(loss)) => {
                let most = self.interval_percent.map_or(loss, |(_, high)| high).max(0.0);
                format!(
                    "{flow} has no loss above {} % beside {beside}: {} %{interval} is within the noise{rates}",
                    short(most),
                    short(loss)
                )
            }
            (Answer::Unknown, Some(loss)) => format!(
                "what the fabric took of {flow} beside {beside} is not known: {}; it lost {} %{interval}{rates}",
                self.why_unknown,
                short(loss)
            ),
            _ => format!("whether {flow} lost something beside {beside} is not known: {}{rates}", self.why_unknown),
        }
    }
}

impl Counted {
    /// What rose, in a sentence without its full stop. Pauses and notifications stand together: with congestion control switched off
    /// there are no notifications, and that is no fault.
    pub fn words(&self) -> String {
        if self.ports == 0 {
            return "no port's counters could be read".to_owned();
        }
        let kinds =
            [("pauses", &self.pauses), ("CNP", &self.cnp), ("ECN marks", &self.ecn), ("discards", &self.discards)];
        kinds.map(|(name, kind)| kind.words(name, self.ports)).join("; ")
    }
}

impl OfKind {
    fn words(&self, name: &str, ports: usize) -> String {
        // Discards are told only where they rose: their zeros are not kept.
        if self.rose.is_empty() && name == "discards" {
            return "no discards were counted".to_owned();
        }
        if self.counting == 0 {
            return format!("no port counts {name}");
        }
        if self.rose.is_empty() {
            return format!("{name} did not rise on the {} of {ports} that count them", count(self.counting, "port"));
        }
        let sum = |counters: &BTreeMap<String, u64>| {
            counters
                .iter()
                .map(|(name, rose)| format!("{} {rose}", name.rsplit('/').next().unwrap_or(name)))
                .collect::<Vec<_>>()
        };
        let named: Vec<String> = self
            .rose
            .iter()
            .take(NAMED)
            .map(|(port, counters)| format!("{port} ({})", sum(counters).join(", ")))
            .collect();
        let more = self.rose.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{name} rose on {}{more}", named.join(", "))
    }
}
