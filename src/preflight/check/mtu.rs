//! Interfaces whose MTU differs from the others'.

use super::{Cluster, Finding, majority, needs_rdma, used};
use crate::{plan::Plan, preflight::Severity};

/// RoCE takes the largest path MTU that fits the interface: 1500 gives 1024, 9000 gives 4096, and a pair uses the
/// smaller of both ends.
pub(super) fn check(plan: &Plan, cluster: &Cluster) -> Vec<Finding> {
    if !needs_rdma(plan) {
        return Vec::new();
    }
    let mut ports = Vec::new();
    for (host, facts) in &cluster.facts {
        for (device, port) in used(plan, host, facts) {
            let interface = facts.interfaces.iter().find(|i| Some(&i.name) == port.netdev.as_ref());
            if let Some((interface, mtu)) = interface.and_then(|i| Some((&i.name, i.mtu?))) {
                ports.push((host, &device.name, interface, mtu, port.mtu));
            }
        }
    }
    let values: Vec<u32> = ports.iter().map(|port| port.3).collect();
    let Some(usual) = majority(&values) else { return Vec::new() };
    let odd = ports.into_iter().filter(|port| port.3 != usual);
    let finding = |(host, device, interface, mtu, active): (&String, &String, &String, u32, Option<u32>)| {
        let active = active.map(|mtu| format!(" (RDMA MTU {mtu})")).unwrap_or_default();
        Finding {
            check: "mtu".into(),
            severity: Severity::Warning,
            hosts: vec![host.clone()],
            what: format!("{device}: MTU of {interface} is {mtu}{active}, others {usual}"),
            meaning:
                "every pair with this host uses the smaller packets; bandwidth drops by the larger share of headers"
                    .into(),
            remedy: format!("`ip link set {interface} mtu {usual}`, and in the network configuration"),
            source: "docs/ceilings.md: payload per packet".into(),
        }
    };
    odd.map(finding).collect()
}
