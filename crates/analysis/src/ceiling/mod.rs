//! The most that a link can carry, computed from its properties: the 100 % of "percent of the ceiling".
//!
//! A ceiling is an upper bound: what is not counted (acknowledgements, flow control, congestion notifications, memory) only lowers the real
//! limit. A link of unknown rate has none. Formulas, sources and worked numbers are in `docs/methods.md`.

mod case;
#[cfg(test)]
mod corrected_test;
mod group;
mod nccl;
mod pcie;
#[cfg(test)]
mod tests;
mod wire;

pub(super) use case::{LinkEnd, of_case, of_group, of_nic, wire_efficiency, wire_rate};
pub(super) use group::{Group, busbw};
pub(super) use nccl::{RankHost, of_nccl};
pub(super) use pcie::Pcie;
pub(super) use wire::{Link, Traffic};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ceiling {
    /// 1e9 bits per second.
    pub gbps: f64,
    pub limit: Limit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Wire,
    Pcie,
}

/// Multiple of the ceiling that disproves the ceiling: 1.5 % above can be true (docs/methods.md), and clocks
/// and windows add little.
pub(super) const DISPROVED: f64 = 1.05;

/// `None` for an unknown rate, without a wire (loopback, NVLink), or for a collective.
pub(super) fn bandwidth(link: &Link, traffic: &Traffic) -> Option<Ceiling> {
    let rate = wire::data_rate(link.layer, link.rate_gbps?)?;
    let one_way = rate * wire::efficiency(link, traffic)?;
    let (sender, receiver) =
        if traffic.op.pulls() { (link.to_pcie, link.from_pcie) } else { (link.from_pcie, link.to_pcie) };
    // With both directions at once both ends send and receive, and receiving is the narrower limit.
    let slots = match traffic.bidirectional {
        true => [sender.and_then(Pcie::receiving), receiver.and_then(Pcie::receiving)],
        false => [sender.and_then(Pcie::sending), receiver.and_then(Pcie::receiving)],
    };
    let slot = slots.into_iter().flatten().fold(f64::INFINITY, f64::min);
    let (one_way, limit) = if slot < one_way { (slot, Limit::Pcie) } else { (one_way, Limit::Wire) };
    let directions = if traffic.bidirectional { 2.0 } else { 1.0 };
    Some(Ceiling { gbps: one_way * directions, limit })
}
