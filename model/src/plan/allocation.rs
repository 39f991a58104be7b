//! What a scheduler has given to this process: plans that name no hosts take them from it.

use std::collections::BTreeMap;

/// What nodes are called in a plan that is read outside the allocation it will run in: `slurm-node-1`, `slurm-node-2`, …
pub const PLACEHOLDER: &str = "slurm-node-";

/// An allocation of a scheduler.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocation {
    /// The job's number, in the scheduler's words.
    pub job: String,
    /// Names of its nodes, in the scheduler's order.
    pub nodes: Vec<String>,
    /// Switches of the network's topology by name, each with the nodes below it. They may be others' nodes too.
    pub switches: BTreeMap<String, Vec<String>>,
}
