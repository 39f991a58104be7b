//! Stalls of flows: those explained by an outage at one of their ports, and the others.

use std::collections::BTreeMap;

use railgauge_wire::{Failure, Nanoseconds};
use serde::Serialize;

use super::{
    hit::Hit,
    outages::{Break, Event, Index, Outage},
    ports::Port,
    silence::Stalled,
    span::Span,
    traffic::Traffic,
};
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LostHost {
    pub host: String,
    /// When it was noticed, in nanoseconds since 1970.
    pub at: Nanoseconds,
    pub failure: Failure,
}

impl LostHost {
    pub(super) fn of(traffic: &Traffic<'_>, place: usize) -> Option<Self> {
        let loss = traffic.journal.losses.get(place)?;
        Some(Self { host: loss.host.clone(), at: loss.at?, failure: loss.failure.clone() })
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortsWatched {
    All,
    Some,
    #[default]
    None,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unexplained {
    /// From the first start to the last end.
    #[serde(flatten)]
    pub span: Span,
    /// Error of these times, in nanoseconds.
    pub error: Nanoseconds,
    /// Error of the whole length, in nanoseconds.
    pub length_error: Nanoseconds,
    /// Whether a window failed, or could not start.
    pub failed: bool,
    #[serde(flatten)]
    pub hit: Hit,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostHost>,
    pub ports_watched: PortsWatched,
}

impl Unexplained {
    pub fn longest(&self) -> (Nanoseconds, Nanoseconds) {
        let longest = self.hit.longest_stall.as_ref();
        longest.map_or((self.span.length(), self.length_error), |stall| (stall.length, stall.length_error))
    }
}

pub(super) fn assign(
    traffic: &Traffic<'_>,
    stalls: &[Stalled],
    index: &Index,
    (outages, breaks): (&mut [Outage], &mut [Break]),
) -> Vec<Stalled> {
    let mut left = Vec::new();
    for stall in stalls {
        let time = stall.around();
        let mut explained = false;
        for event in traffic.watched(stall.case).flat_map(|port| index.meeting(port, time)) {
            explained = true;
            match event {
                Event::Outage(at) => outages[at].hit.add(traffic, stall),
                Event::Break(at) => breaks[at].hit.add(traffic, stall),
            }
        }
        if !explained {
            left.push(*stall);
        }
    }
    outages.iter_mut().for_each(|outage| outage.hit.finish(traffic));
    breaks.iter_mut().for_each(|one| one.hit.finish(traffic));
    left
}

/// Stalls that overlap in time as one event, and those after the loss of one host as another, longest first. `stalls` are in order of time.
pub(super) fn unexplained(traffic: &Traffic<'_>, stalls: &[Stalled], ports: &[Port]) -> Vec<Unexplained> {
    let mut of_hosts: BTreeMap<usize, Vec<Stalled>> = BTreeMap::new();
    let mut events: Vec<(Span, Vec<Stalled>)> = Vec::new();
    for stall in stalls {
        if let Some((place, _)) = stall.lost {
            of_hosts.entry(place).or_default().push(*stall);
            continue;
        }
        let time = stall.around();
        match events.last_mut().filter(|(last, _)| time.from <= last.until) {
            Some((last, of)) => {
                last.until = last.until.max(stall.span.until.saturating_add(stall.error.max(stall.end_error)));
                of.push(*stall);
            }
            None => {
                let until = stall.span.until.saturating_add(stall.error.max(stall.end_error));
                events.push((Span::new(time.from, until), vec![*stall]));
            }
        }
    }
    let lost = of_hosts.into_iter().filter_map(|(place, of)| event(traffic, ports, &of, LostHost::of(traffic, place)));
    let others = events.iter().filter_map(|(_, of)| event(traffic, ports, of, None));
    let mut found: Vec<Unexplained> = lost.chain(others).collect();
    found.sort_by_key(|event| (std::cmp::Reverse(event.longest().0), event.span));
    found
}

/// `None` without any.
fn event(traffic: &Traffic<'_>, ports: &[Port], stalls: &[Stalled], lost: Option<LostHost>) -> Option<Unexplained> {
    let first = stalls.iter().min_by_key(|stall| stall.span.from)?;
    let last = stalls.iter().max_by_key(|stall| stall.span.until)?;
    let mut hit = Hit::default();
    stalls.iter().for_each(|stall| hit.add(traffic, stall));
    hit.finish(traffic);
    Some(Unexplained {
        span: Span::new(first.span.from, last.span.until),
        length_error: first.error.saturating_add(last.end_error),
        error: stalls.iter().map(|stall| stall.error.max(stall.end_error)).max()?,
        failed: stalls.iter().any(|stall| stall.failed),
        hit,
        lost,
        ports_watched: watched(traffic, ports, stalls),
    })
}

/// Whether the ports of the flows were watched while they stalled.
fn watched(traffic: &Traffic<'_>, ports: &[Port], stalls: &[Stalled]) -> PortsWatched {
    let ends = stalls.iter().flat_map(|stall| Some((stall, traffic.ends.get(&stall.case)?)));
    let (mut any, mut all) = (false, true);
    for (stall, end) in ends.flat_map(|(stall, ends)| ends.iter().map(move |end| (stall, end))) {
        let is_watched = end.watched.is_some_and(|port| !ports[port].holes.iter().any(|hole| hole.meets(&stall.span)));
        (any, all) = (any | is_watched, all & is_watched);
    }
    match (any, all) {
        (false, _) => PortsWatched::None,
        (true, true) => PortsWatched::All,
        (true, false) => PortsWatched::Some,
    }
}
