//! RDMA devices that are programs.

use super::{Cluster, Finding, needs_rdma, used};
use crate::{plan::Plan, preflight::Severity};

/// Soft-RoCE and siw run the protocol on the CPU: their speeds say nothing about a NIC.
pub(super) fn check(plan: &Plan, cluster: &Cluster) -> Vec<Finding> {
    if !needs_rdma(plan) {
        return Vec::new();
    }
    let emulated = |host: &String, facts| {
        used(plan, host, facts).filter(|(device, _)| device.software).map(|(d, _)| d.name.clone()).collect::<Vec<_>>()
    };
    let hosts: Vec<(&String, Vec<String>)> = cluster
        .facts
        .iter()
        .map(|(host, facts)| (host, emulated(host, facts)))
        .filter(|(_, devices)| !devices.is_empty())
        .collect();
    if hosts.is_empty() {
        return Vec::new();
    }
    let mut devices: Vec<String> = hosts.iter().flat_map(|(_, devices)| devices.clone()).collect();
    devices.sort();
    devices.dedup();
    vec![Finding {
        check: "software-device".into(),
        severity: Severity::Notice,
        hosts: hosts.into_iter().map(|(host, _)| host.clone()).collect(),
        what: format!("{} emulated in software", devices.join(", ")),
        meaning: "the protocol is real, the speeds are those of the CPU".into(),
        remedy: "none, if this is meant".into(),
        source: "the device's driver".into(),
    }]
}
