//! What a scheduler or an orchestrator has for this process: plans that name no hosts take them from it.

use std::collections::BTreeMap;

use crate::topology::told::Told;

/// What nodes are called in a plan that is read outside the allocation it will run in: `slurm-node-1`, `slurm-node-2`, …
pub const PLACEHOLDER: &str = "slurm-node-";

/// What pods are called in a plan that is read where nobody asks for them: `pod-1`, `pod-2`, …
pub const POD_PLACEHOLDER: &str = "pod-";

/// An allocation of a scheduler, and pods that were asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Allocation {
    pub job: String,
    /// Names of its nodes, in the scheduler's order.
    pub nodes: Vec<String>,
    /// Switches of the network's topology by name, each with the nodes below it. They may be others' nodes too.
    pub switches: BTreeMap<String, Vec<String>>,
    /// The same as a topology, with the links between the switches; `None` where the scheduler knows none.
    pub topology: Option<Told>,
    /// Why the scheduler's topology is not known, where it could not be asked or what it said could not be read.
    pub unread: Option<String>,
    /// The pods that the plan's selector finds; `None` where nobody asked.
    pub pods: Option<PodList>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodList {
    /// Those that run, in the order of their names.
    pub list: Vec<Pod>,
    /// What is to be said of each of the others: `gpu-x7k2p is Pending`.
    pub others: Vec<String>,
}

/// A pod that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    /// The node it runs on.
    pub node: String,
}
