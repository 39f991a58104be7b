//! Hosts that a scheduler or an orchestrator gave to this process, for plans that name none.

use std::collections::BTreeMap;

use crate::topology::Told;

/// Prefix of placeholder names for a plan read outside its allocation: `slurm-node-1`, `slurm-node-2`, …
pub const PLACEHOLDER: &str = "slurm-node-";

/// Prefix of placeholder names for pods that were not asked for: `pod-1`, `pod-2`, …
pub const POD_PLACEHOLDER: &str = "pod-";

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Allocation {
    pub job: String,
    pub nodes: Vec<String>,
    /// Switches of the network's topology by name, each with the nodes below it, also those of other jobs.
    pub switches: BTreeMap<String, Vec<String>>,
    pub topology: Option<Told>,
    pub unread: Option<String>,
    pub pods: Option<PodList>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodList {
    pub list: Vec<Pod>,
    /// Descriptions of the others: `gpu-x7k2p is Pending`.
    pub others: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    pub node: String,
}
