//! Wall clocks that are off.

use super::{Cluster, Finding};
use crate::{plan::Plan, preflight::Severity};

/// Off by more than this many nanoseconds: logs of hosts cannot be put side by side. A hardware clock is set to whole
/// seconds, so hosts that were never synchronised differ by one or two without anything being broken.
const LIMIT: i64 = 2_000_000_000;

/// Measurements use monotonic clocks and do not suffer; everything that is looked up in logs afterwards does.
pub(super) fn check(_: &Plan, cluster: &Cluster) -> Vec<Finding> {
    let off = cluster.clocks.iter().filter(|(_, offset)| offset.abs() > LIMIT);
    let finding = |(host, offset): (&String, &i64)| Finding {
        check: "clock".into(),
        severity: Severity::Warning,
        hosts: vec![host.clone()],
        what: format!("its clock is {:+.1} s off the controller's", *offset as f64 / 1e9),
        meaning: "times in its logs do not fit those of the others; the measurements themselves are not touched".into(),
        remedy: "`timedatectl set-ntp true`, and `chronyc tracking` or `timedatectl timesync-status` to see why".into(),
        source: "clock reading of the agent at greeting".into(),
    };
    off.map(finding).collect()
}
