//! What a sample says of the link that carried it, and what any link can carry.

use railgauge_model::journal::event::LinkRecord;
use railgauge_wire::terms::{Carrier, Transport};

use super::{Contradiction, outside};
use crate::analysis::results::CaseResult;

/// More than any pair of hosts carries in one direction, in Gb/s, whatever is known of its ports: a bond of eight ports of
/// 1.6 Tb/s, the fastest that are defined (IEEE P802.3dj; InfiniBand GDR). Two ends on one host do not come to it either: their
/// bytes are written and read again, and two sockets with 24 channels of DDR5-8800 move 13.5 Tb/s in all.
pub(super) const ANY_PORT: f64 = 8.0 * 1600.0;
/// More than any rank of a collective moves, in Gb/s: every byte is written to its memory once, and the fastest there is moves
/// 22 TB/s (HBM4 of eight stacks).
pub(super) const ANY_MEMORY: f64 = 22_000.0 * 8.0;
/// More than any GPU multiplies, in TFLOP/s: NVIDIA's announcement of Rubin has 50 PFLOP/s, with elements of 4 bits, which are half as long as
/// the shortest that are measured here.
pub(super) const ANY_GPU: f64 = 50_000.0;
/// Less than any read takes that waits for the one before it, in nanoseconds: the first caches of processors need 3 cycles or more, and none has
/// reached 10 GHz.
pub(super) const ANY_CACHE: f64 = 0.3;
/// Largest path MTU of verbs (`enum ibv_mtu`).
const MOST_VERBS: u32 = 4096;
/// Larger than the MTU of any interface: IP packets end at 64 KiB, and what Linux lets one set on loopback is seldom more.
const MOST_TCP: u32 = 1 << 24;

pub(super) fn contradictions(result: &CaseResult<'_>, link: &LinkRecord) -> Vec<Contradiction> {
    let of_rate = |rate: railgauge_wire::unit::GigabitsPerSecond| {
        outside("rate of the link", (rate.0, "Gb/s"), "links have", (f64::MIN_POSITIVE, ANY_PORT))
    };
    let mut found = Vec::from_iter(link.rate_gbps.and_then(of_rate));
    let verbs = result.case.cell.transport == Transport::Verbs && link.transport != Carrier::Tcp;
    // Of an interface the MTU may not be known, and is told as 0; of queue pairs it is.
    let (least, most) = if verbs { (256, MOST_VERBS) } else { (0, MOST_TCP) };
    if result.case.flow.members.is_empty() {
        let range = (f64::from(least), f64::from(most));
        found.extend(outside("MTU", (f64::from(link.mtu), "B"), "links like this have", range));
    }
    found
}
