//! The state of GPUs in use by cases, and its faults.
//!
//! A GPU slowed down by itself (heat, the power supply, a narrow link) is reported with the value, which counts: it is the value of the GPU
//! as it is, and explains a slow part. A disturbance of a pass (errors, Xids) is an objection like a lost packet, and the sample is not
//! trusted. A power cap is normal under load and only part of the state. Rules: `docs/reading-the-report.md`.

mod during;

use std::collections::BTreeMap;

use railgauge_model::journal::event::{GpuDuring, LinkRecord, Sample};
use railgauge_wire::{
    Bytes, GpuPath, GpuSeen, Hold, LinkLayer, TestMetric,
    gpu_state::{counter, is_of_program},
    remedy::Entry,
};

pub use during::{OfGpu, OfTest, of_test};

use super::{
    case::{Bad, CaseResult},
    words::number,
};

/// Packets repeated over a link of a GPU in a pass that are normal, as for NICs.
const REPLAY_ALLOWANCE: u64 = 3;
/// Message size from which a PCIe link is busy enough to run at its full generation.
pub(super) const BUSY: Bytes = Bytes::from_mib(1);

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

/// Each fault once, gravest first, with the number of passes or parts that have it; of one kind the first.
pub(super) fn counted(found: impl IntoIterator<Item = Vec<Bad>>) -> Vec<(Bad, usize)> {
    let mut all: Vec<(Bad, usize)> = Vec::new();
    for bad in found.into_iter().flatten() {
        match all.iter_mut().find(|(known, _)| known.is_like(&bad)) {
            Some((_, times)) => *times += 1,
            None => all.push((bad, 1)),
        }
    }
    all.sort();
    all
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
