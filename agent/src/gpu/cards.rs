//! The state of GPUs, whoever tells it: NVML of NVIDIA's GPUs, AMD SMI of AMD's.
//!
//! Whose GPUs a library drives: what differs between CUDA's driver API and HIP beyond the names of functions.
//!
//! HIP's numbers are those of its `hip_runtime_api.h` and `driver_types.h` (ROCm 5.5, 5.7, 6.3 and 7.12): error codes, flags of streams, events
//! and captures, and attributes of pointers are CUDA's; attributes of devices are not.

use std::{
    collections::BTreeMap,
    ffi::c_int,
    sync::atomic::{AtomicBool, Ordering},
};

use railgauge_wire::{
    gpu_state::GpuReading,
    remedy::{self, Entry},
    terms::Carrier,
};
use thiserror::Error;

use super::{amd, driver, state};
use crate::system::process;

/// Whether AMD SMI is the one that was asked last, and may not have come back yet.
static ASKED_AMD_SMI: AtomicBool = AtomicBool::new(false);

/// Whose library was asked last; NVML is asked first.
pub(crate) fn asked() -> Maker {
    if ASKED_AMD_SMI.load(Ordering::Relaxed) { Maker::Amd } else { Maker::Nvidia }
}

/// Why a GPU could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Unread {
    #[error("{0}")]
    NoLibrary(String),
    #[error("{} does not tell of the GPU at {pci}: {why}", .of.informant())]
    Gpu {
        /// Who does not tell.
        of: Maker,
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
    /// Power that it may draw, in W.
    pub limit_watts: Option<f64>,
    pub is_amd: bool,
}

/// The GPUs of this host, by PCI address.
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
    let is_amd = || driver::driver().is_ok_and(|driver| driver.maker() == Maker::Amd);
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    Nvidia,
    Amd,
}

impl Maker {
    /// What of the two is his.
    pub(crate) const fn either<T: Copy>(self, nvidia: T, amd: T) -> T {
        match self {
            Self::Nvidia => nvidia,
            Self::Amd => amd,
        }
    }

    pub(crate) const fn runtime(self) -> &'static str {
        self.either("CUDA", "HIP")
    }

    /// The library that tells the state of its GPUs.
    pub(crate) const fn informant(self) -> &'static str {
        self.either("NVML", "AMD SMI")
    }

    pub(crate) const fn copies(self) -> Carrier {
        self.either(Carrier::CudaCopy, Carrier::HipCopy)
    }

    pub(crate) const fn kernels(self) -> Carrier {
        self.either(Carrier::CudaKernel, Carrier::HipKernel)
    }

    pub(crate) const fn products(self) -> Carrier {
        self.either(Carrier::Cublaslt, Carrier::Hipblaslt)
    }

    /// The attributes that tell the generation of a GPU, major and minor: the compute capability
    /// (`CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`); of AMD's GPUs the first digits of their gfx number, such as 9 and 4
    /// of gfx942 (`hipDeviceAttributeComputeCapabilityMajor` and `Minor`).
    pub(super) const fn generation(self) -> [c_int; 2] {
        self.either([75, 76], [23, 61])
    }

    /// What to do where memory of a GPU is short.
    pub(crate) const fn free_memory(self) -> Entry {
        self.either(remedy::FREE_GPU_MEMORY, remedy::FREE_AMD_GPU_MEMORY)
    }

    /// Where to look when a GPU does not work.
    pub(crate) const fn look(self) -> Entry {
        self.either(remedy::LOOK_AT_GPU, remedy::LOOK_AT_AMD_GPU)
    }
}
