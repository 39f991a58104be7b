//! Concurrent flows: when all of them ran, and what passed their shared NICs.
//!
//! A pass is one measurement of all flows of a round in one cell. Every sample has the planned start on its own clock,
//! so all flows share one time axis: nanoseconds after the planned start. Only the time from the last start to the
//! first end counts, reduced by the uncertainty of the clocks. See `docs/patterns.md`.

mod account;
mod beside;
mod ceilings;
mod cells;
mod scope;
mod victims;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

pub use account::strays;
use account::{Account, accounts};
pub use beside::{Answer, Beside, Counted, OfKind, Other, beside};
pub use ceilings::Ceilings;
use cells::{Cell, cell, on};
pub use cells::{direction, ends};
use railgauge_model::{
    journal::event::{Case, Moment, Sample},
    schedule::Port,
};
use railgauge_wire::{Measurement, Metric, Nanoseconds, NanosecondsI64, Window, measure::SLICE};
pub use scope::Subjects;
pub use victims::{Loss, is_telling, judge_victims};

use super::{
    case::{CaseResult, FlowShare, Part, Pass, Scattered},
    journal::HostUp,
    truth,
    value::{self, Direction, Spans},
};

/// Share of the window in which all flows must have run.
const ENOUGH: f64 = 0.5;

type RoundPort<'a> = (&'a str, u32, Cell<'a>, &'a Port);

type PassKey<'a> = (&'a str, u32, Cell<'a>, u32, Nanoseconds);

/// `hosts` are those of the run.
pub fn join(results: &mut [CaseResult<'_>], hosts: &BTreeMap<String, HostUp>) {
    let at_once = |result: &&CaseResult<'_>| result.test.timed_together();
    let mut flows: HashMap<(&str, u32, Cell<'_>), usize> = HashMap::new();
    let (mut out, mut into): (HashMap<RoundPort<'_>, u64>, HashMap<RoundPort<'_>, u64>) = Default::default();
    let mut passes: HashMap<PassKey<'_>, Vec<(&CaseResult<'_>, &Sample)>> = HashMap::new();
    let mut parts: BTreeMap<usize, Part> = BTreeMap::new();
    for (place, result) in results.iter().enumerate().filter(|(_, result)| at_once(result)) {
        let case = result.case;
        let (test, round, cell) = (&*case.test, case.round, cell(case));
        let count = flows.entry((test, round, cell)).or_default();
        *count += 1;
        let (source, sink) = ends(case);
        let part = Part {
            first: *count == 1,
            first_out: *out.entry((test, round, cell, source)).or_insert(case.id) == case.id,
            first_in: *into.entry((test, round, cell, sink)).or_insert(case.id) == case.id,
            ..Part::default()
        };
        parts.insert(place, part);
        for (repeat, sample) in &result.samples {
            if let Some(together) = sample.together.as_deref() {
                passes.entry(key(case, *repeat, together.start)).or_default().push((result, sample));
            }
        }
    }
    let passes: HashMap<PassKey<'_>, Arc<Pass>> = passes
        .into_iter()
        .map(|(key, members)| {
            let (test, round, cell, ..) = key;
            let planned = flows.get(&(test, round, cell)).copied().unwrap_or(0);
            (key, Arc::new(pass(&members, planned)))
        })
        .collect();
    for (place, mut part) in parts {
        for (repeat, sample) in &results[place].samples {
            let case = results[place].case;
            let found = sample.together.as_deref().and_then(|together| passes.get(&key(case, *repeat, together.start)));
            part.passes.extend(found.map(|pass| (*repeat, pass.clone())));
        }
        results[place].part = Some(Box::new(part));
    }
    victims::join(results, hosts);
}

fn key(case: &Case, repeat: u32, start: Nanoseconds) -> PassKey<'_> {
    (&*case.test, case.round, cell(case), repeat, start)
}

fn pass(members: &[(&CaseResult<'_>, &Sample)], planned: usize) -> Pass {
    let mut doubts = Vec::new();
    if members.len() < planned {
        doubts.push(Scattered::FlowsMissing { measured: members.len(), planned });
    }
    let overlap = match overlap(members) {
        Ok(overlap) => Some(overlap),
        Err(why) => {
            doubts.push(why);
            None
        }
    };
    let flow = |(result, sample): &(&CaseResult<'_>, &Sample)| {
        let (source, sink) = ends(result.case);
        // An end's account of another time does not belong to this pass.
        let spans = overlap
            .zip(sample.together.as_deref())
            .filter(|_| strays(result, sample).is_empty())
            .map(|(overlap, together)| Spans { here: on(together.from, overlap), there: on(together.to, overlap) });
        FlowShare {
            case: result.case.id,
            source: source.clone(),
            sink: sink.clone(),
            moved: truth::moved(sample),
            beside: beside::carried(sample, result.case.cell.op.pulls()),
            against: beside::carried(sample, !result.case.cell.op.pulls()),
            packets: result.link.map_or(1.0, |link| truth::packets(link, sample)),
            gbps: value::of(Metric::Bandwidth, sample, Direction::Within(spans)).ok().flatten(),
            slices: spans.map(|spans| slices(&sample.initiator, spans.here)).unwrap_or_default(),
        }
    };
    Pass { overlap, flows: members.iter().map(flow).collect(), doubts }
}

/// In each whole 100 ms between two moments of an end's clock.
fn slices(end: &Measurement, (from, until): (Nanoseconds, Nanoseconds)) -> Vec<f64> {
    let begin = |slice: u64| from + SLICE * slice;
    let whole = until.saturating_sub(from) / SLICE;
    (0..whole).map(|slice| end.bytes_within(begin(slice), begin(slice + 1)) * 8.0 / SLICE.as_f64()).collect()
}

/// After the planned start.
///
/// # Errors
/// A clock is not known well enough, an end does not say when it ran or what it moved when, or that time is too short.
fn overlap(members: &[(&CaseResult<'_>, &Sample)]) -> Result<(NanosecondsI64, NanosecondsI64), Scattered> {
    let (mut from, mut until) = ((NanosecondsI64::MIN, ""), (NanosecondsI64::MAX, ""));
    let mut window = Nanoseconds::ZERO;
    for (result, sample) in members {
        let together = sample.together.as_deref().ok_or(Scattered::NoTime)?;
        let flow = &result.case.flow;
        for (host, moment) in [(&flow.from.host, together.from), (&flow.to.host, together.to)] {
            if moment.error > SLICE {
                return Err(Scattered::Clock { host: host.to_string(), error: moment.error });
            }
        }
        let (strays, told): (Vec<_>, Vec<_>) =
            accounts(result, sample).into_iter().partition(|account| account.stray(result, sample).is_some());
        // The other end shows that the flow ran with the others. Without it they may have had less company than planned.
        if let ([], [stray, ..]) = (told.as_slice(), strays.as_slice()) {
            return Err(Scattered::Stray { host: stray.host.to_owned() });
        }
        for Account { host, planned: moment, end } in told {
            tells_when(host, moment, end)?;
            // An agent may claim any time, which must not overflow.
            let start = end.started.saturating_since(moment.at);
            let (begun, ended) = (start.later(moment.error), start.later(end.elapsed).earlier(moment.error));
            from = if begun > from.0 { (begun, host) } else { from };
            until = if ended < until.0 { (ended, host) } else { until };
        }
        if let Window::Duration(time) = result.test.window {
            window = time;
        }
    }
    let ((from, latest), (until, first)) = (from, until);
    let common = until.saturating_sub(from).max(NanosecondsI64::ZERO);
    if common.as_f64() < ENOUGH * window.as_f64() || common == NanosecondsI64::ZERO {
        let (latest, first) = (latest.to_owned(), first.to_owned());
        return Err(Scattered::TooShort { common, window, latest, from, first, until });
    }
    Ok((from, until))
}

/// Whether an end says when it ran and how its bytes spread over that time: an average over the whole window would hide
/// a pause while the others ran.
///
/// # Errors
/// It does not.
fn tells_when(host: &str, moment: Moment, end: &Measurement) -> Result<(), Scattered> {
    // Clocks count from the start of the host and are not zero while an agent runs.
    if moment.at.is_zero() || end.started.is_zero() || end.elapsed.is_zero() {
        return Err(Scattered::EndWithoutTime { host: host.to_owned() });
    }
    let (told, whole) = (end.slices.len() as u64, end.elapsed / SLICE);
    // Over TCP the slices are the receiver's, whose window is a little shorter.
    if whole.abs_diff(told) > (whole / 10).max(2) {
        return Err(Scattered::SlicesMissing { host: host.to_owned(), seen: told, whole });
    }
    Ok(())
}

/// With its first case and the repeat.
pub fn passes<'r>(results: &[&'r CaseResult<'r>]) -> Vec<(&'r CaseResult<'r>, u32, &'r Pass)> {
    let of = |result: &&'r CaseResult<'r>| {
        let result: &'r CaseResult<'r> = result;
        let passes = result.part.iter().flat_map(|part| &part.passes);
        let first = passes.filter(|(_, pass)| pass.flows.first().is_some_and(|flow| flow.case == result.case.id));
        first.map(move |(repeat, pass)| (result, *repeat, &**pass)).collect::<Vec<_>>()
    };
    results.iter().flat_map(of).collect()
}

/// Rows of sums over a NIC or a round belong to their first flow.
pub fn has_row(result: &CaseResult<'_>, metric: Metric) -> bool {
    result.part.as_ref().is_none_or(|part| match metric {
        Metric::IngressBandwidth => part.first_in,
        Metric::EgressBandwidth => part.first_out,
        Metric::TotalBandwidth => part.first,
        Metric::VictimLoss | Metric::BesideLoss => part.alone.is_some(),
        Metric::BesideBandwidth => result.case.cell.neighbours.is_some(),
        _ => true,
    })
}

/// `gpu01:0 → gpu02:0`, or the scope of the sum.
pub fn name(result: &CaseResult<'_>, metric: Metric) -> String {
    let (source, sink) = ends(result.case);
    match metric {
        Metric::IngressBandwidth => format!("all flows into {}:{}", sink.host, sink.rail),
        Metric::EgressBandwidth => format!("all flows out of {}:{}", source.host, source.rail),
        Metric::TotalBandwidth => format!("all flows of round {}", result.case.round),
        _ => result.link_name(),
    }
}

/// `None` for metrics of a single flow, and where a flow has no number.
pub fn sum(result: &CaseResult<'_>, repeat: u32, metric: Metric) -> Option<f64> {
    let pass = result.part.as_ref()?.passes.get(&repeat)?;
    let (source, sink) = ends(result.case);
    match metric {
        Metric::IngressBandwidth => pass.sum(|flow| flow.sink == *sink),
        Metric::EgressBandwidth => pass.sum(|flow| flow.source == *source),
        Metric::TotalBandwidth => pass.sum(|_| true),
        Metric::VictimLoss | Metric::BesideLoss => victims::of_repeat(result, repeat),
        Metric::BesideBandwidth => beside::moved(result, repeat),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
