//! The machine below the devices.

use serde::{Deserialize, Serialize};

use crate::unit::{BitsPerSecond, Bytes};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    pub model: Option<String>,
    pub threads: u32,
    pub numa_nodes: u32,
    /// Numbers of those that have processors, rising: others are memory alone, of a GPU for example. Empty where the kernel does not
    /// say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes_with_processors: Vec<u32>,
    /// Frequency governor; all of them where the processors' differ.
    pub governor: Option<String>,
    pub boost: Option<bool>,
    pub smt: Option<bool>,
    /// Size of the last-level cache.
    pub last_level_cache: Option<Bytes>,
}

pub const MOST_NODES: u32 = 1024;

impl Cpu {
    /// Numbers of the NUMA nodes that have processors, rising, each once. Where the kernel does not say which, all have; one without NUMA has one.
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

/// What the system runs inside of; nothing on bare metal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Surroundings {
    /// Kind of container, such as `docker`; `None` outside of any that can be recognised.
    pub container: Option<String>,
    /// Whether the processor says that a hypervisor is below.
    pub virtual_machine: Option<bool>,
    /// Maker and model of the machine, as its firmware says.
    pub product: Option<String>,
}

/// What the capability `CAP_IPC_LOCK` does for the agent: with it in effect the limit on locked memory does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpcLock {
    InEffect,
    /// The agent has it in a user namespace only, and there it does not count.
    InNamespace,
    /// The container may have it, but the agent's user is not root, and it is not in effect.
    NotInEffect,
    /// It is not there.
    Absent,
}

/// What the host was busy with while its facts were collected.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// Processes that ran or wanted to, averaged over the last minute.
    pub average: Option<f64>,
    /// Share of all processors' time that something else than the agent took, from 0 to 1, over the look at the host.
    pub busy: Option<f64>,
}

/// Traffic through a port or interface over the look at the host.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Traffic {
    pub received: BitsPerSecond,
    pub sent: BitsPerSecond,
}

/// A message of the NVIDIA driver in the kernel's log: an Xid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xid {
    /// PCI address of the GPU, such as `0000:1b:00`.
    pub pci: String,
    pub code: u32,
    /// Seconds after boot.
    pub at: u64,
    pub text: String,
}
