//! Faults of a GPU in use by a case.

use std::fmt;

use railgauge_wire::{
    Hold,
    gpu_state::counter,
    remedy::{self, Entry},
};
use serde::Serialize;

use crate::words;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Bad {
    Lost,
    Xid {
        xid: u32,
    },
    Errors {
        counter: String,
        rise: u64,
    },
    Shared {
        programs: u32,
    },
    Held {
        holds: Vec<Hold>,
        times: u64,
        readings: u64,
        /// Lowest clock of the multiprocessors and their highest in MHz.
        mhz: Option<(u64, u64)>,
    },
    Narrow {
        width: u32,
        best: u32,
    },
    Slow {
        generation: u32,
        best: u32,
    },
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

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("NVML lost it"),
            Self::Xid { xid } => write!(f, "the driver reported Xid {xid} of it"),
            Self::Errors { counter, rise } => write!(f, "{} ({counter} +{rise})", meaning(counter)),
            Self::Shared { programs } => write!(f, "{} ran on it", words::count(*programs as usize, "other program")),
            Self::Held { holds, times, readings, mhz } => {
                let words: Vec<&str> = holds.iter().map(|hold| hold.words()).collect();
                write!(f, "its clocks were held down in {times} of {readings} readings: {}", words.join(", "))?;
                match mhz {
                    Some((lowest, best)) => write!(f, ", {lowest} of {best} MHz at the lowest"),
                    None => Ok(()),
                }
            }
            Self::Narrow { width, best } => write!(f, "its PCIe link had x{width}, and can have x{best}"),
            Self::Slow { generation, best } => {
                write!(f, "its PCIe link stayed at generation {generation} under load, and can have {best}")
            }
        }
    }
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
