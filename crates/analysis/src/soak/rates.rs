use std::collections::BTreeMap;

use railgauge_model::journal::event::SoakedFlow;
use railgauge_stats::robust::median;
use railgauge_wire::{Bytes, Failure, GigabitsPerSecond, Kind, Nanoseconds};
use serde::Serialize;

use super::{outages::Index, silence::Stalled, span::Span, stalls::LostHost, traffic::Traffic};

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct FlowRate {
    pub case: u64,
    pub flow: String,
    #[serde(skip)]
    pub hosts: Vec<String>,
    /// Time in measured windows, in nanoseconds.
    pub measured: Nanoseconds,
    pub windows: u64,
    pub bytes: Bytes,
    /// Of windows, in Gb/s.
    pub slowest_gbps: Option<GigabitsPerSecond>,
    /// Of the medians of the parts, in Gb/s.
    pub median_gbps: Option<GigabitsPerSecond>,
    /// Of windows, in Gb/s.
    pub fastest_gbps: Option<GigabitsPerSecond>,
    pub stalls: usize,
    /// In nanoseconds.
    pub longest_stall: Nanoseconds,
    pub failed: u64,
    /// Without an outage of its ports as explanation.
    pub failed_unexplained: u64,
    /// The first failure that no outage explains, otherwise the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostHost>,
    pub verified: Bytes,
    pub wrong: Bytes,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartRate {
    #[serde(flatten)]
    pub span: Span,
    pub slowest_gbps: GigabitsPerSecond,
    pub median_gbps: GigabitsPerSecond,
}

/// Slowest first; those without a rate before all others.
pub(super) fn flows(traffic: &Traffic<'_>, stalls: &[Stalled], index: &Index) -> Vec<FlowRate> {
    let mut found: BTreeMap<u64, FlowRate> =
        traffic.ends.keys().map(|case| (*case, FlowRate { case: *case, ..FlowRate::default() })).collect();
    let mut medians: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for part in &traffic.parts {
        let time = Span::new(part.from, part.until);
        for flow in &part.flows {
            let sum = found.entry(flow.case).or_insert_with(|| FlowRate { case: flow.case, ..FlowRate::default() });
            sum.measured = sum.measured.saturating_add(flow.measured);
            sum.windows = sum.windows.saturating_add(flow.windows);
            sum.bytes = sum.bytes.saturating_add(flow.bytes);
            sum.verified = sum.verified.saturating_add(flow.checked.verified);
            sum.wrong = sum.wrong.saturating_add(flow.checked.wrong);
            sum.slowest_gbps = extreme(sum.slowest_gbps, flow.slowest, f64::min);
            sum.fastest_gbps = extreme(sum.fastest_gbps, flow.fastest, f64::max);
            if let Some(GigabitsPerSecond(rate)) = flow.median.filter(|rate| rate.0.is_finite()) {
                medians.entry(flow.case).or_default().push(rate);
            }
            if flow.failed > 0 {
                let unexplained = unexplained(traffic, flow, time, stalls, index);
                if sum.failure.is_none() || unexplained > 0 && sum.failed_unexplained == 0 {
                    sum.failure.clone_from(&flow.failure);
                }
                sum.failed = sum.failed.saturating_add(flow.failed);
                sum.failed_unexplained = sum.failed_unexplained.saturating_add(unexplained);
            }
        }
    }
    for stall in stalls {
        if let Some(sum) = found.get_mut(&stall.case) {
            sum.stalls += 1;
            sum.longest_stall = sum.longest_stall.max(stall.span.length());
            let lost = stall.lost.filter(|_| sum.failed_unexplained > 0 && sum.lost.is_none());
            if let Some(lost) = lost.and_then(|(place, _)| LostHost::of(traffic, place)) {
                sum.lost = Some(lost);
            }
        }
    }
    let mut found: Vec<FlowRate> = found.into_values().collect();
    for sum in &mut found {
        sum.flow = traffic.name(sum.case);
        sum.hosts = traffic.hosts(sum.case).map(str::to_owned).collect();
        sum.median_gbps = medians.get(&sum.case).and_then(|rates| median(rates).ok()).map(GigabitsPerSecond);
    }
    let slowest = |flow: &FlowRate| flow.slowest_gbps.map_or(-1.0, |rate| rate.0);
    found.sort_by(|a, b| slowest(a).total_cmp(&slowest(b)).then(a.case.cmp(&b.case)));
    found
}

/// Failed windows of a flow's part that no outage of its ports explains. An outage explains windows that failed in a
/// silence overlapping it, if they failed as with a broken link; never wrong bytes.
fn unexplained(traffic: &Traffic<'_>, flow: &SoakedFlow, time: Span, stalls: &[Stalled], index: &Index) -> u64 {
    let breaks = [Kind::Fabric, Kind::Deadline, Kind::Aborted, Kind::Lost];
    let is_break = flow.failure.as_ref().is_none_or(|failure| breaks.contains(&failure.kind));
    let corrupted = flow.corrupted.min(flow.failed);
    if !is_break && corrupted == 0 {
        return flow.failed;
    }
    let silences = stalls.iter().filter(|stall| stall.case == flow.case && stall.failed && stall.span.meets(&time));
    let meets =
        |stall: &&Stalled| traffic.watched(flow.case).any(|port| index.meeting(port, stall.around()).next().is_some());
    let (explained, others): (Vec<&Stalled>, Vec<&Stalled>) = silences.partition(meets);
    match (explained.len(), others.len() as u64) {
        (0, _) => flow.failed,
        (_, others) => others.saturating_add(corrupted).min(flow.failed),
    }
}

fn extreme(
    known: Option<GigabitsPerSecond>,
    more: Option<GigabitsPerSecond>,
    of: fn(f64, f64) -> f64,
) -> Option<GigabitsPerSecond> {
    let more = more.filter(|rate| rate.0.is_finite());
    match (known, more) {
        (Some(known), Some(more)) => Some(GigabitsPerSecond(of(known.0, more.0))),
        (known, more) => known.or(more),
    }
}

/// Parts of a soak in the chart: more are joined.
const DRAWN: usize = 240;

pub(super) fn parts(traffic: &Traffic<'_>) -> Vec<PartRate> {
    let together = traffic.parts.len().div_ceil(DRAWN).max(1);
    let rate = |parts: &[&railgauge_model::journal::event::Soaked]| {
        let span = Span::new(parts.first()?.from, parts.last()?.until);
        let flows = || parts.iter().flat_map(|part| &part.flows);
        let slowest = flows().filter_map(|flow| flow.slowest).map(|rate| rate.0).filter(|rate| rate.is_finite());
        let slowest = slowest.fold(f64::INFINITY, f64::min);
        let medians: Vec<f64> = flows().filter_map(|flow| flow.median).map(|rate| rate.0).collect();
        let median = median(&medians).ok()?;
        let [slowest_gbps, median_gbps] = [slowest, median].map(GigabitsPerSecond);
        slowest.is_finite().then_some(PartRate { span, slowest_gbps, median_gbps })
    };
    traffic.parts.chunks(together).filter_map(rate).collect()
}
