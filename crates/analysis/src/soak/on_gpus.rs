//! State of the GPUs whose memory a soak's flows used, over all of its parts.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::journal::event::SoakedGpu;
use railgauge_wire::{Failure, GpuSeen, Range, natural};
use serde::Serialize;

use super::traffic::Traffic;
use crate::{case::Bad, gpus};

/// Share of its windows in which a GPU may be unread.
const UNREAD: f64 = 0.01;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuInSoak {
    pub host: String,
    pub gpu: String,
    pub pci: String,
    pub parts: usize,
    pub windows: u64,
    pub unread: u64,
    pub without_xids: u64,
    pub readings: u64,
    pub sm_mhz: Option<Range>,
    pub watts: Option<Range>,
    pub celsius: Option<Range>,
    /// Faults with the number of parts, gravest first; of one kind the first.
    pub bad: Vec<(Bad, usize)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Whether it reports neither counters nor Xids, so that an error would not show.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub blind: bool,
}

impl GpuInSoak {
    pub fn name(&self) -> String {
        format!("{} {}", self.host, self.gpu)
    }

    pub fn error(&self) -> Option<(&Bad, usize)> {
        self.bad.iter().find(|(bad, _)| bad.disturbs()).map(|(bad, parts)| (bad, *parts))
    }

    pub fn is_unread(&self) -> bool {
        self.readings == 0 || self.unread as f64 > UNREAD * self.windows as f64
    }
}

/// Those with errors first, then those with other faults, then by name. `loaded`: messages keep PCIe links busy.
pub(super) fn gpus(traffic: &Traffic<'_>, loaded: bool) -> Vec<GpuInSoak> {
    let mut seen: BTreeMap<(&str, &str), Vec<&SoakedGpu>> = BTreeMap::new();
    for gpu in traffic.parts.iter().flat_map(|part| &part.gpus) {
        seen.entry((&gpu.host, &gpu.seen.pci)).or_default().push(gpu);
    }
    let mut all: Vec<GpuInSoak> = seen.into_iter().map(|((host, pci), parts)| one(host, pci, &parts, loaded)).collect();
    all.sort_by_cached_key(|gpu| {
        (gpu.error().is_none(), gpu.bad.is_empty(), natural::key(&gpu.host), natural::key(&gpu.gpu))
    });
    all
}

/// Hosts with measured windows in GPU memory and no GPU state; empty if no host has any, as in older journals.
pub(super) fn untold(traffic: &Traffic<'_>, on_gpus: bool) -> Vec<String> {
    let gpus = || traffic.parts.iter().flat_map(|part| &part.gpus);
    if !on_gpus || gpus().next().is_none() {
        return Vec::new();
    }
    let told: BTreeSet<&str> = gpus().map(|gpu| &*gpu.host).collect();
    let measured = traffic.parts.iter().flat_map(|part| &part.flows).filter(|flow| flow.windows > 0);
    let hosts: BTreeSet<&str> = measured.flat_map(|flow| traffic.hosts(flow.case)).collect();
    hosts.difference(&told).map(|host| (*host).to_owned()).collect()
}

/// A flow whose window failed because of a bad GPU: such a window has no sample with the state of the GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuFailure {
    pub flow: String,
    pub failure: Failure,
}

/// The first of each flow.
pub(super) fn failures(traffic: &Traffic<'_>) -> Vec<GpuFailure> {
    let mut found: BTreeMap<u64, &Failure> = BTreeMap::new();
    for flow in traffic.parts.iter().flat_map(|part| &part.flows) {
        if let Some(failure) = flow.failure.as_ref().filter(|failure| failure.is_of_gpu()) {
            found.entry(flow.case).or_insert(failure);
        }
    }
    let told = |(case, failure): (u64, &Failure)| GpuFailure { flow: traffic.name(case), failure: failure.clone() };
    found.into_iter().map(told).collect()
}

fn one(host: &str, pci: &str, parts: &[&SoakedGpu], loaded: bool) -> GpuInSoak {
    let of_part = |part: &&SoakedGpu| {
        let mut bad: Vec<Bad> =
            gpus::disturbed(&part.seen).into_iter().chain(gpus::slowed(&part.seen, loaded)).collect();
        bad.sort();
        bad.dedup_by(|a, b| a.is_like(b));
        bad
    };
    let sum = |of: fn(&SoakedGpu) -> u64| parts.iter().fold(0_u64, |sum, part| sum.saturating_add(of(part)));
    let whole = parts.iter().fold(GpuSeen::default(), |whole, part| whole.joined(part.seen.clone()));
    GpuInSoak {
        host: host.to_owned(),
        gpu: gpus::name(&whole),
        pci: pci.to_owned(),
        parts: parts.len(),
        windows: sum(|part| part.windows),
        unread: sum(|part| part.unread),
        without_xids: sum(|part| part.without_xids),
        readings: whole.readings,
        sm_mhz: whole.sm_mhz,
        watts: whole.watts,
        celsius: whole.celsius,
        bad: gpus::counted(parts.iter().map(of_part)),
        failure: whole.failure,
        blind: whole.counted.is_empty() && whole.xids.is_none(),
    }
}
