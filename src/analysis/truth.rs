//! What the counters of both ends say about a sample: reasons not to trust it, and changes worth showing.
//!
//! Rules and thresholds are described in `docs/truth-checks.md`. All of it is a pure function of the journal, so a
//! threshold that changes later changes old reports too.

use std::collections::BTreeMap;

use railgauge_model::journal::event::{Case, LinkRecord, Sample};
use railgauge_wire::{facts::HostFacts, terms::TestMetric, unit::Bytes};

mod arrival;
mod doubt;
mod ends;

use super::ceiling::wire_efficiency;

/// Bytes on the wire may exceed the payload and its headers by this factor.
const WIRE_TOLERANCE: f64 = 1.02;
/// Bytes that may be seen besides: address resolution, the controller's own connection, other housekeeping.
const WIRE_ALLOWANCE: f64 = 256.0 * 1024.0;
/// Bytes on the wire of one acknowledgement: RoCE v2 over IPv6 takes 14 + 40 + 8 + 12 + 4 + 4 and TCP over IPv6 with
/// timestamps 14 + 40 + 32; frames on Ethernet are padded to 64 and end with 4 of checksum.
const ACKNOWLEDGEMENT: f64 = 90.0;
/// Below this many payload bytes the wire check says nothing: the allowance would be a quarter of them.
const WIRE_MINIMUM: Bytes = Bytes::from_mib(1);
/// Share of packets that may be lost or sent again before a sample is doubted.
const LOSS_TOLERANCE: f64 = 1e-3;
/// Losses that may always happen, whatever their share.
const LOSS_ALLOWANCE: u64 = 3;

/// Counters that grow when a packet was lost or came again, by the end of their names.
///
/// Names: kernel `drivers/infiniband/hw/mlx5/counters.c`, `drivers/infiniband/sw/rxe/rxe_hw_counters.c`, and
/// `Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst`. `out_of_sequence` is not among them:
/// with adaptive routing it grows on a healthy fabric.
const LOSSES: &[(&str, &str)] = &[
    ("hw_counters/packet_seq_err", "packets arrived out of order and were asked for again"),
    ("hw_counters/implied_nak_seq_err", "answers were lost"),
    ("hw_counters/local_ack_timeout_err", "acknowledgements did not come in time"),
    ("hw_counters/roce_adp_retrans", "packets were sent again"),
    ("hw_counters/completer_retry_err", "packets were sent again"),
    ("hw_counters/rcvd_seq_err", "the peer reported a gap in the packets"),
    ("hw_counters/out_of_seq_request", "requests arrived out of order"),
    ("hw_counters/duplicate_request", "requests arrived twice"),
    ("hw_counters/rnr_nak_retry_err", "the receiver was not ready"),
    ("hw_counters/rcvd_rnr_err", "the receiver was not ready"),
    ("hw_counters/send_rnr_err", "the receiver was not ready"),
    ("counters/port_xmit_discards", "the port dropped packets"),
    ("ethtool/rx_discards_phy", "the port dropped arriving packets"),
    ("ethtool/tx_discards_phy", "the port dropped leaving packets"),
    ("ethtool/rx_crc_errors_phy", "packets arrived damaged"),
    ("ethtool/rx_symbol_err_phy", "packets arrived damaged"),
    ("netdev/rx_crc_errors", "packets arrived damaged"),
    ("tcp/RetransSegs", "segments were sent again"),
];

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
        &["hw_counters/retry_exceeded_err", "hw_counters/req_transport_retries_exceeded"],
    ),
    ("a pause storm was cut off", &["ethtool/tx_pause_storm_error_events"]),
];

/// The facts of both ends, where they are known.
pub(super) type Ends<'a> = (Option<&'a HostFacts>, Option<&'a HostFacts>);

pub(super) use doubt::Doubt;
pub(super) use ends::known_before;

/// What passed one NIC between two readings of its counters, by the accounts of all flows that share it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Payload that left.
    pub sent: Bytes,
    /// Payload that arrived.
    pub received: Bytes,
    /// Packets of either kind.
    pub packets: f64,
}

/// The loads of both NICs where the flow of a sample is the only one on them.
pub(super) fn alone(case: &Case, link: &LinkRecord, sample: &Sample) -> (Load, Load) {
    let (moved, packets) = (moved(sample), packets(link, sample));
    let (source, sink) =
        (Load { sent: moved, packets, received: Bytes::ZERO }, Load { received: moved, packets, sent: Bytes::ZERO });
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
    let sides = [
        (&case.flow.from.host, &sample.from_counters, loads.0.packets),
        (&case.flow.to.host, &sample.to_counters, loads.1.packets),
    ];
    for (host, counters, packets) in sides {
        for (meaning, names) in BREAKS {
            if let Some((name, times)) = names.iter().find_map(|name| Some((name, counters.get(*name)?))) {
                let (host, counter, times) = (host.to_string(), *name, *times);
                found.push(Doubt::Event { host, counter, times, meaning });
            }
        }
        for (name, meaning) in LOSSES {
            let times = counters.get(*name).copied().unwrap_or(0);
            if times > LOSS_ALLOWANCE && times as f64 > LOSS_TOLERANCE * packets {
                found.push(Doubt::Loss { host: host.to_string(), counter: name, times, packets, meaning });
            }
        }
    }
    found.extend(arrival::missing(case, sample));
    found.extend(foreign_bytes(case, bidirectional, link, ends, sample, loads));
    found
}

/// What the run noted while it measured a sample.
pub(super) fn noted(sample: &Sample) -> impl Iterator<Item = Doubt> {
    sample.contaminated.iter().map(|cause| Doubt::Noted { cause: cause.clone() })
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
/// a stranger that sends to it takes its rate without the sender seeing it.
fn foreign_bytes(
    case: &Case,
    bidirectional: bool,
    link: &LinkRecord,
    (from, to): Ends<'_>,
    sample: &Sample,
    loads: &(Load, Load),
) -> Vec<Doubt> {
    if sample.initiator.moved.is_none()
        || case.cell.metric != TestMetric::Bandwidth
        || bidirectional
        || case.cell.op.is_atomic()
    {
        return Vec::new();
    }
    let Some(efficiency) = wire_efficiency(link, from, to, &case.cell, bidirectional) else { return Vec::new() };
    let mut ends =
        [(&case.flow.from.host, &sample.from_counters, loads.0), (&case.flow.to.host, &sample.to_counters, loads.1)];
    if case.cell.op.pulls() {
        ends.reverse();
    }
    let [(source, at_source, out), (sink, at_sink, inward)] = ends;
    let sent = Passed {
        host: source,
        way: "sent",
        seen: bytes_of(at_source, "counters/port_xmit_data", "netdev/tx_bytes"),
        payload: out.sent,
        other_way: out.received,
    };
    let received = Passed {
        host: sink,
        way: "received",
        seen: bytes_of(at_sink, "counters/port_rcv_data", "netdev/rx_bytes"),
        payload: inward.received,
        other_way: inward.sent,
    };
    let missing = sent.missing();
    let foreign = [sent, received].into_iter().filter_map(|passed| passed.foreign(efficiency, link.mtu));
    foreign.chain(missing).collect()
}

/// What one NIC counted in one direction, and what it should have.
struct Passed<'a> {
    host: &'a str,
    way: &'static str,
    /// Name of the counter, and bytes.
    seen: Option<(&'static str, u64)>,
    /// Payload bytes of all flows in this direction, and in the other.
    payload: Bytes,
    other_way: Bytes,
}

impl Passed<'_> {
    fn seen(&self) -> Option<(&'static str, f64)> {
        self.seen.filter(|_| self.payload >= WIRE_MINIMUM).map(|(name, bytes)| (name, bytes as f64))
    }

    /// More than the payload with its headers.
    fn foreign(&self, efficiency: f64, mtu: u32) -> Option<Doubt> {
        let (counter, seen) = self.seen()?;
        let whole = self.payload.as_f64() / efficiency;
        // What goes the other way on the same NIC is acknowledged, at most packet by packet.
        let acknowledged = self.other_way.as_f64() / f64::from(mtu.max(1)) * ACKNOWLEDGEMENT;
        (seen > whole * WIRE_TOLERANCE + acknowledged + WIRE_ALLOWANCE).then(|| Doubt::ForeignBytes {
            host: self.host.to_owned(),
            way: self.way,
            seen,
            payload: self.payload.as_f64(),
            with_headers: whole,
            counter,
        })
    }

    /// Less than the payload.
    fn missing(&self) -> Option<Doubt> {
        let (counter, seen) = self.seen()?;
        let payload = self.payload.as_f64();
        (seen < payload * 0.999).then(|| Doubt::OtherWay {
            host: self.host.to_owned(),
            way: self.way,
            seen,
            payload,
            counter,
        })
    }
}

/// Bytes that passed a NIC in one direction, from the counter that is closest to the wire: `words` counts words of four
/// bytes (kernel Documentation/ABI/stable/sysfs-class-infiniband).
fn bytes_of(counters: &BTreeMap<String, u64>, words: &'static str, bytes: &'static str) -> Option<(&'static str, u64)> {
    let of_words = counters.get(words).map(|count| (words, count.saturating_mul(4)));
    of_words.or_else(|| counters.get(bytes).map(|count| (bytes, *count)))
}

#[cfg(test)]
mod tests;
