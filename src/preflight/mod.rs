//! Why the numbers will be bad, said before they are measured: facts of all hosts in, findings out. Pure.
//!
//! | file | holds |
//! | --- | --- |
//! | [`finding`] | what a check found, and how serious it is |
//! | [`drift`] | the cluster judging itself: for every fact the majority's value and who differs; what changed between two runs |
//! | `comparable` | the facts of a host that can be compared, in words |
//! | `check/` | one file per check: what it reads, what it means for the numbers, the remedy, the source |
//!
//! A new check is one file in `check/` and one line in its table.

mod check;
mod comparable;
pub mod drift;
pub mod finding;

use std::collections::BTreeMap;

use railgauge_wire::facts::HostFacts;

pub use drift::{Change, Drift, between, drift};
pub use finding::{Finding, Severity};

use crate::plan::Plan;

/// What is known of the hosts that answered.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// Facts by the host's name in the plan.
    pub facts: BTreeMap<String, HostFacts>,
    /// Wall clock of a host minus the controller's, in nanoseconds, where it was read.
    pub clocks: BTreeMap<String, i64>,
}

/// Every finding about a plan's hosts, the most serious first, then by check and host.
pub fn judge(plan: &Plan, cluster: &Cluster) -> Vec<Finding> {
    let mut found: Vec<Finding> = check::ALL.iter().flat_map(|check| check(plan, cluster)).collect();
    found.sort_by(|a, b| (b.severity, &a.check, &a.hosts).cmp(&(a.severity, &b.check, &b.hosts)));
    found
}

#[cfg(test)]
mod tests;
