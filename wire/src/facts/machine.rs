use serde::{Deserialize, Serialize};

use crate::unit::{BitsPerSecond, Bytes};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    pub model: Option<String>,
    pub threads: u32,
    pub numa_nodes: u32,
    /// Nodes with processors, rising: others are memory alone, of a GPU for example. Empty where the kernel does not report it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes_with_processors: Vec<u32>,
    /// All of them where the processors' differ.
    pub governor: Option<String>,
    pub boost: Option<bool>,
    pub smt: Option<bool>,
    pub last_level_cache: Option<Bytes>,
}

pub const MOST_NODES: u32 = 1024;

impl Cpu {
    /// NUMA nodes with processors, rising, without duplicates. All nodes where the kernel does not report which; one without NUMA.
    pub fn nodes(&self) -> Vec<u32> {
        match self.nodes_with_processors.is_empty() {
            true => (0..self.numa_nodes.clamp(1, MOST_NODES)).collect(),
            false => {
                let mut nodes = self.nodes_with_processors.clone();
                nodes.sort_unstable();
                nodes.dedup();
                nodes
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePages {
    pub bytes: Bytes,
    pub total: u64,
    pub free: u64,
}

/// Container or hypervisor; empty on bare metal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Surroundings {
    /// Such as `docker`; `None` without a recognised one.
    pub container: Option<String>,
    /// Whether the processor reports a hypervisor.
    pub virtual_machine: Option<bool>,
    pub product: Option<String>,
}

/// Whether `CAP_IPC_LOCK` lifts the agent's limit on locked memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpcLock {
    InEffect,
    /// In a user namespace only, where it does not count.
    InNamespace,
    /// The container may have it, but the agent's user is not root.
    NotInEffect,
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// Processes that ran or wanted to, averaged over the last minute.
    pub average: Option<f64>,
    /// Share of all processors' time used by others than the agent, from 0 to 1.
    pub busy: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Traffic {
    pub received: BitsPerSecond,
    pub sent: BitsPerSecond,
}

/// An Xid of the NVIDIA driver in the kernel's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xid {
    /// PCI address of the GPU, such as `0000:1b:00`.
    pub pci: String,
    pub code: u32,
    /// Seconds after boot.
    pub at: u64,
    pub text: String,
}
