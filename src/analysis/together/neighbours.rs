//! Flows beside other traffic of their own two hosts: what that traffic moved, and what the flows lost against themselves alone.

use railgauge_model::{
    border::text::command,
    journal::event::{Neighbour, Sample},
    plan::model::{BesideCommand, BesideWay},
};
use railgauge_stats::robust::median;
use railgauge_wire::unit::{Bytes, GigabitsPerSecond};
use serde::Serialize;

use super::{
    Answer, Counted,
    beside::{Against, counted},
    on,
};
use crate::analysis::{
    results::CaseResult,
    words::{count, neighbour_words, short, size},
};

/// A flow that was measured alone and beside other traffic of its hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Neighboured {
    /// Name of the test.
    pub test: String,
    /// Number of the case beside the traffic.
    pub case: u64,
    /// Number of the case alone.
    pub alone_case: u64,
    /// The flow: `gpu01:0 → gpu02:0`.
    pub flow: String,
    /// TCP connections of each direction; zero beside a command.
    pub neighbours: u32,
    /// The command that ran in place of connections, and on which hosts of the flow; `direction` and `wanted_gbps` say nothing then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<BesideCommand>,
    /// Which way they sent.
    pub direction: BesideWay,
    /// How fast those of one direction were to send together, in Gb/s; `None` as fast as they went.
    pub wanted_gbps: Option<GigabitsPerSecond>,
    /// Interfaces that they used, source and sink of the first direction.
    pub interfaces: Option<(String, String)>,
    /// Message size of the flow.
    pub size_bytes: Bytes,
    /// Queue pairs or streams of the flow.
    pub qps: u32,
    /// Median of the repeats alone, in Gb/s.
    pub alone_gbps: Option<f64>,
    /// Median of the repeats beside the traffic, in Gb/s.
    pub beside_gbps: Option<f64>,
    /// What the traffic moved meanwhile, all directions together: median of the repeats, in Gb/s.
    pub neighbours_gbps: Option<f64>,
    /// Mean loss of the repeats in percent of what it moved alone; below zero where it moved more.
    pub loss_percent: Option<f64>,
    /// Its interval, 95 % for all such flows of the test together.
    pub interval_percent: Option<(f64, f64)>,
    /// Whether that is a loss.
    pub answer: Answer,
    /// Why nothing is known; empty where something is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why_unknown: String,
    /// What the ports of the flow counted while it ran beside the traffic.
    pub counted: Counted,
}

/// Every flow beside other traffic of some results, in the order of the cases.
pub fn neighboured(results: &[CaseResult<'_>]) -> Vec<Neighboured> {
    neighboured_of(&results.iter().collect::<Vec<_>>())
}

/// The same of results that are picked already.
pub fn neighboured_of(results: &[&CaseResult<'_>]) -> Vec<Neighboured> {
    let is_beside = |result: &&CaseResult<'_>| {
        result.case.cell.neighbours.is_some() && result.part.as_ref().is_some_and(|part| part.alone.is_some())
    };
    results.iter().copied().filter(is_beside).filter_map(one).collect()
}

fn one(result: &CaseResult<'_>) -> Option<Neighboured> {
    let (beside, neighbours) = result.test.beside.as_ref().zip(result.case.cell.neighbours)?;
    let against = Against::of(result);
    let moved: Vec<f64> = result.samples.iter().filter_map(|(repeat, _)| moved(result, *repeat)).collect();
    let first = result.samples.iter().find_map(|(_, sample)| sample.neighbours.first());
    Some(Neighboured {
        test: result.case.test.to_string(),
        case: result.case.id,
        alone_case: against.alone_case,
        flow: result.link_name(),
        neighbours,
        command: beside.command.clone(),
        direction: beside.direction,
        wanted_gbps: beside.rate,
        interfaces: first.map(|one| (one.from_device.clone(), one.to_device.clone())),
        size_bytes: result.case.cell.size,
        qps: result.case.cell.qps,
        alone_gbps: against.alone_gbps,
        beside_gbps: against.beside_gbps,
        neighbours_gbps: median(&moved).ok(),
        loss_percent: against.loss.map(|loss| loss.percent),
        interval_percent: against.loss.map(|loss| loss.interval),
        answer: against.answer(),
        why_unknown: against.why_unknown,
        counted: counted(&[result]),
    })
}

/// What the traffic beside a flow moved in one repeat, in Gb/s, by what its receivers counted while the flow ran; `None` where that
/// is not known.
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

/// Payload that the traffic beside a sample moved in one direction in all. `opposite`: against the initiator's.
pub(super) fn carried(sample: &Sample, opposite: bool) -> Bytes {
    let all = sample.neighbours.iter().filter(|one| one.opposite == opposite);
    let moved = all.map(|one| one.sender.moved.unwrap_or(one.sender.bytes));
    moved.fold(Bytes::ZERO, Bytes::saturating_add)
}

impl Neighboured {
    /// What became of it, in a sentence without its full stop.
    pub fn words(&self) -> String {
        let Self { flow, .. } = self;
        let what = format!("{flow}, {}", size(self.size_bytes));
        let moved = self.neighbours_gbps.map_or_else(String::new, |gbps| format!(" with {} Gb/s", short(gbps)));
        let beside = match &self.command {
            Some(command) => format!("beside a command {}", command.on.words()),
            None => format!("{}{moved}", neighbour_words(Some(self.neighbours))),
        };
        let them = if self.command.is_some() { "it" } else { "them" };
        let rates = match (self.alone_gbps, self.beside_gbps) {
            (Some(alone), Some(with)) => format!(": {} Gb/s alone, {} Gb/s beside {them}", short(alone), short(with)),
            _ => String::new(),
        };
        let interval = self
            .interval_percent
            .map_or_else(String::new, |(low, high)| format!(" ({} to {} %)", short(low), short(high)));
        match (self.answer, self.loss_percent) {
            (Answer::Lost, Some(loss)) => format!("{what} lost {} %{interval} {beside}{rates}", short(loss)),
            (Answer::NoLoss, Some(loss)) => {
                let most = self.interval_percent.map_or(loss, |(_, high)| high).max(0.0);
                let (most, loss) = (short(most), short(loss));
                format!("{what} has no loss above {most} % {beside}: {loss} %{interval} is within the noise{rates}")
            }
            _ => format!("whether {what} lost something {beside} is not known: {}{rates}", self.why_unknown),
        }
    }

    /// Where the traffic went, in words.
    pub fn way(&self) -> String {
        if let Some(BesideCommand { words, on }) = &self.command {
            return format!("`{}` {}", command(words), on.words());
        }
        let each = match self.direction {
            BesideWay::Same => "the same way",
            BesideWay::Opposite => "against it",
            BesideWay::Both => "both ways",
        };
        let wanted = self
            .wanted_gbps
            .map_or_else(|| "as fast as they go".to_owned(), |rate| format!("{} Gb/s each way", short(rate.0)));
        format!("{} {each}, {wanted}", count(self.neighbours as usize, "connection"))
    }
}
