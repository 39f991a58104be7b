//! Ports that are not active.

use super::{Cluster, Finding, needs_rdma, used};
use crate::{plan::Plan, preflight::Severity};

/// A port that is not `ACTIVE` carries nothing: every case on its rail will fail.
pub(super) fn check(plan: &Plan, cluster: &Cluster) -> Vec<Finding> {
    if !needs_rdma(plan) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (host, facts) in &cluster.facts {
        for (device, port) in used(plan, host, facts) {
            let Some(state) = port.state.as_deref().filter(|state| !state.contains("ACTIVE")) else { continue };
            let physical = port.physical.as_deref().map(|p| format!(", physically {p}")).unwrap_or_default();
            let interface = port.netdev.as_deref().unwrap_or("its interface");
            found.push(Finding {
                check: "port-state".into(),
                severity: Severity::Failure,
                hosts: vec![host.clone()],
                what: format!("{} port {} is {state}{physical}", device.name, port.number),
                meaning: "nothing can be measured on this rail".into(),
                remedy: format!("look at cable and switch port; `ip link set {interface} up` if it was taken down"),
                source: "kernel Documentation/ABI/stable/sysfs-class-infiniband, ports/<n>/state".into(),
            });
        }
    }
    found
}
