//! GPUs whose memory the flows of a soak used: their state over all of its parts.

use std::collections::BTreeMap;

use railgauge_model::journal::event::{GpuDuring, Soaked};
use railgauge_wire::{
    failure::Failure,
    gpu_state::{GpuSeen, Range},
    natural,
};
use serde::Serialize;

use super::traffic::Traffic;
use crate::analysis::gpus::{self, Bad};

/// One GPU over the soak. Spans are lowest, middle and highest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SoakedGpu {
    /// Its host.
    pub host: String,
    /// `GPU 3`.
    pub gpu: String,
    /// Its PCI address.
    pub pci: String,
    /// Parts in which flows used it.
    pub parts: usize,
    /// Readings in measured windows.
    pub readings: u64,
    /// Clock of the multiprocessors in MHz.
    pub sm_mhz: Option<Range>,
    /// Power drawn, in W.
    pub watts: Option<Range>,
    /// Temperature in °C.
    pub celsius: Option<Range>,
    /// What was bad and in how many parts, the gravest first; of one kind the first.
    pub bad: Vec<(Bad, usize)>,
    /// Why it could not be read, the last time that it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl SoakedGpu {
    /// `gpu07 GPU 3`.
    pub fn name(&self) -> String {
        format!("{} {}", self.host, self.gpu)
    }

    /// The gravest error, and in how many parts it was seen; `None` where it had none.
    pub fn error(&self) -> Option<(&Bad, usize)> {
        self.bad.iter().find(|(bad, _)| bad.disturbs()).map(|(bad, parts)| (bad, *parts))
    }
}

/// All of them: those with errors first, then those with anything else that is bad, then by name. `loaded`: messages keep PCIe links busy.
pub(super) fn gpus(parts: &[&Soaked], loaded: bool) -> Vec<SoakedGpu> {
    let mut seen: BTreeMap<(&str, &str), Vec<&GpuSeen>> = BTreeMap::new();
    for GpuDuring { host, seen: one } in parts.iter().flat_map(|part| &part.gpus) {
        seen.entry((host, &one.pci)).or_default().push(one);
    }
    let mut all: Vec<SoakedGpu> = seen.into_iter().map(|((host, pci), parts)| one(host, pci, &parts, loaded)).collect();
    all.sort_by_cached_key(|gpu| {
        (gpu.error().is_none(), gpu.bad.is_empty(), natural::key(&gpu.host), natural::key(&gpu.gpu))
    });
    all
}

/// A flow whose window failed because a GPU of it is ill: such a window has no sample that tells of the GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuFailure {
    /// The flow.
    pub flow: String,
    /// Why, with the host.
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

fn one(host: &str, pci: &str, parts: &[&GpuSeen], loaded: bool) -> SoakedGpu {
    let mut found: Vec<(Bad, usize)> = Vec::new();
    // Each part by itself: what a healthy GPU does now and then must not add up over days.
    for bad in parts.iter().flat_map(|seen| gpus::disturbed(seen).into_iter().chain(gpus::slowed(seen, loaded))) {
        match found.iter_mut().find(|(known, _)| known.is_like(&bad)) {
            Some((_, parts)) => *parts += 1,
            None => found.push((bad, 1)),
        }
    }
    found.sort();
    let whole = parts.iter().fold(GpuSeen::default(), |whole, part| whole.joined((*part).clone()));
    SoakedGpu {
        host: host.to_owned(),
        gpu: gpus::name(&whole),
        pci: pci.to_owned(),
        parts: parts.len(),
        readings: whole.readings,
        sm_mhz: whole.sm_mhz,
        watts: whole.watts,
        celsius: whole.celsius,
        bad: found,
        failure: whole.failure,
    }
}
