//! GPUs.

use serde::{Deserialize, Serialize};

use super::PciFunction;
use crate::unit::{Bytes, MegabytesPerSecond};

/// Word of [`Gpu::throttled`] for a clock that is held down to keep the GPU within its power limit.
pub const POWER_CAP: &str = "power cap";

/// A GPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Index as NVML counts: in the order of PCI addresses.
    pub index: u32,
    /// Number by which CUDA knows it in the agent's environment, as plans name it; `None` where CUDA does not see it
    /// (`CUDA_VISIBLE_DEVICES`) or could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda_device: Option<u32>,
    /// Unique id, `GPU-…`.
    pub uuid: Option<String>,
    /// Serial number of its board; several GPUs of one board have the same. `None` where the driver does not say, as for most
    /// that are sold for workstations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Part number of its board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_number: Option<String>,
    /// Name of the product.
    pub name: Option<String>,
    /// Driver version.
    pub driver: Option<String>,
    /// Highest CUDA version of the driver, such as `13.0`.
    pub cuda: Option<String>,
    /// PCI address in sysfs' spelling, such as `0000:1b:00.0`.
    pub pci: Option<String>,
    /// PCIe generation and width, as running. An idle GPU lowers the generation.
    pub pcie: Option<(u32, u32)>,
    /// PCIe generation and width, at best in this slot.
    pub pcie_max: Option<(u32, u32)>,
    /// Settings of its PCIe function, and the bridges above it.
    pub function: PciFunction,
    /// Memory.
    pub memory_bytes: Option<Bytes>,
    /// Whether memory errors are corrected.
    pub ecc: Option<bool>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// Active NVLink connections; `None` where the driver does not say.
    pub nvlinks: Option<u32>,
    /// NVLink connections the GPU has, active or not.
    pub nvlinks_total: Option<u32>,
    /// Line rate of each NVLink in one direction, coding included.
    pub nvlink_mbps: Option<MegabytesPerSecond>,
    /// Whether the driver stays loaded while nobody uses the GPU.
    pub persistence: Option<bool>,
    /// Whether it is split into instances (MIG).
    pub mig: Option<bool>,
    /// Clock of the multiprocessors and its maximum, in MHz.
    pub clock_mhz: Option<(u32, u32)>,
    /// Clock of the memory and its maximum, in MHz.
    pub memory_clock_mhz: Option<(u32, u32)>,
    /// Why clocks are lower than they could be, [`POWER_CAP`] among others; empty if they are not, `None` where it cannot be read.
    pub throttled: Option<Vec<String>>,
    /// What is wrong with its memory.
    pub memory_faults: MemoryFaults,
    /// Temperature in °C.
    pub temperature: Option<u32>,
    /// Power in W, drawn and allowed.
    pub power_watts: Option<(f64, f64)>,
    /// Processes that have a context on it.
    pub processes: Option<u32>,
}

/// What is wrong with a GPU's memory; `None` where the GPU does not count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryFaults {
    /// Errors since the driver was loaded that could not be corrected.
    pub uncorrected: Option<u64>,
    /// Pages taken out of use (before Ampere).
    pub retired_pages: Option<u32>,
    /// Rows replaced by spare ones (Ampere and later), after correctable and after uncorrectable errors.
    pub remapped_rows: Option<(u32, u32)>,
    /// Whether a page or row waits for the next reset to be taken out of use.
    pub pending: Option<bool>,
    /// Whether a row could not be replaced.
    pub remapping_failed: Option<bool>,
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
