//! What both vendors' libraries report of the state of GPUs.

use std::collections::BTreeMap;

use railgauge_wire::GpuReading;
use thiserror::Error;

use super::Vendor;
use crate::system::process;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Unread {
    #[error("{0}")]
    NoLibrary(String),
    #[error("{} does not report the GPU at {pci}: {why}", .of.monitor())]
    Gpu {
        /// The library without an answer.
        of: Vendor,
        pci: String,
        why: String,
    },
    #[error("NVML has lost the GPU at {0}")]
    Lost(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Lasting {
    /// The library's index: in the order of PCI addresses.
    pub index: Option<u32>,
    pub best_mhz: Option<(u32, u32)>,
    pub best_pcie: Option<(u32, u32)>,
    pub limit_watts: Option<f64>,
    pub is_amd: bool,
}

pub(crate) trait Cards {
    fn read(&mut self, pci: &str) -> Result<GpuReading, Unread>;

    /// The driver's error counters of a GPU, without those that it lacks.
    fn counters(&mut self, pci: &str) -> Result<BTreeMap<String, u64>, Unread>;

    fn lasting(&mut self, pci: &str) -> Result<Lasting, Unread>;

    /// Xids since the last call; `None` where the driver sends none to this process.
    fn xids(&mut self, _pci: &str) -> Result<Option<Vec<u32>>, Unread> {
        Ok(None)
    }
}

/// Other programs than this agent and what it started; `None` where the list lacks the agent.
pub(super) fn others(list: impl Fn() -> Option<Vec<u32>>) -> Option<u32> {
    let known = whose(list()?);
    known.iter().any(|(_, ours)| *ours == Some(true)).then(|| beside(&known, list)).flatten()
}

/// For an agent that need not use the GPU, and so need not be in the list.
pub(super) fn others_at_rest(list: impl Fn() -> Option<Vec<u32>>) -> Option<u32> {
    beside(&whose(list()?), list)
}

fn whose(pids: Vec<u32>) -> Vec<(u32, Option<bool>)> {
    pids.into_iter().map(|pid| (pid, process::is_ours(pid))).collect()
}

fn beside(known: &[(u32, Option<bool>)], list: impl Fn() -> Option<Vec<u32>>) -> Option<u32> {
    // Ended programs are gone; hidden ones are not.
    let unknown = known.iter().any(|(_, ours)| ours.is_none());
    let still = if unknown { list()? } else { Vec::new() };
    let is_other = |(pid, ours): &&(u32, Option<bool>)| !ours.unwrap_or_else(|| !still.contains(pid));
    u32::try_from(known.iter().filter(is_other).count()).ok()
}
