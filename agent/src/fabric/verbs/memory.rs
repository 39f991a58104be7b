//! Which bytes a link measures, and how the device reaches them.
//!
//! Memory of a GPU is reached by GPUDirect RDMA, registered by its dma-buf or by the module nvidia-peermem, or it is
//! copied through host memory (`staged`). The plan may demand one of the three; where it does not, GPUDirect is taken as
//! NCCL takes it (dma-buf first), and a link that has neither fails: a copy through host memory is another measurement
//! and has to be asked for.

use std::{collections::BTreeMap, sync::Arc};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    link::LinkSpec,
    remedy,
    terms::{GpuPath, Memory},
};

use crate::{
    endpoint::verbs::settings::Settings,
    facts::{self},
    gpu::{
        self, Device,
        reach::{Bounced, Direct},
    },
    memory::{backing::Backing, host},
    system::tree::Tree,
    verbs::{
        domain::Domain,
        region::{Access, Region},
    },
};

/// Where a kernel says that a module of peer memory is loaded: the driver's own, and its ancestors. As NCCL looks.
const PEER_MEMORY: [&str; 3] = [
    "sys/module/nvidia_peermem/version",
    "sys/kernel/mm/memory_peers/nv_mem/version",
    "sys/kernel/mm/memory_peers/nv_mem_nc/version",
];

/// The registered bytes of a link.
pub(crate) struct Bytes {
    /// Registered as the plan wants it.
    pub region: Arc<Region>,
    /// The same bytes without relaxed ordering; `region` itself where that has none.
    pub ordered: Arc<Region>,
    /// How GPU memory is reached.
    pub path: GpuPath,
    /// Whether the NIC's driver would copy small messages to their place with the CPU, which GPU memory does not bear.
    pub scatters: bool,
    /// What the record should say.
    pub notes: BTreeMap<String, String>,
}

/// Takes and registers `length` bytes.
///
/// # Errors
/// The memory is not to be had, or the device does not reach it as the plan demands.
pub(crate) fn take(
    spec: &LinkSpec,
    domain: &Arc<Domain>,
    settings: &Settings,
    atomics: bool,
    length: u64,
) -> Result<Bytes, Failure> {
    let register = |backing: Arc<dyn Backing>| regions(domain, &backing, settings, atomics);
    if spec.memory == Memory::Host {
        let (region, ordered) = register(Arc::new(host::Buffer::new(length, settings.huge_pages)?))?;
        return Ok(Bytes { region, ordered, path: GpuPath::None, scatters: false, notes: BTreeMap::new() });
    }
    let host = Tree::host();
    let device = Device::open(spec.gpu.unwrap_or(0))?;
    let mut notes = device.record();
    let nic = facts::rdma::address(&host, domain.device().name());
    if let Some(distance) = nic.and_then(|nic| gpu::distance::between(&host, device.pci(), &nic)) {
        notes.insert("gpu_distance".into(), distance.to_string());
    }
    let by_dma_buf = || {
        Region::takes_dma_buf(domain)?;
        register(Arc::new(Direct::new(&device, length)?.exported()?))
    };
    let by_peer_memory = || peer_memory(&host).and_then(|_| register(Arc::new(Direct::new(&device, length)?)));
    let ((region, ordered), path) = match spec.gpu_path {
        Some(GpuPath::GdrDmabuf) => (by_dma_buf()?, GpuPath::GdrDmabuf),
        Some(GpuPath::GdrPeermem) => (by_peer_memory()?, GpuPath::GdrPeermem),
        Some(GpuPath::Staged) => {
            (register(Arc::new(Bounced::new(&device, length, settings.huge_pages)?))?, GpuPath::Staged)
        }
        Some(GpuPath::Gdr | GpuPath::None) | None => match by_dma_buf() {
            Ok(regions) => (regions, GpuPath::GdrDmabuf),
            Err(dma_buf) => match by_peer_memory() {
                Ok(regions) => {
                    notes.insert("no_dma_buf".into(), dma_buf.cause);
                    (regions, GpuPath::GdrPeermem)
                }
                Err(peer) => return Err(neither(domain.device().name(), &dma_buf, &peer)),
            },
        },
    };
    if path == GpuPath::GdrPeermem {
        notes.insert("peer_memory".into(), peer_memory(&host)?);
    }
    let scatters = path != GpuPath::Staged && scatters(&host, domain.device().name());
    Ok(Bytes { region, ordered, path, scatters, notes })
}

/// mlx5 puts small messages into the completion and copies them from there, unless it is told not to.
fn scatters(host: &Tree, nic: &str) -> bool {
    let driver = host.target(format!("{}/{nic}/device/driver", facts::rdma::CLASS));
    driver.is_some_and(|driver| driver.ends_with("mlx5_core"))
        && std::env::var_os("MLX5_SCATTER_TO_CQE").is_none_or(|value| value != "0")
}

/// Name and version of the module by which devices reach GPU memory.
fn peer_memory(host: &Tree) -> Result<String, Failure> {
    let loaded = PEER_MEMORY.iter().find_map(|file| {
        let module = file.rsplit('/').nth(1)?;
        host.text(file).map(|version| format!("{module} {version}"))
    });
    loaded.ok_or_else(|| {
        Failure::new(Stage::Open, Kind::Unsupported, "no peer memory: the module nvidia_peermem is not loaded")
            .remedy(remedy::PEERMEM_OR_DMA_BUF)
    })
}

fn neither(nic: &str, dma_buf: &Failure, peer: &Failure) -> Failure {
    let cause = format!("{nic} does not reach GPU memory: {}; {}", dma_buf.cause, peer.cause);
    Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::REACH_GPU_MEMORY)
}

/// The bytes registered as the plan wants it, and without relaxed ordering.
fn regions(
    domain: &Arc<Domain>,
    backing: &Arc<dyn Backing>,
    settings: &Settings,
    atomics: bool,
) -> Result<(Arc<Region>, Arc<Region>), Failure> {
    let register = |relaxed_ordering| {
        Region::register(domain, backing.clone(), Access { atomics, relaxed_ordering }).map(Arc::new)
    };
    let ordered = register(false)?;
    let relaxed = match settings.relaxed_ordering {
        Some(false) => None,
        Some(true) => Some(register(true)?),
        // As NCCL does: where it is not refused.
        None => register(true).ok(),
    };
    Ok((relaxed.unwrap_or_else(|| ordered.clone()), ordered))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn peer_memory_is_what_the_kernel_has_loaded() {
        let root = tempfile::tempdir().unwrap();
        let refused = peer_memory(&Tree::new(root.path())).unwrap_err();
        assert!(refused.cause.contains("nvidia_peermem"), "{refused}");
        assert_eq!(refused.remedy.unwrap().commands()[0].command, "modprobe nvidia_peermem");
        for (file, words) in PEER_MEMORY.iter().rev().zip(["nv_mem_nc 1.3", "nv_mem 1.3", "nvidia_peermem 1.3"]) {
            let place = root.path().join(file);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, "1.3\n").unwrap();
            assert_eq!(peer_memory(&Tree::new(root.path())).unwrap(), words);
        }
    }
}
