//! Packets that left one end of a case and did not arrive at the other.
//!
//! A lost acknowledgement needs no repair if a later one covers it, so that no counter of retransmissions moves (InfiniBand Architecture
//! Specification, volume 1, 9.7.5.1.2, coalesced acknowledgements). The two ends' own counts show it.

use std::collections::BTreeMap;

use railgauge_model::journal::event::{Case, Sample};
use railgauge_wire::drivers::of_member;

use super::thresholds::{LOSS_ALLOWANCE, WIRE_TOLERANCE};
use crate::case::{Doubt, LOSS_TOLERANCE};

/// Counter of departures, counter of arrivals, and the tolerated share.
///
/// Soft-RoCE counts the packets of its queue pairs (kernel `drivers/infiniband/sw/rxe/rxe_net.c`, `rxe_recv.c`), and
/// ignores packets with a wrong checksum. The port's counters (kernel Documentation/ABI/stable/sysfs-class-infiniband)
/// include other traffic on the port, up to what the check of bytes allows.
const COUNTS: [(&str, &str, f64); 2] = [
    ("hw_counters/sent_pkts", "hw_counters/rcvd_pkts", LOSS_TOLERANCE),
    ("counters/port_xmit_packets", "counters/port_rcv_packets", WIRE_TOLERANCE - 1.0),
];

pub(super) fn missing(case: &Case, sample: &Sample) -> Vec<Doubt> {
    if sample.together.is_some() {
        return Vec::new();
    }
    let from = (&*case.flow.from.host, &sample.from_counters);
    let to = (&*case.flow.to.host, &sample.to_counters);
    let mut found = Vec::new();
    for ((sender, at_sender), (receiver, at_receiver)) in [(from, to), (to, from)] {
        // A device's counter in a bond may be one port's.
        let bond = |counters: &BTreeMap<String, u64>| counters.keys().any(|name| of_member(name).is_some());
        if bond(at_sender) || bond(at_receiver) {
            continue;
        }
        let counted = COUNTS.iter().find_map(|&(left, came, tolerance)| {
            Some((*at_sender.get(left)?, *at_receiver.get(came)?, left, came, tolerance))
        });
        let Some((sent, received, left, came, tolerance)) = counted else { continue };
        let lost = sent.saturating_sub(received);
        if lost > LOSS_ALLOWANCE && lost as f64 > tolerance * sent as f64 {
            let (host, peer) = (sender.to_owned(), receiver.to_owned());
            found.push(Doubt::NotArrived { host, peer, sent, lost, counters: [left, came] });
        }
    }
    found
}
