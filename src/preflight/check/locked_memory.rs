//! Limits on locked memory that are too small for the buffers.

use railgauge_wire::terms::Fabric;

use super::{Cluster, Finding, needs_rdma};
use crate::{plan::Plan, preflight::Severity};

/// Registered memory is locked memory: two buffers per link, and what queues need.
pub(super) fn check(plan: &Plan, cluster: &Cluster) -> Vec<Finding> {
    if !needs_rdma(plan) {
        return Vec::new();
    }
    let verbs = plan.tests.iter().filter(|test| test.fabric == Fabric::Verbs);
    let largest = |test: &crate::plan::model::Test| {
        let size = test.sizes.iter().max().copied().unwrap_or(0);
        size.saturating_mul(u64::from(test.qps.iter().max().copied().unwrap_or(1))).saturating_mul(2)
    };
    let needed = verbs.map(largest).max().unwrap_or(0).saturating_add(1 << 20);
    let mut found = Vec::new();
    for (host, facts) in &cluster.facts {
        let Some(limit) = facts.memlock_bytes.filter(|limit| *limit < needed) else { continue };
        found.push(Finding {
            check: "locked-memory".into(),
            severity: Severity::Failure,
            hosts: vec![host.clone()],
            what: format!("locked memory is limited to {} KiB, the plan needs about {} KiB", limit >> 10, needed >> 10),
            meaning: "registering buffers will fail with ENOMEM".into(),
            remedy: "`* - memlock unlimited` in /etc/security/limits.conf, or LimitMEMLOCK=infinity for sshd".into(),
            source: "rdma-core Documentation/libibverbs.md, locked memory".into(),
        });
    }
    found
}
