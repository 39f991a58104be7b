//! What the counters of both ends say about a sample: reasons to distrust it, and changes worth showing.
//!
//! `docs/reading-the-report.md` describes rules and thresholds. Everything is a pure function of the journal, so a
//! later change of a threshold changes old reports too.

use std::collections::BTreeMap;

use railgauge_model::journal::event::{Case, LinkRecord, Sample};
use railgauge_wire::{
    Bytes, Carrier, HostFacts, LinkLayer, TestMetric,
    drivers::{LOSSES, MEMBERS, of_member},
};

mod arrival;
mod counted;
mod ends;
mod thresholds;

use super::{
    case::{Doubt, LOSS_TOLERANCE, Load},
    ceiling::wire_efficiency,
    gpus,
};

/// Events for which one occurrence is enough, with their counters: these count the same event, and the first that moved is reported.
const BREAKS: &[(&str, &[&str])] = &[
    (
        "the link went down",
        &[
            "counters/link_downed",
            "hw_counters/link_downed",
            "ethtool/link_down_events_phy",
            "netdev/carrier_down_count",
        ],
    ),
    ("the link recovered from an error", &["counters/link_error_recovery"]),
    (
        "a transport retry limit was reached",
        &[
            "hw_counters/retry_exceeded_err",
            "hw_counters/req_transport_retries_exceeded",
            // bnxt_re and ionic.
            "hw_counters/max_retry_exceeded",
            "hw_counters/req_tx_retry_excd_err",
        ],
    ),
    ("a pause storm was cut off", &["ethtool/tx_pause_storm_error_events"]),
];

pub(super) type Ends<'a> = (Option<&'a HostFacts>, Option<&'a HostFacts>);

use counted::{Counted, End, Way};
pub(super) use ends::known_before;
pub(super) use thresholds::NOTED;
use thresholds::{ACKNOWLEDGEMENT, BESIDE_HEADERS, LOSS_ALLOWANCE, WIRE_ALLOWANCE, WIRE_MINIMUM, WIRE_TOLERANCE};

pub(super) fn alone(case: &Case, link: &LinkRecord, sample: &Sample) -> (Load, Load) {
    let (moved, packets) = (moved(sample), packets(link, sample));
    let (source, sink) =
        (Load { sent: moved, packets, ..Load::default() }, Load { received: moved, packets, ..Load::default() });
    if case.cell.op.pulls() { (sink, source) } else { (source, sink) }
}

/// Why a sample is not trusted, each reason with its host, and the ends whose bytes on the wire were not compared with the
/// payload. `loads` are those of the initiator's and the responder's NIC.
pub(super) fn doubts(
    case: &Case,
    bidirectional: bool,
    link: &LinkRecord,
    ends: Ends<'_>,
    sample: &Sample,
    loads: &(Load, Load),
) -> (Vec<Doubt>, Vec<String>) {
    let mut found: Vec<Doubt> = noted(sample).collect();
    let tolerance = if link.transport == Carrier::Tcp { NOTED } else { LOSS_TOLERANCE };
    let sides = [
        (&case.flow.from.host, &sample.from_counters, loads.0.packets),
        (&case.flow.to.host, &sample.to_counters, loads.1.packets),
    ];
    for (host, counters, packets) in sides {
        for place in places(counters) {
            // Most have no members and no movement, so no name is built for them.
            let times = |name: &str| match place.as_str() {
                "" => counters.get(name).copied(),
                place => counters.get(&format!("{place}{name}")).copied(),
            };
            for (meaning, names) in BREAKS {
                let moved = names.iter().find_map(|name| Some((name, times(name).filter(|times| *times > 0)?)));
                if let Some((name, times)) = moved {
                    let counter = format!("{place}{name}");
                    found.push(Doubt::Event { host: host.to_string(), counter, times, meaning });
                }
            }
            for (name, meaning) in LOSSES {
                let times = times(name).unwrap_or(0);
                if times > LOSS_ALLOWANCE && times as f64 > tolerance * packets {
                    let counter = format!("{place}{name}");
                    // A packet may be sent again several times.
                    let packets = packets + times as f64;
                    found.push(Doubt::Loss { host: host.to_string(), counter, times, packets, meaning });
                }
            }
        }
    }
    found.extend(arrival::missing(case, sample));
    let (of_wire, uncounted) = wire(case, bidirectional, link, ends, sample, loads);
    found.extend(of_wire);
    (found, uncounted)
}

/// Prefixes of counter names: empty, and each member of a bond.
fn places(counters: &BTreeMap<String, u64>) -> Vec<String> {
    let mut places = vec![String::new()];
    for (member, _) in counters.keys().filter_map(|name| of_member(name)) {
        let place = format!("{MEMBERS}{member}/");
        if places.last() != Some(&place) {
            places.push(place);
        }
    }
    places
}

pub(super) fn noted(sample: &Sample) -> impl Iterator<Item = Doubt> {
    let gpus = gpus::disturbances(sample).map(|(gpu, bad)| Doubt::Gpu {
        host: gpu.host.clone(),
        gpu: gpus::name(&gpu.seen),
        bad,
    });
    sample.contaminated.iter().map(|cause| Doubt::Noted { cause: cause.clone() }).chain(gpus)
}

pub(super) fn moved(sample: &Sample) -> Bytes {
    sample.initiator.moved.unwrap_or(sample.initiator.bytes)
}

pub(super) fn packets(link: &LinkRecord, sample: &Sample) -> f64 {
    let measured = &sample.initiator;
    let bytes = moved(sample).as_f64();
    (bytes / f64::from(link.mtu.max(1))).max(measured.operations as f64).max(1.0)
}

/// The sending NIC must count the payload with its headers: more is foreign traffic or retransmission, less means that
/// something else carried the payload. The receiving NIC must not count more either: foreign traffic to it takes rate
/// without the sender seeing it. If no reliable counter exists, that is the result.
fn wire(
    case: &Case,
    bidirectional: bool,
    link: &LinkRecord,
    (from, to): Ends<'_>,
    sample: &Sample,
    loads: &(Load, Load),
) -> (Vec<Doubt>, Vec<String>) {
    if sample.initiator.moved.is_none()
        || case.cell.metric != TestMetric::Bandwidth
        || bidirectional
        || case.cell.op.is_atomic()
    {
        return Default::default();
    }
    let end = |host, device, facts, counters| End { host, device, facts, counters };
    let mut ends = [
        (end(&*case.flow.from.host, &*link.from_device, from, &sample.from_counters), loads.0),
        (end(&*case.flow.to.host, &*link.to_device, to, &sample.to_counters), loads.1),
    ];
    let Some(efficiency) = wire_efficiency(link, from, to, &case.cell, bidirectional) else {
        // For iWARP only the MTU of both interfaces gives the number of headers.
        let measured = moved(sample) >= WIRE_MINIMUM && link.link_layer == LinkLayer::Iwarp;
        return (Vec::new(), ends.iter().filter(|_| measured).map(|(end, _)| end.name()).collect());
    };
    if case.cell.op.pulls() {
        ends.reverse();
    }
    let [(source, out), (sink, inward)] = &ends;
    let resent = source.counters.get("tcp/RetransSegs").filter(|_| link.transport == Carrier::Tcp);
    let resent = resent.map_or(0.0, |segments| *segments as f64 * f64::from(link.mtu));
    let sides = [
        (source, Way::Sent, out.sent, out.received, (out.beside_sent, out.beside_received)),
        (sink, Way::Received, inward.received, inward.sent, (inward.beside_received, inward.beside_sent)),
    ];
    let (mut found, mut missing, mut unchecked) = (Vec::new(), None, Vec::new());
    for (end, way, payload, other_way, beside) in
        sides.into_iter().filter(|(_, _, payload, ..)| *payload >= WIRE_MINIMUM)
    {
        match end.counted(link, way) {
            Some(seen) => {
                let passed = Passed { host: end.host, way, seen, payload: payload.as_f64(), resent, other_way, beside };
                found.extend(passed.foreign(efficiency, link.mtu));
                missing = missing.or_else(|| passed.missing().filter(|_| way == Way::Sent));
            }
            None => unchecked.push(end.name()),
        }
    }
    found.extend(missing);
    (found, unchecked)
}

struct Passed<'a> {
    host: &'a str,
    way: Way,
    seen: Counted,
    payload: f64,
    resent: f64,
    other_way: Bytes,
    /// The test's own other traffic, this way and the other, which the counters may or may not include.
    beside: (Bytes, Bytes),
}

impl Passed<'_> {
    fn foreign(&self, efficiency: f64, mtu: u32) -> Option<Doubt> {
        let seen = self.seen.bytes as f64;
        let whole = self.payload / efficiency;
        // Traffic in the other direction is acknowledged at most packet by packet.
        let answered = self.other_way.saturating_add(self.beside.1);
        let acknowledged = answered.as_f64() / f64::from(mtu.max(1)) * ACKNOWLEDGEMENT;
        let beside = self.beside.0.as_f64() * BESIDE_HEADERS;
        (seen > (whole + beside + self.resent) * WIRE_TOLERANCE + acknowledged + WIRE_ALLOWANCE).then(|| {
            Doubt::ForeignBytes {
                host: self.host.to_owned(),
                way: self.way.word(),
                seen,
                payload: self.payload,
                with_headers: whole,
                counter: self.seen.counter.clone(),
            }
        })
    }

    fn missing(&self) -> Option<Doubt> {
        let seen = self.seen.bytes as f64;
        (seen < self.payload * 0.999).then(|| Doubt::OtherWay {
            host: self.host.to_owned(),
            way: self.way.word(),
            seen,
            payload: self.payload,
            counter: self.seen.counter.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
