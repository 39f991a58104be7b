//! The checks, one file each.

mod clock;
mod device_count;
mod gid;
mod locked_memory;
mod mtu;
mod pcie;
mod port;
mod software;

use super::{Cluster, Finding};
use crate::plan::Plan;

/// A check: everything it finds about the hosts of a plan.
type Check = fn(&Plan, &Cluster) -> Vec<Finding>;

/// Every check there is.
pub(super) const ALL: &[Check] = &[
    clock::check,
    device_count::check,
    gid::check,
    locked_memory::check,
    mtu::check,
    pcie::check,
    port::check,
    software::check,
];

/// Whether any test of the plan needs RDMA.
fn needs_rdma(plan: &Plan) -> bool {
    plan.tests.iter().any(|test| test.fabric == railgauge_wire::terms::Fabric::Verbs)
}

/// The devices of a host the plan will use: those it names, else all.
fn used<'a>(
    plan: &Plan,
    host: &str,
    facts: &'a railgauge_wire::facts::HostFacts,
) -> impl Iterator<Item = (&'a railgauge_wire::facts::RdmaDevice, &'a railgauge_wire::facts::RdmaPort)> {
    let named: Vec<String> =
        plan.hosts.iter().find(|known| known.name == host).map(|known| known.devices.clone()).unwrap_or_default();
    let ports = facts.rdma.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    ports.filter(move |(device, port)| {
        let name = |text: &String| match text.rsplit_once(':') {
            Some((name, number)) => name == device.name && number == port.number.to_string(),
            None => *text == device.name && port.number == 1,
        };
        named.is_empty() || named.iter().any(name)
    })
}

/// The value most of the list has, if more than half agree.
fn majority<T: Clone + Ord>(values: &[T]) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort();
    let middle = sorted.get(sorted.len() / 2)?.clone();
    let holders = sorted.iter().filter(|value| **value == middle).count();
    (holders * 2 > sorted.len()).then_some(middle)
}
