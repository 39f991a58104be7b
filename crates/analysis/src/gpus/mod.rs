//! The state of GPUs in use by cases, and its faults.
//!
//! A GPU slowed down by itself (heat, the power supply, a narrow link) is reported with the value, which counts: it is the value of the GPU
//! as it is, and explains a slow part. A disturbance of a pass (errors, Xids) is an objection like a lost packet, and the sample is not
//! trusted. A power cap is normal under load and only part of the state. Rules: `docs/reading-the-report.md`.

mod of_test;

use std::{collections::BTreeMap, fmt};

use railgauge_model::journal::event::{GpuDuring, LinkRecord, Sample};
use railgauge_wire::{
    gpu_state::{GpuSeen, Hold, counter, is_of_program},
    remedy::{self, Entry},
    terms::{GpuPath, LinkLayer, TestMetric},
    unit::Bytes,
};
use serde::Serialize;

pub use of_test::{OfGpu, OfTest, of_test};

use super::{
    results::CaseResult,
    words::{self, number},
};

/// Packets repeated over a link of a GPU in a pass that are normal, as for NICs.
const REPLAY_ALLOWANCE: u64 = 3;
/// Message size from which a PCIe link is busy enough to run at its full generation.
pub(super) const BUSY: Bytes = Bytes::from_mib(1);

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
            Self::Xid { xid } => write!(f, "the driver told Xid {xid} of it"),
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

/// `GPU 3`, or its PCI address without an index.
pub fn name(seen: &GpuSeen) -> String {
    seen.index.map_or_else(|| format!("GPU at {}", seen.pci), |index| format!("GPU {index}"))
}

pub(super) fn disturbances(sample: &Sample) -> impl Iterator<Item = (&GpuDuring, Bad)> {
    sample.gpus.iter().flat_map(|gpu| disturbed(&gpu.seen).into_iter().map(move |bad| (gpu, bad)))
}

pub(super) fn disturbed(seen: &GpuSeen) -> Vec<Bad> {
    let xids = seen.xids.iter().flatten().filter(|xid| !is_of_program(**xid));
    let mut found: Vec<Bad> = xids.map(|xid| Bad::Xid { xid: *xid }).collect();
    found.sort();
    found.dedup();
    let allowed = |name: &str| match name {
        counter::PCIE_REPLAYS | counter::NVLINK_REPLAYS | counter::NVLINK_CRC => REPLAY_ALLOWANCE,
        counter::NVLINK_RECOVERIES | counter::ECC_UNCORRECTED | counter::ROWS_REMAPPED | counter::XGMI_ERRORS => 0,
        // Corrected errors cost nothing.
        _ => u64::MAX,
    };
    let rose = seen.counted.iter().filter(|(name, rise)| **rise > allowed(name));
    found.extend(rose.map(|(name, rise)| Bad::Errors { counter: name.clone(), rise: *rise }));
    found.extend(seen.lost.then_some(Bad::Lost));
    found
}

/// `loaded`: many bytes passed its PCIe link.
pub(super) fn slowed(seen: &GpuSeen, loaded: bool) -> Vec<Bad> {
    let mut found: Vec<Bad> =
        seen.others.filter(|programs| *programs > 0).map(|programs| Bad::Shared { programs }).into_iter().collect();
    let held = seen.held.iter().flatten().filter(|(hold, times)| hold.is_bad() && **times > 0);
    let held: BTreeMap<Hold, u64> = held.map(|(hold, times)| (*hold, *times)).collect();
    if let Some(times) = held.values().copied().max() {
        let mhz = seen.sm_mhz.zip(seen.best_mhz).map(|(clock, best)| (clock.min as u64, u64::from(best.0)));
        found.push(Bad::Held { holds: held.into_keys().collect(), times, readings: seen.readings, mhz });
    }
    if let Some((link, best)) = seen.pcie.and_then(|link| Some((link, link.best?))) {
        if link.width.0 < best.1 {
            found.push(Bad::Narrow { width: link.width.0, best: best.1 });
        }
        if loaded && link.generation.1 < best.0 {
            found.push(Bad::Slow { generation: link.generation.1, best: best.0 });
        }
    }
    found
}

/// Gravest first.
pub fn bad(result: &CaseResult<'_>, seen: &GpuSeen) -> Vec<Bad> {
    let cell = &result.case.cell;
    let large = cell.metric == TestMetric::Bandwidth && cell.size >= BUSY;
    let loaded = large && result.link.is_some_and(loads_pcie);
    disturbed(seen).into_iter().chain(slowed(seen, loaded)).collect()
}

fn loads_pcie(link: &LinkRecord) -> bool {
    link.link_layer == LinkLayer::Pcie || link.gpu_path != GpuPath::None
}

/// Most other programs on a GPU during a pass of a case, without the agent; `None` without data.
pub(super) fn others(result: &CaseResult<'_>) -> Option<u32> {
    let seen = result.samples.iter().flat_map(|(_, sample)| &sample.gpus);
    seen.filter_map(|gpu| gpu.seen.others).max()
}

pub(super) fn remedy(result: &CaseResult<'_>) -> Option<Entry> {
    let seen = result.samples.iter().flat_map(|(_, sample)| &sample.gpus);
    seen.flat_map(|gpu| bad(result, &gpu.seen)).min().map(|bad| bad.remedy())
}

/// Faults of a host's GPUs while these cases ran, in words, and the remedy of the gravest; `None` without any.
pub(super) fn told<'r>(results: impl Iterator<Item = &'r CaseResult<'r>>, host: &str) -> Option<(String, Entry)> {
    let mut found: Vec<(String, Bad)> = Vec::new();
    for result in results {
        let gpus = result.samples.iter().flat_map(|(_, sample)| &sample.gpus).filter(|gpu| gpu.host == host);
        found.extend(gpus.flat_map(|gpu| bad(result, &gpu.seen).into_iter().map(|bad| (name(&gpu.seen), bad))));
    }
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0 && a.1.is_like(&b.1));
    let words: Vec<String> = found.iter().map(|(gpu, bad)| format!("{gpu}: {bad}")).collect();
    let gravest = found.iter().map(|(_, bad)| bad).min()?;
    Some((words.join("; "), gravest.remedy()))
}

/// `412 W`, or the range.
pub fn range(range: Option<railgauge_wire::gpu_state::Range>, unit: &str) -> String {
    let Some(range) = range else { return String::new() };
    match range.min == range.max {
        true => format!("{} {unit}", number(range.min)),
        false => format!("{}–{} {unit}", number(range.min), number(range.max)),
    }
}
