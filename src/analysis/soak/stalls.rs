//! Stalls of flows: those that an outage at one of their ports explains, and those that none does.

use railgauge_wire::unit::Nanoseconds;
use serde::Serialize;

use super::{
    LISTED,
    hit::Hit,
    links::{self, CommonLinks},
    outages::{Break, Event, Index, Outage},
    ports::Port,
    span::Span,
    traffic::{Stalled, Traffic},
};
use crate::analysis::switches::ways::Ways;

/// Flows that stalled together while no watched port of theirs was down.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unexplained {
    /// From the first begin to the last end.
    #[serde(flatten)]
    pub span: Span,
    /// How far off these times may be, in nanoseconds.
    pub error: Nanoseconds,
    /// Whether a window failed, or could not begin.
    pub failed: bool,
    /// The flows.
    #[serde(flatten)]
    pub hit: Hit,
    /// Ports of these flows at which nobody looked then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_watched: Vec<String>,
    /// Which links all of them pass and no flow that went on at the time.
    #[serde(flatten)]
    pub links: CommonLinks,
}

impl Unexplained {
    /// The longest stall of a flow.
    pub fn longest(&self) -> (Nanoseconds, Nanoseconds) {
        let longest = self.hit.longest_stall.as_ref();
        longest.map_or((self.span.length(), self.error), |stall| (stall.length, stall.length_error))
    }
}

/// Ports without a watch named of one event.
const NAMED: usize = 8;

/// Adds each stall to the events that explain it; what is left is put together by time.
pub(super) fn assign(
    traffic: &Traffic<'_>,
    stalls: &[Stalled],
    index: &Index,
    (outages, breaks): (&mut [Outage], &mut [Break]),
) -> Vec<Stalled> {
    let mut left = Vec::new();
    for stall in stalls {
        let time = stall.span.widened(stall.error.saturating_add(stall.loose));
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

/// Stalls that overlap in time as one event, the longest first. `stalls` are in the order of time.
pub(super) fn unexplained(
    traffic: &Traffic<'_>,
    stalls: &[Stalled],
    all: &[Stalled],
    ports: &[Port],
    ways: Option<&Ways<'_>>,
) -> Vec<Unexplained> {
    let mut found: Vec<(Unexplained, Vec<Stalled>)> = Vec::new();
    for stall in stalls {
        let time = stall.span.widened(stall.error.saturating_add(stall.loose));
        let last = found.last_mut().filter(|(last, _)| time.from <= last.span.until.saturating_add(last.error));
        match last {
            Some((last, of)) => {
                last.span.until = last.span.until.max(stall.span.until);
                last.error = last.error.max(stall.error);
                last.failed |= stall.failed;
                of.push(*stall);
            }
            None => {
                let (hit, links) = (Hit::default(), CommonLinks::default());
                let (span, error, failed) = (stall.span, stall.error, stall.failed);
                found.push((Unexplained { span, error, failed, hit, not_watched: Vec::new(), links }, vec![*stall]));
            }
        }
    }
    for (event, of) in &mut found {
        of.iter().for_each(|stall| event.hit.add(traffic, stall));
        event.hit.finish(traffic);
        event.not_watched = not_watched(traffic, ports, of);
    }
    let mut found: Vec<Unexplained> = found.into_iter().map(|(event, _)| event).collect();
    found.sort_by_key(|event| (std::cmp::Reverse(event.longest().0), event.span));
    for event in found.iter_mut().take(LISTED) {
        event.links = links::common(traffic, ways, event, all);
    }
    found
}

/// Ports of the flows at which nobody looked while they stalled.
fn not_watched(traffic: &Traffic<'_>, ports: &[Port], stalls: &[Stalled]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for stall in stalls {
        let Some(ends) = traffic.ends.get(&stall.case) else { continue };
        for end in ends {
            let is_watched =
                end.watched.is_some_and(|port| !ports[port].holes.iter().any(|hole| hole.meets(&stall.span)));
            let name = end.port.as_ref().map(ToString::to_string);
            if let Some(name) = name.filter(|name| !is_watched && !found.contains(name)) {
                found.push(name);
            }
            if found.len() == NAMED {
                return found;
            }
        }
    }
    found
}
