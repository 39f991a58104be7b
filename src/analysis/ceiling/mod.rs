//! What a link can carry at best, computed from what it is: the 100 % of "percent of the ceiling".
//!
//! | file | holds |
//! | --- | --- |
//! | `wire` | header bytes per packet, by link layer |
//! | `pcie` | what a PCIe slot lets through |
//! | `case` | the ceiling of a recorded case, from its link and its hosts' facts |
//! | `group` | the bus bandwidth of a collective |
//! | `nccl` | the same of NCCL: NVLinks, slots, and the NICs its log names |
//! | `whole` | hosts as if every member of their bonds carried traffic |
//!
//! A ceiling is an upper bound: what is not counted (acknowledgements, flow control, congestion notifications, memory)
//! only makes the real limit lower. Where the rate of the link is not known there is no ceiling: none is guessed.
//! Formulas, sources and worked numbers are in `docs/reading-the-report.md`.

mod case;
#[cfg(test)]
mod corrected;
mod group;
mod nccl;
mod pcie;
#[cfg(test)]
mod tests;
mod whole;
mod wire;

pub(super) use case::{LinkEnd, of_case, of_group, of_nic, wire_efficiency, wire_rate};
pub(super) use group::{Group, busbw};
pub(super) use nccl::{RankHost, nvlink, of_nccl};
pub(super) use pcie::Pcie;
pub(super) use whole::{lacks_members, whole};

use railgauge_wire::terms::{LinkLayer, Op, Service};

/// A link and what stands behind its two ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Link {
    /// The layer that carries the bytes.
    pub layer: LinkLayer,
    /// Rate of the slower end in Gb/s, as the port reports it. `None` gives no ceiling. For an emulated device this is
    /// the speed of the interface below it, never what the device itself claims.
    pub rate_gbps: Option<f64>,
    /// Payload bytes per packet for InfiniBand and RoCE (path MTU); bytes per IP packet for TCP and iWARP.
    pub mtu: u32,
    /// Whether IPv6 carries the packets (RoCE v2, iWARP, TCP).
    pub ipv6: bool,
    pub vlan: bool,
    /// Slot of the initiator's NIC, if known.
    pub from_pcie: Option<Pcie>,
    /// Slot of the responder's NIC, if known.
    pub to_pcie: Option<Pcie>,
}

/// What is sent over a link. The number of queue pairs or streams moves the rate of a bond and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Traffic {
    /// The operation. A collective has no ceiling here, see [`busbw`].
    pub op: Op,
    pub service: Service,
    /// Message size in bytes; atomics move 8 whatever it says.
    pub size: u64,
    /// Whether both directions run at once; the ceiling is then that of their sum.
    pub bidirectional: bool,
}

/// An upper bound of the payload rate and what sets it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ceiling {
    /// Payload in Gb/s (1e9 bits per second).
    pub gbps: f64,
    pub limit: Limit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Wire,
    Pcie,
}

/// From which multiple of its ceiling on a value shows that the ceiling is wrong: 1.5 % above can be true (docs/reading-the-report.md), and
/// clocks and windows add little.
pub(super) const DISPROVED: f64 = 1.05;

/// The ceiling of `traffic` over `link`. `None` if the rate is unknown, if no wire is involved (loopback, NVLink), or
/// for a collective.
pub(super) fn bandwidth(link: &Link, traffic: &Traffic) -> Option<Ceiling> {
    let rate = wire::data_rate(link.layer, link.rate_gbps?)?;
    let one_way = rate * wire::efficiency(link, traffic)?;
    let (sender, receiver) =
        if traffic.op.pulls() { (link.to_pcie, link.from_pcie) } else { (link.from_pcie, link.to_pcie) };
    // With both directions at once both ends send and receive, and receiving is the narrower of the two.
    let slots = match traffic.bidirectional {
        true => [sender.and_then(Pcie::receiving), receiver.and_then(Pcie::receiving)],
        false => [sender.and_then(Pcie::sending), receiver.and_then(Pcie::receiving)],
    };
    let slot = slots.into_iter().flatten().fold(f64::INFINITY, f64::min);
    let (one_way, limit) = if slot < one_way { (slot, Limit::Pcie) } else { (one_way, Limit::Wire) };
    let directions = if traffic.bidirectional { 2.0 } else { 1.0 };
    Some(Ceiling { gbps: one_way * directions, limit })
}
