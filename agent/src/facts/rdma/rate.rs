//! The rate of a port. Some drivers make theirs of the interface's speed, and lose it on the way.

use railgauge_wire::{
    drivers::{RateOrigin, known},
    facts::RateSource,
    unit::GigabitsPerSecond,
};

use super::super::interfaces;
use super::Below;
use crate::system::tree::Tree;

#[derive(Debug, Default)]
pub(super) struct Rate {
    pub(super) gbps: Option<GigabitsPerSecond>,
    /// Where it is from.
    pub(super) source: Option<RateSource>,
    pub(super) verbs_gbps: Option<GigabitsPerSecond>,
}

/// The rate of the port in a directory.
pub(super) fn of(tree: &Tree, port: &str, driver: Option<&str>, below: &Below) -> Rate {
    // "100 Gb/sec (4X EDR)".
    let verbs_gbps = tree
        .text(format!("{port}/rate"))
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .map(GigabitsPerSecond);
    let verbs_gbps = verbs_gbps.filter(|rate| rate.is_rate());
    let speed = |name: &str| interfaces::speed(tree, name).map(GigabitsPerSecond::from);
    let rate = |gbps: Option<GigabitsPerSecond>, source| Rate { gbps, source: gbps.map(|_| source), verbs_gbps };
    if let (Some(bond), true) = (&below.netdev, below.members.len() > 1) {
        let all = interfaces::bond_members(tree, bond);
        let carrying = all.iter().filter(|member| below.members.contains(&member.name) && member.carries());
        let speeds: Option<Vec<GigabitsPerSecond>> = carrying.map(|member| speed(&member.name)).collect();
        if let Some(speeds) = speeds.filter(|speeds| !speeds.is_empty()) {
            let sum = GigabitsPerSecond(speeds.iter().map(|speed| speed.0).sum());
            return rate(Some(sum), RateSource::Members);
        }
    }
    let origin = driver.and_then(known).map_or(RateOrigin::Device, |driver| driver.rate);
    let of_interface = || below.physical().and_then(speed);
    match (origin, of_interface()) {
        (RateOrigin::InterfaceInSteps | RateOrigin::Constant, Some(speed)) => rate(Some(speed), RateSource::Interface),
        // What the driver reports then is made of nothing, or cut off at a step.
        (RateOrigin::InterfaceInSteps | RateOrigin::Constant, None) => rate(None, RateSource::Driver),
        (RateOrigin::Device, _) => rate(verbs_gbps, RateSource::Driver),
    }
}
