//! Hosts with fewer usable NICs than the others.

use super::{Cluster, Finding, majority, needs_rdma, used};
use crate::{plan::Plan, preflight::Severity};

/// A host without the NIC of a rail fails every case of that rail.
pub(super) fn check(plan: &Plan, cluster: &Cluster) -> Vec<Finding> {
    if !needs_rdma(plan) {
        return Vec::new();
    }
    let counts: Vec<(&String, usize)> =
        cluster.facts.iter().map(|(host, facts)| (host, used(plan, host, facts).count())).collect();
    let usual = majority(&counts.iter().map(|(_, count)| *count).collect::<Vec<_>>());
    let mut found = Vec::new();
    for (host, count) in counts {
        let (severity, what) = match usual {
            _ if count == 0 => (Severity::Failure, "no RDMA device to use".to_owned()),
            Some(usual) if count < usual => (Severity::Failure, format!("{count} RDMA ports, others have {usual}")),
            Some(usual) if count > usual => (Severity::Notice, format!("{count} RDMA ports, others have {usual}")),
            _ => continue,
        };
        found.push(Finding {
            check: "device-count".into(),
            severity,
            hosts: vec![host.clone()],
            what,
            meaning: "cases on rails that a host does not have fail".into(),
            remedy: "`lspci | grep -iE 'infiniband|ethernet'` and `dmesg | grep -i mlx5` on it; or name its devices in the plan"
                .into(),
            source: "/sys/class/infiniband".into(),
        });
    }
    found
}
