//! What a sample implies about its link, and limits of any link.

use railgauge_model::journal::event::LinkRecord;
use railgauge_wire::{Carrier, Transport};

use super::outside::outside;
use crate::case::{CaseResult, Contradiction};

/// Upper bound for any pair of hosts in one direction, in Gb/s: a bond of eight ports of 1.6 Tb/s, the fastest that are
/// defined (IEEE P802.3dj; InfiniBand GDR). Two ends on one host stay below it, too: their bytes are written and read
/// again, and two sockets with 24 channels of DDR5-8800 move 13.5 Tb/s in all.
pub(super) const ANY_PORT: f64 = 8.0 * 1600.0;
/// Upper bound for any rank of a collective, in Gb/s: every byte is written to its memory once, and the fastest memory
/// moves 22 TB/s (HBM4 of eight stacks).
pub(super) const ANY_MEMORY: f64 = 22_000.0 * 8.0;
/// Upper bound for any GPU, in TFLOP/s: NVIDIA's announcement of Rubin has 50 PFLOP/s, with elements of 4 bits, half as
/// long as the shortest measured here.
pub(super) const ANY_GPU: f64 = 50_000.0;
/// Lower bound for a read that waits for the one before it, in nanoseconds: the first caches of processors need at
/// least 3 cycles, and none has reached 10 GHz.
pub(super) const ANY_CACHE: f64 = 0.3;
/// Largest path MTU of verbs (`enum ibv_mtu`).
const MOST_VERBS: u32 = 4096;
/// Above the MTU of any interface: IP packets end at 64 KiB, and loopback on Linux is seldom larger.
const MOST_TCP: u32 = 1 << 24;

pub(super) fn contradictions(result: &CaseResult<'_>, link: &LinkRecord) -> Vec<Contradiction> {
    let of_rate = |rate: railgauge_wire::unit::GigabitsPerSecond| {
        outside("rate of the link", (rate.0, "Gb/s"), "links have", (f64::MIN_POSITIVE, ANY_PORT))
    };
    let mut found = Vec::from_iter(link.rate_gbps.and_then(of_rate));
    let verbs = result.case.cell.transport == Transport::Verbs && link.transport != Carrier::Tcp;
    // An interface's MTU may be unknown, reported as 0; that of queue pairs is known.
    let (least, most) = if verbs { (256, MOST_VERBS) } else { (0, MOST_TCP) };
    if result.case.flow.members.is_empty() {
        let range = (f64::from(least), f64::from(most));
        found.extend(outside("MTU", (f64::from(link.mtu), "B"), "links like this have", range));
    }
    found
}
