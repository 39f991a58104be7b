use serde::{Deserialize, Serialize};

use super::PciFunction;
use crate::unit::{Bytes, MegabytesPerSecond};

/// Word of [`Gpu::throttled`] for a clock that is held down to keep the GPU within its power limit.
pub const POWER_CAP: &str = "power cap";
/// Prefix of cuBLASLt's names in [`HostFacts::libraries`](super::HostFacts::libraries); a version follows.
pub const CUBLASLT: &str = "libcublasLt.so.";
/// Part of HIP's names there.
pub const HIP: &str = "libamdhip64.so";
pub const HIPBLASLT: &str = "libhipblaslt.so";
/// Part of AMD SMI's names there.
pub const AMD_SMI: &str = "libamd_smi.so";
pub const RCCL: &str = "librccl.so.1";

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Index as NVML counts: in the order of PCI addresses. AMD's GPUs are counted likewise.
    pub index: u32,
    /// Number of CUDA or HIP in the agent's environment, and in plans; `None` where that does not see it (`CUDA_VISIBLE_DEVICES`,
    /// `ROCR_VISIBLE_DEVICES`) or could not be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda_device: Option<u32>,
    /// Unique id, `GPU-…` of NVIDIA's.
    pub uuid: Option<String>,
    /// Serial number of its board, shared by its GPUs. `None` where the driver has none, as for most workstation models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_number: Option<String>,
    pub name: Option<String>,
    pub driver: Option<String>,
    /// Highest CUDA version of the driver, such as `13.0`.
    pub cuda: Option<String>,
    /// PCI address in sysfs' spelling, such as `0000:1b:00.0`.
    pub pci: Option<String>,
    /// PCIe generation and width, as running. An idle GPU lowers the generation.
    pub pcie: Option<(u32, u32)>,
    pub pcie_max: Option<(u32, u32)>,
    /// Settings of its PCIe function, and the bridges above it.
    pub function: PciFunction,
    pub memory_bytes: Option<Bytes>,
    pub ecc: Option<bool>,
    pub numa: Option<u32>,
    pub nvlinks: Option<u32>,
    pub nvlinks_total: Option<u32>,
    /// Line rate of each NVLink in one direction, coding included.
    pub nvlink_mbps: Option<MegabytesPerSecond>,
    /// `None` without an NVLink fabric, or where the driver does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<GpuFabric>,
    /// Whether the driver stays loaded while the GPU is unused.
    pub persistence: Option<bool>,
    pub mig: Option<bool>,
    /// Clock of the multiprocessors and its maximum, in MHz.
    pub clock_mhz: Option<(u32, u32)>,
    /// Clock of the memory and its maximum, in MHz.
    pub memory_clock_mhz: Option<(u32, u32)>,
    /// Why clocks are lower than they could be, [`POWER_CAP`] among others; empty if they are not, `None` where it cannot be read.
    pub throttled: Option<Vec<String>>,
    pub memory_faults: MemoryFaults,
    pub temperature: Option<u32>,
    pub power_watts: Option<(f64, f64)>,
    pub processes: Option<u32>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuFabric {
    /// Until it is completed, CUDA does not start on boards with NVSwitch.
    pub state: Registration,
    pub error: Option<u32>,
    /// UUID of the cluster of hosts that its NVLinks reach (`clusterUuid`); `None` where they end at the host.
    pub cluster: Option<String>,
    /// Its part of that cluster (`cliqueId`): GPUs of different parts do not reach each other by NVLink.
    pub clique: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
}

impl GpuFabric {
    /// Name of its NVLink domain, `UUID.CLIQUE`, as the Kubernetes label `nvidia.com/gpu.clique`; `None` where its NVLinks end at the
    /// host.
    pub fn domain(&self) -> Option<String> {
        self.cluster.as_ref().map(|cluster| format!("{cluster}.{}", self.clique))
    }
}

/// `nvmlGpuFabricState_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Registration {
    #[default]
    NotStarted,
    InProgress,
    Completed,
}

impl Registration {
    pub fn words(self) -> &'static str {
        match self {
            Self::NotStarted => "not started",
            Self::InProgress => "under way",
            Self::Completed => "completed",
        }
    }
}

/// `None` for what the GPU does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryFaults {
    /// Errors since the driver was loaded that could not be corrected.
    pub uncorrected: Option<u64>,
    /// Pages taken out of use (before Ampere, and of AMD's GPUs).
    pub retired_pages: Option<u32>,
    /// Rows replaced by spare ones (Ampere and later), after correctable and after uncorrectable errors.
    pub remapped_rows: Option<(u32, u32)>,
    /// Whether a page or row waits for the next reset to be taken out of use.
    pub pending: Option<bool>,
    /// Whether a row could not be replaced.
    pub remapping_failed: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuDistance {
    pub gpu: u32,
    pub device: String,
    pub distance: crate::terms::Distance,
}
