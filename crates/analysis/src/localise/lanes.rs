//! A path that is only bad for some source ports: [`railgauge_stats::localise::lanes`] over the journal's further cases.
//!
//! A test sums the queue pairs of a case, and with one queue pair it only has one source port. So a confirmed path is measured once more
//! with several queue pairs, one at a time: switches choose among equal paths by the source port, and each queue pair has its own.

use std::collections::BTreeMap;

use railgauge_model::{
    plan::model::Localise,
    schedule::{Cell, Flow},
};
use railgauge_stats::{
    localise::{Part, lanes},
    robust::median,
};
use railgauge_wire::{Metric, SourcePort, TestMetric, Transport};

use super::{Further, Lane, Localisation, Standing};
use crate::{
    case::CaseResult,
    row::Row,
    words::{brief, number, worse},
};

pub(super) const REPEATS: usize = 3;
/// Most queue pairs measured one by one.
const MOST: u32 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LaneKey {
    Port(SourcePort),
    /// Without a known port: the queue pair or stream, from 1.
    Number(u32),
}

impl LaneKey {
    fn of(result: &CaseResult<'_>) -> Self {
        let number = result.case.cell.only.unwrap_or_default();
        let lanes = result.samples.last().map(|(_, sample)| &sample.initiator.lanes);
        let port = lanes.and_then(|lanes| lanes.get(number as usize)?.source_port);
        port.map_or(Self::Number(number + 1), Self::Port)
    }

    const fn noun(self, transport: Transport) -> [&'static str; 2] {
        match (self, transport) {
            (Self::Port(SourcePort::PredictedUdp(_)), _) => ["UDP source port", "UDP source ports"],
            (Self::Port(SourcePort::Tcp(_)), _) => ["TCP source port", "TCP source ports"],
            (Self::Number(_), Transport::Tcp) => ["stream", "streams"],
            (Self::Number(_), _) => ["queue pair", "queue pairs"],
        }
    }

    const fn number(self) -> u32 {
        match self {
            Self::Port(SourcePort::PredictedUdp(port) | SourcePort::Tcp(port)) => port as u32,
            Self::Number(number) => number,
        }
    }
}

impl Localisation {
    /// The flow of every confirmed path whose lanes must be measured one by one, with the cells for it.
    pub(super) fn lanes_wanted(&self, ports: u32) -> Vec<(Flow, Vec<Cell>)> {
        let Some(cell) = self.cell.as_ref().filter(|cell| self.directed && cell.metric == TestMetric::Bandwidth) else {
            return Vec::new();
        };
        if ports == 0
            || self.metric != Metric::Bandwidth
            || !matches!(cell.transport, Transport::Verbs | Transport::Tcp)
        {
            return Vec::new();
        }
        let qps = Localise::queue_pairs(cell.qps, ports);
        let cells = || (0..qps.min(MOST)).map(|lane| Cell { qps, only: Some(lane), ..cell.clone() }).collect();
        let wanted = (0..self.suspects.len()).filter_map(|at| self.path(at)).map(|flow| (flow.clone(), cells()));
        wanted.collect()
    }

    fn path(&self, suspect: usize) -> Option<&Flow> {
        let is_path = matches!(self.raw.get(suspect)?.part, Part::Link(..));
        let confirmed = self.suspects[suspect].standing == Standing::Confirmed;
        self.probes.iter().find(|probe| probe.suspect == suspect && is_path && confirmed).map(|probe| &probe.flow)
    }

    /// Names the source ports of confirmed paths that are only bad for some, from further cases and their rows.
    pub(super) fn tell_lanes(&mut self, further: &[CaseResult<'_>], values: &[Row]) {
        for at in 0..self.suspects.len() {
            let Some(flow) = self.path(at).cloned() else { continue };
            self.tell_lanes_of(at, &flow, further, values);
        }
    }

    fn tell_lanes_of(&mut self, at: usize, flow: &Flow, further: &[CaseResult<'_>], values: &[Row]) {
        let Some(cell) = self.cell.clone() else { return };
        let alike = |result: &CaseResult<'_>| {
            let of = &result.case.cell;
            Cell { qps: cell.qps, only: None, ..Cell::clone(of) } == cell && result.case.flow == *flow
        };
        let own = further.iter().filter(|result| *result.case.test == *self.test && alike(result));
        // With one queue pair, a test's own results are those of a lane, too.
        let (alone, first): (Vec<_>, Vec<_>) = own.partition(|result| result.case.cell.only.is_some());
        if alone.is_empty() {
            return;
        }
        let mut measured: BTreeMap<LaneKey, Vec<f64>> = BTreeMap::new();
        let mut noun = None;
        for &result in first.iter().filter(|result| result.case.cell.qps == 1).chain(&alone) {
            let row = values.iter().find(|row| row.case == result.case.id && row.metric == self.metric);
            let value = row.and_then(|row| row.value).filter(|value| *value > 0.0 && result.state.is_trusted());
            let key = LaneKey::of(result);
            measured.entry(key).or_default().extend(value);
            noun = Some(key.noun(cell.transport));
            if result.case.cell.only.is_some() {
                let link = format!("{}, {} {} alone", result.link_name(), key.noun(cell.transport)[0], key.number());
                let further = Further { case: result.case.id, link, value, error: result.error() };
                self.suspects[at].further.push(further);
            }
        }
        let (keys, results): (Vec<LaneKey>, Vec<Vec<f64>>) = measured.into_iter().unzip();
        let logs: Vec<Vec<f64>> = results.iter().map(|lane| lane.iter().map(|value| value.ln()).collect()).collect();
        let judged = lanes(&logs, self.noise, self.raw[at].effect, self.least);
        let [one, many] = noun.unwrap_or(["queue pair", "queue pairs"]);
        let named = &mut self.suspects[at];
        let words = match &judged {
            Err(refusal) => format!("its {many} were not distinguished: {refusal}"),
            Ok(found) if found.slow.is_empty() => {
                format!("measured alone, none of {} {many} differs from the others", keys.len())
            }
            Ok(found) => {
                let slow: Vec<String> = found.slow.iter().map(|&lane| keys[lane].number().to_string()).collect();
                let which = if slow.len() == 1 { one } else { many };
                named.part.name = format!(
                    "path from {} rail {} to {} rail {}, {which} {} only",
                    flow.from.host,
                    flow.from.rail,
                    flow.to.host,
                    flow.to.rail,
                    slow.join(", ")
                );
                format!(
                    "measured alone, {} of {} {many} {} {} (the others reach {} {}); an outlier needs {} standard errors, \
                     and these are {}",
                    slow.len(),
                    keys.len(),
                    if slow.len() == 1 { "is" } else { "are" },
                    worse(found.effect, true),
                    number(found.good.exp()),
                    self.unit,
                    brief(found.cut),
                    brief(found.z),
                )
            }
        };
        named.reason = format!("{}; {words}", named.reason);
        let slow = judged.map(|found| found.slow).unwrap_or_default();
        let lane = |(number, (key, values)): (usize, (LaneKey, Vec<f64>))| Lane {
            kind: key.noun(cell.transport)[0],
            number: key.number(),
            predicted: matches!(key, LaneKey::Port(SourcePort::PredictedUdp(_))),
            value: median(&values).ok(),
            n: values.len(),
            slow: slow.contains(&number),
        };
        named.lanes = keys.into_iter().zip(results).enumerate().map(lane).collect();
    }
}
