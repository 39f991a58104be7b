//! Ports without a GID that the others' GIDs fit.

use std::collections::BTreeSet;

use super::{Cluster, Finding, needs_rdma, used};
use crate::{plan::Plan, preflight::Severity};

/// RoCE needs a GID of the same version at both ends; one that is only link-local does not leave the segment.
pub(super) fn check(plan: &Plan, cluster: &Cluster) -> Vec<Finding> {
    if !needs_rdma(plan) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (host, facts) in &cluster.facts {
        for (device, port) in used(plan, host, facts).filter(|(_, p)| p.link_layer.as_deref() == Some("Ethernet")) {
            let at = format!("{} port {}", device.name, port.number);
            let kinds: BTreeSet<&str> = port.gids.iter().filter_map(|gid| gid.kind.as_deref()).collect();
            let routable = port.gids.iter().any(|gid| !gid.gid.starts_with("fe80"));
            let mut add = |severity, what: String, meaning: &str, remedy: &str| {
                found.push(Finding {
                    check: "gid".into(),
                    severity,
                    hosts: vec![host.clone()],
                    what,
                    meaning: meaning.into(),
                    remedy: remedy.into(),
                    source: "kernel Documentation/ABI/stable/sysfs-class-infiniband, gid_attrs/types".into(),
                });
            };
            if port.gids.is_empty() {
                let meaning = "no RoCE connection can be made";
                add(Severity::Failure, format!("{at} has no GID"), meaning, "give its interface an IP address");
            } else if !kinds.is_empty() && !kinds.contains("RoCE v2") {
                let list = kinds.into_iter().collect::<Vec<_>>().join(", ");
                let meaning = "RoCE v1 is not routed and does not meet hosts that use v2";
                add(Severity::Warning, format!("{at} has only {list}"), meaning, "enable RoCE v2 for the port");
            } else if !routable {
                let meaning = "peers in other segments cannot be reached, and NCCL skips such GIDs";
                let remedy = "give its interface an IPv4 address";
                add(Severity::Warning, format!("{at} has only link-local GIDs"), meaning, remedy);
            }
        }
    }
    found
}
