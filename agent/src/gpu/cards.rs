//! The state of GPUs: NVML for NVIDIA GPUs, AMD SMI for AMD GPUs.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use railgauge_wire::gpu_state::GpuReading;
use thiserror::Error;

use super::{amd, driver, state, vendor::Vendor};
use crate::system::process;

/// Whether AMD SMI is the one that was asked last, and may not have come back yet.
static ASKED_AMD_SMI: AtomicBool = AtomicBool::new(false);

/// Whose library was asked last; NVML is asked first.
pub(crate) fn asked() -> Vendor {
    if ASKED_AMD_SMI.load(Ordering::Relaxed) { Vendor::Amd } else { Vendor::Nvidia }
}

/// Why a GPU could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Unread {
    #[error("{0}")]
    NoLibrary(String),
    #[error("{} does not tell of the GPU at {pci}: {why}", .of.monitor())]
    Gpu {
        /// Who does not tell.
        of: Vendor,
        pci: String,
        why: String,
    },
    #[error("NVML has lost the GPU at {0}")]
    Lost(String),
}

/// What does not change while tests run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Lasting {
    /// Index as the library counts: in the order of PCI addresses.
    pub index: Option<u32>,
    /// Highest clock of the multiprocessors and of the memory in MHz.
    pub best_mhz: Option<(u32, u32)>,
    /// Generation and width of the PCIe link at best.
    pub best_pcie: Option<(u32, u32)>,
    pub limit_watts: Option<f64>,
    pub is_amd: bool,
}

pub(crate) trait Cards {
    fn read(&mut self, pci: &str) -> Result<GpuReading, Unread>;

    /// What the driver has counted of a GPU's errors; what it does not count is not there.
    fn counters(&mut self, pci: &str) -> Result<BTreeMap<String, u64>, Unread>;

    /// What does not change.
    fn lasting(&mut self, pci: &str) -> Result<Lasting, Unread>;

    /// Xids that NVIDIA's driver told of a GPU since this was asked last; `None` where it tells none to this process.
    fn xids(&mut self, _pci: &str) -> Result<Option<Vec<u32>>, Unread> {
        Ok(None)
    }
}

/// Those whose library starts; where none does, those whose driver is there.
pub(crate) fn of_host() -> Box<dyn Cards> {
    let is_amd = || driver::driver().is_ok_and(|driver| driver.vendor() == Vendor::Amd);
    if !state::starts() {
        ASKED_AMD_SMI.store(true, Ordering::Relaxed);
        if amd::smi().is_ok() || is_amd() {
            return Box::new(amd::state::AmdCards::default());
        }
        ASKED_AMD_SMI.store(false, Ordering::Relaxed);
    }
    Box::new(state::NvidiaCards::default())
}

/// Programs of a list beside this agent, and what it started; `None` where the list does not have the agent's own.
pub(super) fn others(list: impl Fn() -> Option<Vec<u32>>) -> Option<u32> {
    let known = whose(list()?);
    known.iter().any(|(_, ours)| *ours == Some(true)).then(|| beside(&known, list)).flatten()
}

/// The same while the agent need not use the GPU, and so need not be in the list.
pub(super) fn others_at_rest(list: impl Fn() -> Option<Vec<u32>>) -> Option<u32> {
    beside(&whose(list()?), list)
}

fn whose(pids: Vec<u32>) -> Vec<(u32, Option<bool>)> {
    pids.into_iter().map(|pid| (pid, process::is_ours(pid))).collect()
}

fn beside(known: &[(u32, Option<bool>)], list: impl Fn() -> Option<Vec<u32>>) -> Option<u32> {
    // What has ended meanwhile is not there any more; what is hidden still is.
    let unknown = known.iter().any(|(_, ours)| ours.is_none());
    let still = if unknown { list()? } else { Vec::new() };
    let is_other = |(pid, ours): &&(u32, Option<bool>)| !ours.unwrap_or_else(|| !still.contains(pid));
    u32::try_from(known.iter().filter(is_other).count()).ok()
}
