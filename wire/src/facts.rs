//! What a host is: one document per host, collected by the agent itself.
//!
//! A fact that cannot be read is `None`, and `unreadable` says why; nothing is guessed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Everything known of one host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// The host's own name (`uname -n`).
    pub hostname: String,
    /// Operating system, as `PRETTY_NAME` of os-release.
    pub os: Option<String>,
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Kernel command line.
    pub command_line: Option<String>,
    /// Machine architecture (`uname -m`).
    pub architecture: String,
    /// Processor.
    pub cpu: Cpu,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Locked-memory limit in bytes; `None` if unlimited.
    pub memlock_bytes: Option<u64>,
    /// RDMA devices, in the order of their names.
    pub rdma: Vec<RdmaDevice>,
    /// GPUs, in CUDA's order (PCI address).
    pub gpus: Vec<Gpu>,
    /// How far each GPU is from each RDMA device on the PCIe tree.
    pub gpu_distances: Vec<GpuDistance>,
    /// Network interfaces, in the order of their names.
    pub interfaces: Vec<Interface>,
    /// Libraries found at run time and their versions or the loader's words: `libibverbs.so.1` → path.
    pub libraries: BTreeMap<String, String>,
    /// What could not be read, and why.
    pub unreadable: BTreeMap<String, String>,
}

/// The processor.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// Model name.
    pub model: Option<String>,
    /// Logical processors online.
    pub threads: u32,
    /// NUMA nodes.
    pub numa_nodes: u32,
    /// Frequency governor of the first processor.
    pub governor: Option<String>,
    /// Size of the last-level cache in bytes.
    pub last_level_cache: Option<u64>,
}

/// An RDMA device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RdmaDevice {
    /// Name, such as `mlx5_0`.
    pub name: String,
    /// Kernel driver, such as `mlx5_core` or `rdma_rxe`.
    pub driver: Option<String>,
    /// Whether the device is an emulation in software.
    pub software: bool,
    /// Firmware version.
    pub firmware: Option<String>,
    /// Board id.
    pub board: Option<String>,
    /// Node GUID.
    pub guid: Option<String>,
    /// PCI address.
    pub pci: Option<String>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// PCIe link speed in GT/s and width, as running.
    pub pcie: Option<(f64, u32)>,
    /// PCIe link speed in GT/s and width, at best.
    pub pcie_max: Option<(f64, u32)>,
    /// Ports.
    pub ports: Vec<RdmaPort>,
}

/// A port of an RDMA device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RdmaPort {
    /// Number, counted from 1.
    pub number: u8,
    /// Logical state, such as `ACTIVE`.
    pub state: Option<String>,
    /// Physical state, such as `LinkUp`.
    pub physical: Option<String>,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: Option<String>,
    /// Rate in Gb/s; `None` where the device does not know it.
    pub rate_gbps: Option<f64>,
    /// Active RDMA MTU in bytes.
    pub mtu: Option<u32>,
    /// Network interface behind the port.
    pub netdev: Option<String>,
    /// GID table, set entries only.
    pub gids: Vec<Gid>,
}

/// An entry of a GID table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gid {
    /// Index.
    pub index: u32,
    /// Eight groups of four hexadecimal digits.
    pub gid: String,
    /// `IB/RoCE v1`, `RoCE v2`, …
    pub kind: Option<String>,
    /// Network interface.
    pub netdev: Option<String>,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Index as NVML counts: in the order of PCI addresses.
    pub index: u32,
    /// Unique id, `GPU-…`.
    pub uuid: Option<String>,
    /// Name of the product.
    pub name: Option<String>,
    /// Driver version.
    pub driver: Option<String>,
    /// Highest CUDA version of the driver, such as `13.0`.
    pub cuda: Option<String>,
    /// PCI address in sysfs' spelling, such as `0000:1b:00.0`.
    pub pci: Option<String>,
    /// PCIe generation and width, as running.
    pub pcie: Option<(u32, u32)>,
    /// PCIe generation and width, at best in this slot.
    pub pcie_max: Option<(u32, u32)>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Whether memory errors are corrected.
    pub ecc: Option<bool>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// Active NVLink connections; `None` where the driver does not say.
    pub nvlinks: Option<u32>,
}

/// How far a GPU is from an RDMA device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuDistance {
    /// Index of the GPU.
    pub gpu: u32,
    /// Name of the RDMA device.
    pub device: String,
    /// The distance.
    pub distance: crate::terms::Distance,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Operational state (`up`, `down`, …).
    pub state: Option<String>,
    /// Speed in Mb/s; `None` where unknown, and for virtual interfaces (veth, bridges, …): their number limits nothing.
    pub speed_mbps: Option<u64>,
    /// Addresses, without prefix lengths.
    pub addresses: Vec<String>,
}
