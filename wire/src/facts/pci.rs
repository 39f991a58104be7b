//! A device on the PCI Express tree.

use serde::{Deserialize, Serialize};

/// What a PCIe function is set to, and what lies above it. Settings stand in configuration space, of which the kernel
/// shows ordinary users the first 64 bytes only; they are then `None` and `unreadable` says so.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PciFunction {
    /// Largest read request it may send, in bytes (PCIe Base Specification, Device Control).
    pub max_read_request: Option<u32>,
    /// Largest payload it may send, in bytes.
    pub max_payload: Option<u32>,
    /// Whether it may mark writes as relaxed-ordered.
    pub relaxed_ordering: Option<bool>,
    /// Whether it asks the IOMMU for translations itself (ATS); `None` where it cannot.
    pub ats: Option<bool>,
    /// How the IOMMU treats it: `identity`, `DMA`, `DMA-FQ`, …; `None` where no IOMMU stands before it.
    pub iommu: Option<String>,
    /// What it is to SR-IOV; `None` for a device without.
    pub sriov: Option<Sriov>,
    /// Errors of its link since boot (Advanced Error Reporting).
    pub errors: Option<PciErrors>,
    /// Bridges above it, the root port first.
    pub bridges: Vec<Bridge>,
}

/// A PCIe bridge: a root port, or a port of a switch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Bridge {
    pub pci: String,
    pub link: Option<(f64, u32)>,
    pub link_max: Option<(f64, u32)>,
    /// Access Control Services in force; empty if all are off, `None` where the bridge has none or they cannot be read.
    pub acs: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sriov {
    Physical(u32),
    Virtual,
}

/// Errors of a PCIe link since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PciErrors {
    pub corrected: u64,
    /// Not corrected, the link went on.
    pub nonfatal: u64,
    /// Not corrected, the link had to be reset.
    pub fatal: u64,
}
