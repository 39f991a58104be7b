//! The soak: duration, outages, stalls, counters of ports, rates of flows.

mod drawn;
mod events;
mod tables;

use railgauge_analysis::{
    reason::frequency,
    soak::{Soaking, span::Span},
    words::{count, lasting, moment},
};
use serde::Serialize;

use super::section::Figure;
use crate::chart::ChartError;
use drawn::OfStall;
pub use tables::Listed;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SoakView {
    pub sentence: String,
    pub remarks: Vec<String>,
    pub timeline: Option<Figure>,
    pub timeline_more: usize,
    /// Outages, breaks and stalls, longest first, then times of lower rate.
    pub events: Listed,
    pub rates: Option<Figure>,
    /// Slowest first.
    pub flows: Listed,
    pub families: Listed,
    pub counters: Listed,
    pub gauges: Listed,
    pub port_gauges: Listed,
    /// GPUs whose memory the flows used, those with errors first.
    pub gpus: Listed,
    /// Ports with unwatched times, worst first.
    pub coverage: Listed,
    pub counted: Vec<String>,
}

const REMARKS: usize = 4;

/// # Errors
/// A chart cannot be rendered.
pub(super) fn soak(found: &Soaking) -> Result<SoakView, ChartError> {
    let (timeline, timeline_more) = drawn::timeline(found);
    let events = events::events(found);
    Ok(SoakView {
        sentence: sentence(found),
        remarks: remarks(found),
        timeline,
        timeline_more,
        rates: drawn::rates(found)?,
        flows: tables::flows(found),
        families: tables::families(found),
        counters: tables::counters(found),
        gauges: tables::gauges(found),
        port_gauges: tables::port_gauges(found),
        gpus: tables::gpus(found),
        coverage: tables::coverage(found),
        counted: found
            .families
            .iter()
            .filter(|sum| !sum.family.is_normal())
            .map(|sum| format!("{} {} ({} at {})", sum.words, sum.total, frequency(sum.most_per_second), sum.port))
            .collect(),
        events,
    })
}

fn sentence(found: &Soaking) -> String {
    let Soaking { test, demanded, lasted, counts, coverage, .. } = found;
    let Some(span) = found.span else {
        return format!("No traffic of {test} was recorded; {} were required.", lasting(*demanded));
    };
    let mut words = format!(
        "{} of traffic ({} of {test}), begun at {}; {} were required.",
        lasting(*lasted),
        count(counts.flows, "flow"),
        moment(span.from),
        lasting(*demanded)
    );
    if let Some(worst) = coverage.first() {
        words += &format!(
            " {} of {} watched, the least for {:.2} % of the time.",
            counts.watched_ports.min(counts.ports),
            count(counts.ports, "port"),
            (worst.percent * 100.0).floor() / 100.0
        );
    }
    let of = |kind| found.stalls.iter().filter(|stall| OfStall::of(stall) == kind).count();
    let events = [
        (of(OfStall::LostHost), OfStall::LostHost.noun()),
        (counts.outages, "outage of ports"),
        (counts.breaks, "time with breaks that only a counter saw"),
        (of(OfStall::PortsUp), OfStall::PortsUp.noun()),
        (of(OfStall::NotWatched), OfStall::NotWatched.noun()),
        (counts.lower, "time at a lower rate"),
    ];
    let told: Vec<String> = events.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| told(*n, noun)).collect();
    words += &match (told.is_empty(), found.holes.is_empty()) {
        (true, true) => " No outage and no stall.".to_owned(),
        // Unwatched time is unknown.
        (true, false) => " No outage and no stall was seen.".to_owned(),
        (false, _) => format!(" {}.", told.join(", ")),
    };
    words + " Rates of a soak are not judged."
}

/// `2 outages of ports`: the noun has words after it.
fn told(n: usize, noun: &str) -> String {
    match noun.split_once(' ') {
        Some((noun, rest)) => format!("{} {rest}", count(n, noun)),
        None => count(n, noun),
    }
}

fn remarks(found: &Soaking) -> Vec<String> {
    let pause = |span: &Span| format!("No traffic for {} from {}", lasting(span.length()), moment(span.from));
    let mut remarks: Vec<String> = found.pauses.iter().take(REMARKS).map(pause).collect();
    let more = |remarks: &mut Vec<String>, all: usize, what: &str| {
        if all > REMARKS {
            remarks.push(format!("and {}", count(all - REMARKS, what)));
        }
    };
    more(&mut remarks, found.pauses.len(), "more pause");
    remarks.extend(found.holes.iter().take(REMARKS).map(|hole| {
        let more = if hole.ports > 1 { format!(" and {}", count(hole.ports - 1, "more port")) } else { String::new() };
        let (length, from) = (lasting(hole.span.length()), moment(hole.span.from));
        format!("{}{more} not watched for {length} from {from}; what happened there is unknown", hole.port)
    }));
    more(&mut remarks, found.holes.len(), "more time without a watch");
    let failed = found.coverage.iter().filter_map(|port| Some((&port.port, port.failure.as_ref()?)));
    remarks.extend(failed.clone().take(REMARKS).map(|(port, failure)| format!("{port} could not be read: {failure}")));
    more(&mut remarks, failed.count(), "more port");
    remarks
}
