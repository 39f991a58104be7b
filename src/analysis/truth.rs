//! What the counters of both ends say about a sample: reasons not to trust it, and changes worth showing.
//!
//! Rules and thresholds are described in `docs/reading-the-report.md`. All of it is a pure function of the journal, so a
//! threshold that changes later changes old reports too.

use std::collections::BTreeMap;

use railgauge_model::journal::event::{Case, LinkRecord, Sample};
use railgauge_wire::{
    drivers::{LOSSES, MEMBERS, of_member},
    facts::HostFacts,
    terms::{Carrier, LinkLayer, TestMetric},
    unit::Bytes,
};

mod arrival;
mod counted;
mod doubt;
mod ends;

use super::{ceiling::wire_efficiency, gpus};

/// Bytes on the wire may exceed the payload and its headers by this factor.
const WIRE_TOLERANCE: f64 = 1.02;
/// Bytes that may be seen besides: address resolution, the controller's own connection, other housekeeping.
const WIRE_ALLOWANCE: f64 = 256.0 * 1024.0;
/// Bytes on the wire of one acknowledgement: RoCE v2 over IPv6 takes 14 + 40 + 8 + 12 + 4 + 4 and TCP over IPv6 with
/// timestamps 14 + 40 + 32; frames on Ethernet are padded to 64 and end with 4 of checksum.
const ACKNOWLEDGEMENT: f64 = 90.0;
/// Bytes on the wire for each payload byte of TCP beside a flow: 1,460 of 1,538 at the usual MTU, sent again now and then where it
/// competes for the link.
const BESIDE_HEADERS: f64 = 1.1;
/// Below this many payload bytes the wire check says nothing: the allowance would be a quarter of them.
const WIRE_MINIMUM: Bytes = Bytes::from_mib(1);
/// Share of packets that may be lost or sent again before a sample is doubted.
pub(super) const LOSS_TOLERANCE: f64 = 1e-3;
/// Share of packets that TCP may lose before that is noted. The value counts whatever it is: TCP sends them again.
pub(super) const NOTED: f64 = 1e-4;
/// Losses that may always happen, whatever their share.
const LOSS_ALLOWANCE: u64 = 3;

/// What one event is enough of, and the counters of it: they count the same events, and the first that moved is told.
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

/// The facts of both ends, where they are known.
pub(super) type Ends<'a> = (Option<&'a HostFacts>, Option<&'a HostFacts>);

pub use counted::Uncounted;
use counted::{Counted, End, Way};
pub(super) use doubt::Doubt;
pub(super) use ends::known_before;

/// What passed one NIC between two readings of its counters, by the accounts of all flows that share it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    pub sent: Bytes,
    pub received: Bytes,
    /// Payload of other traffic that the test itself ran, and that left. Counters of RDMA may not see it.
    pub beside_sent: Bytes,
    pub beside_received: Bytes,
    pub packets: f64,
}

/// The loads of both NICs where the flow of a sample is the only one on them.
pub(super) fn alone(case: &Case, link: &LinkRecord, sample: &Sample) -> (Load, Load) {
    let (moved, packets) = (moved(sample), packets(link, sample));
    let (source, sink) =
        (Load { sent: moved, packets, ..Load::default() }, Load { received: moved, packets, ..Load::default() });
    if case.cell.op.pulls() { (sink, source) } else { (source, sink) }
}

/// Why a sample must not be trusted, each reason naming its host; empty if nothing speaks against it. `loads` are those
/// of the initiator's and the responder's NIC.
pub(super) fn doubts(
    case: &Case,
    bidirectional: bool,
    link: &LinkRecord,
    ends: Ends<'_>,
    sample: &Sample,
    loads: &(Load, Load),
) -> Vec<Doubt> {
    let mut found: Vec<Doubt> = noted(sample).collect();
    let tolerance = if link.transport == Carrier::Tcp { NOTED } else { LOSS_TOLERANCE };
    let sides = [
        (&case.flow.from.host, &sample.from_counters, loads.0.packets),
        (&case.flow.to.host, &sample.to_counters, loads.1.packets),
    ];
    for (host, counters, packets) in sides {
        for place in places(counters) {
            // Most have no members, and nothing that moved: no name is put together for them.
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
    found.extend(wire(case, bidirectional, link, ends, sample, loads).0);
    found
}

/// Ends of a sample whose bytes on the wire were not compared with the payload, and why.
pub(super) fn uncounted(
    case: &Case,
    bidirectional: bool,
    link: &LinkRecord,
    ends: Ends<'_>,
    sample: &Sample,
    loads: &(Load, Load),
) -> Vec<Uncounted> {
    wire(case, bidirectional, link, ends, sample, loads).1
}

/// What comes before the names of counters: nothing, and each member of a bond.
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

/// What the run noted while it measured a sample, and what its GPUs suffered meanwhile.
pub(super) fn noted(sample: &Sample) -> impl Iterator<Item = Doubt> {
    let gpus = gpus::disturbances(sample).map(|(gpu, bad)| Doubt::Gpu {
        host: gpu.host.clone(),
        gpu: gpus::name(&gpu.seen),
        bad,
    });
    sample.contaminated.iter().map(|cause| Doubt::Noted { cause: cause.clone() }).chain(gpus)
}

/// Payload bytes of everything the sample's flow moved, warm-up included.
pub(super) fn moved(sample: &Sample) -> Bytes {
    sample.initiator.moved.unwrap_or(sample.initiator.bytes)
}

/// Packets this sample took, at least one per operation.
pub(super) fn packets(link: &LinkRecord, sample: &Sample) -> f64 {
    let measured = &sample.initiator;
    let bytes = moved(sample).as_f64();
    (bytes / f64::from(link.mtu.max(1))).max(measured.operations as f64).max(1.0)
}

/// The bytes the sending NIC counted must be the payload with its headers: more is foreign traffic or packets sent
/// again, less means that something else carried the payload. What the receiving NIC counted must not be more either:
/// a stranger that sends to it takes its rate without the sender seeing it. Where nothing counted them that is known to, that is
/// said instead.
fn wire(
    case: &Case,
    bidirectional: bool,
    link: &LinkRecord,
    (from, to): Ends<'_>,
    sample: &Sample,
    loads: &(Load, Load),
) -> (Vec<Doubt>, Vec<Uncounted>) {
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
        // How often its headers are there follows from the MTU of the interfaces of iWARP alone, and of both of them.
        let measured = moved(sample) >= WIRE_MINIMUM && link.link_layer == LinkLayer::Iwarp;
        let [(from, _), (to, _)] = &ends;
        let unknown = [from.without_mtu(to), to.without_mtu(from)].into_iter().filter(|_| measured);
        return (Vec::new(), unknown.flatten().collect());
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
            Ok(seen) => {
                let passed = Passed { host: end.host, way, seen, payload: payload.as_f64(), resent, other_way, beside };
                found.extend(passed.foreign(efficiency, link.mtu));
                missing = missing.or_else(|| passed.missing().filter(|_| way == Way::Sent));
            }
            Err(why) => unchecked.push(why),
        }
    }
    found.extend(missing);
    (found, unchecked)
}

/// What one NIC counted in one direction, and what it should have.
struct Passed<'a> {
    host: &'a str,
    way: Way,
    seen: Counted,
    /// Payload bytes of all flows in this direction, and in the other.
    payload: f64,
    /// Bytes of the segments that TCP sent again.
    resent: f64,
    other_way: Bytes,
    /// What the test itself sent beside, this way and the other. It may be in the counters, or not.
    beside: (Bytes, Bytes),
}

impl Passed<'_> {
    fn foreign(&self, efficiency: f64, mtu: u32) -> Option<Doubt> {
        let seen = self.seen.bytes as f64;
        let whole = self.payload / efficiency;
        // What goes the other way on the same NIC is acknowledged, at most packet by packet.
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
