//! Faults of a GPU in use by a case.

use railgauge_wire::{
    Hold,
    gpu_state::counter,
    remedy::{self, Entry},
};
use serde::Serialize;

use crate::words::count;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, thiserror::Error)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Bad {
    #[error("NVML lost it")]
    Lost,
    #[error("the driver reported Xid {xid} of it")]
    Xid { xid: u32 },
    #[error("{} ({counter} +{rise})", meaning(.counter))]
    Errors { counter: String, rise: u64 },
    #[error("{} ran on it", count(*.programs as usize, "other program"))]
    Shared { programs: u32 },
    /// With the lowest clock of the multiprocessors and their highest in MHz.
    #[error("its clocks were held down in {times} of {readings} readings: {}{}", words(.holds), clocks(*.mhz))]
    Held { holds: Vec<Hold>, times: u64, readings: u64, mhz: Option<(u64, u64)> },
    #[error("its PCIe link had x{width}, and can have x{best}")]
    Narrow { width: u32, best: u32 },
    #[error("its PCIe link stayed at generation {generation} under load, and can have {best}")]
    Slow { generation: u32, best: u32 },
}

impl Bad {
    /// Whether it disturbs a pass, so that the value represents neither a healthy GPU nor a slow one.
    pub const fn disturbs(&self) -> bool {
        matches!(self, Self::Lost | Self::Xid { .. } | Self::Errors { .. })
    }

    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Errors { counter, .. }, Self::Errors { counter: other, .. }) => counter == other,
            (Self::Xid { xid }, Self::Xid { xid: other }) => xid == other,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }

    pub fn remedy(&self) -> Entry {
        match self {
            Self::Lost => remedy::LOOK_AT_GPU,
            Self::Xid { .. } => remedy::XID,
            Self::Shared { .. } => remedy::WAIT_FOR_GPU,
            Self::Held { .. } => remedy::GPU_CLOCKS,
            Self::Narrow { .. } | Self::Slow { .. } => remedy::RESEAT_GPU,
            Self::Errors { counter, .. } => match counter.as_str() {
                counter::PCIE_REPLAYS => remedy::RESEAT_GPU,
                counter::NVLINK_REPLAYS | counter::NVLINK_RECOVERIES | counter::NVLINK_CRC => remedy::NVLINK_ERRORS,
                counter::XGMI_ERRORS => remedy::XGMI_ERRORS,
                _ => remedy::GPU_MEMORY_ERRORS,
            },
        }
    }
}

fn words(holds: &[Hold]) -> String {
    holds.iter().map(|hold| hold.words()).collect::<Vec<_>>().join(", ")
}

fn clocks(mhz: Option<(u64, u64)>) -> String {
    mhz.map_or_else(String::new, |(lowest, best)| format!(", {lowest} of {best} MHz at the lowest"))
}

fn meaning(name: &str) -> &'static str {
    match name {
        counter::PCIE_REPLAYS => "packets were sent again over its PCIe link",
        counter::NVLINK_REPLAYS => "packets were sent again over its NVLinks",
        counter::NVLINK_RECOVERIES => "an NVLink of it went down and came back",
        counter::NVLINK_CRC => "damaged flits arrived over its NVLinks",
        counter::ECC_UNCORRECTED => "its memory had errors that could not be corrected",
        counter::ROWS_REMAPPED => "rows of its memory were replaced",
        counter::XGMI_ERRORS => "its xGMI links had errors",
        _ => "errors of its memory were corrected",
    }
}
