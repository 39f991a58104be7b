use serde::{Deserialize, Serialize};

/// Settings of a PCIe function, and what is above it. The kernel shows ordinary users only the first 64 bytes of configuration space;
/// otherwise settings are `None` and `unreadable` says so.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PciFunction {
    /// In bytes (PCIe Base Specification, Device Control).
    pub max_read_request: Option<u32>,
    pub max_payload: Option<u32>,
    /// Whether it may mark writes as relaxed-ordered.
    pub relaxed_ordering: Option<bool>,
    /// Whether it asks the IOMMU for translations itself (ATS); `None` where it cannot.
    pub ats: Option<bool>,
    /// `identity`, `DMA`, `DMA-FQ`, …; `None` without an IOMMU.
    pub iommu: Option<String>,
    /// `None` without SR-IOV.
    pub sriov: Option<Sriov>,
    pub errors: Option<PciErrors>,
    /// The root port first.
    pub bridges: Vec<Bridge>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Bridge {
    pub pci: String,
    pub link: Option<(f64, u32)>,
    pub link_max: Option<(f64, u32)>,
    /// Active Access Control Services; empty if all are off, `None` where missing or unreadable.
    pub acs: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sriov {
    Physical(u32),
    Virtual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PciErrors {
    pub corrected: u64,
    /// Uncorrected, the link continued.
    pub nonfatal: u64,
    /// Uncorrected, the link had to be reset.
    pub fatal: u64,
}
