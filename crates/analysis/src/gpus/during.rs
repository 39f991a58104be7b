//! The GPUs of a test over all its passes.

use std::collections::BTreeMap;

use railgauge_model::journal::event::GpuDuring;
use railgauge_wire::{GpuSeen, Hold, Range, natural};

use super::{bad, name};
use crate::case::{Bad, CaseResult};

#[derive(Debug, Clone, PartialEq)]
pub struct OfGpu {
    pub host: String,
    pub name: String,
    pub pci: String,
    pub passes: usize,
    pub read: usize,
    pub readings: u64,
    /// Lowest, median of medians and highest, in MHz.
    pub sm_mhz: Option<Range>,
    pub watts: Option<Range>,
    pub limit_watts: Option<f64>,
    pub celsius: Option<Range>,
    pub held: BTreeMap<Hold, u64>,
    pub pcie: Option<((u32, u32), u32)>,
    pub counted: BTreeMap<String, u64>,
    /// Faults with the number of passes; of one kind the first.
    pub bad: Vec<(Bad, usize)>,
    pub without_xids: usize,
    pub failure: Option<String>,
}

#[derive(Debug, Clone)]
pub struct OfTest {
    /// Those with a fault first, then by host and name.
    pub gpus: Vec<OfGpu>,
    pub passes: usize,
}

/// `None` where no case used a GPU.
pub fn of_test(results: &[&CaseResult<'_>]) -> Option<OfTest> {
    let mut gpus: BTreeMap<(String, String), Vec<(&CaseResult<'_>, &GpuSeen)>> = BTreeMap::new();
    let mut passes = 0;
    for result in results {
        for (_, sample) in result.samples.iter().filter(|(_, sample)| !sample.gpus.is_empty()) {
            passes += 1;
            for GpuDuring { host, seen } in &sample.gpus {
                gpus.entry((host.clone(), seen.pci.clone())).or_default().push((result, seen));
            }
        }
    }
    let mut gpus: Vec<OfGpu> = gpus.into_iter().map(|((host, pci), seen)| one(host, pci, &seen)).collect();
    gpus.sort_by_cached_key(|gpu| {
        (gpu.bad.is_empty(), gpu.failure.is_none(), natural::key(&gpu.host), natural::key(&gpu.name))
    });
    (passes > 0).then_some(OfTest { gpus, passes })
}

fn one(host: String, pci: String, seen: &[(&CaseResult<'_>, &GpuSeen)]) -> OfGpu {
    let all = || seen.iter().map(|(_, seen)| *seen);
    let range = |of: fn(&GpuSeen) -> Option<Range>| {
        let medians = Range::of(all().filter_map(of).map(|range| range.median))?;
        let lowest = all().filter_map(of).map(|range| range.min).fold(medians.min, f64::min);
        let highest = all().filter_map(of).map(|range| range.max).fold(medians.max, f64::max);
        Some(Range { min: lowest, median: medians.median, max: highest })
    };
    let (mut held, mut counted) = (BTreeMap::<Hold, u64>::new(), BTreeMap::<String, u64>::new());
    for one in all() {
        for (hold, times) in one.held.iter().flatten() {
            *held.entry(*hold).or_default() += times;
        }
        for (name, rise) in one.counted.iter().filter(|(_, rise)| **rise > 0) {
            let sum = counted.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*rise);
        }
    }
    let links = || all().filter_map(|seen| seen.pcie);
    let pcie = links()
        .map(|link| (link.generation, link.width.0))
        .reduce(|(a, lanes), (b, others)| ((a.0.min(b.0), a.1.max(b.1)), lanes.min(others)));
    OfGpu {
        host,
        name: seen.first().map(|(_, seen)| name(seen)).unwrap_or_default(),
        pci,
        passes: seen.len(),
        read: all().filter(|seen| seen.readings > 0).count(),
        readings: all().fold(0, |sum, seen| sum.saturating_add(seen.readings)),
        sm_mhz: range(|seen| seen.sm_mhz),
        watts: range(|seen| seen.watts),
        limit_watts: all().filter_map(|seen| seen.limit_watts).reduce(f64::min),
        celsius: range(|seen| seen.celsius),
        held,
        pcie,
        counted,
        bad: super::counted(seen.iter().map(|(result, seen)| bad(result, seen))),
        without_xids: all().filter(|seen| seen.xids.is_none() && !seen.is_amd).count(),
        failure: all().filter_map(|seen| seen.failure.clone()).next_back(),
    }
}
