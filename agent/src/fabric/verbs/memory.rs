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
    terms::{Distance, GpuPath, Memory},
};

use crate::{
    endpoint::verbs::{driver::Driver, settings::Settings},
    facts,
    gpu::{
        self, Device, Mapping,
        reach::{self, Bounced, Direct},
    },
    memory::{backing::Backing, host},
    system::tree::Tree,
    verbs::{
        domain::Domain,
        region::{Access, Region},
        scatter,
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
    /// Registered, once.
    pub region: Arc<Region>,
    pub ordered: bool,
    pub path: GpuPath,
    /// Whether the NIC's driver would copy small messages to their place with the CPU, which GPU memory does not bear.
    pub scatters: bool,
    pub notes: BTreeMap<String, String>,
}

/// Takes and registers `length` bytes.
pub(crate) fn take(
    spec: &LinkSpec,
    (domain, driver): (&Arc<Domain>, &Driver),
    settings: &Settings,
    atomics: bool,
    length: u64,
) -> Result<Bytes, Failure> {
    let register = |backing: Arc<dyn Backing>| {
        let once = |relaxed_ordering| {
            Region::register(domain, backing.clone(), Access { atomics, relaxed_ordering }).map(Arc::new)
        };
        registered(settings.relaxed_ordering, once)
    };
    if spec.memory == Memory::Host {
        let (region, ordering) = register(Arc::new(host::Buffer::new(length, settings.huge_pages)?))?;
        let (ordered, notes) = (!ordering.relaxed, ordering.notes(driver));
        return Ok(Bytes { region, ordered, path: GpuPath::None, scatters: false, notes });
    }
    let host = Tree::host();
    let device = Device::open(spec.gpu.unwrap_or(0))?;
    if spec.gpu_path != Some(GpuPath::Staged) {
        reach::by_nics(&device)?;
    }
    let mut notes = device.record();
    let nic = facts::rdma::address(&host, domain.device().name());
    let distance = nic.and_then(|nic| gpu::distance::between(&host, device.pci(), &nic));
    if let Some(distance) = distance {
        notes.insert("gpu_distance".into(), distance.to_string());
    }
    // Below a switch that both share, packets take PCIe also where the GPU has another way to the CPU (NVLink-C2C). NCCL
    // asks for that mapping there (transport/net_ib, `ncclTopoGdrModePci`).
    let below_one_switch = matches!(distance, Some(Distance::Pix | Distance::Pxb));
    let mut mapping = Mapping::default();
    let mut by_dma_buf = || {
        Region::takes_dma_buf(domain)?;
        let (memory, exported) = Direct::new(&device, length)?.exported(below_one_switch)?;
        mapping = exported;
        register(Arc::new(memory))
    };
    let by_peer_memory = || peer_memory(&host).and_then(|_| register(Arc::new(Direct::new(&device, length)?)));
    let ((region, ordering), path) = match spec.gpu_path {
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
    if path == GpuPath::GdrDmabuf {
        notes.insert("dma_buf_mapping".into(), mapping.word().into());
    }
    let ordered = !ordering.relaxed;
    notes.append(&mut ordering.notes(driver));
    let scatters = path != GpuPath::Staged && driver.is("mlx5_core") && !scatter::can_be_off();
    Ok(Bytes { region, ordered, path, scatters, notes })
}

/// Whether the registration has relaxed ordering, and why not where it was wished for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ordering {
    relaxed: bool,
    refused: Option<String>,
}

impl Ordering {
    /// What the record says: whether it was asked for, what may come of that, and why it was refused.
    fn notes(self, driver: &Driver) -> BTreeMap<String, String> {
        let mut notes = BTreeMap::from([("relaxed_ordering".to_owned(), self.relaxed.to_string())]);
        if self.relaxed {
            notes.insert("relaxed_ordering_effect".to_owned(), driver.relaxed_ordering());
        }
        notes.extend(self.refused.map(|cause| ("relaxed_ordering_refused".to_owned(), cause)));
        notes
    }
}

/// A buffer registered by `register`, once: with relaxed ordering if that is `wanted`, or, if nothing is said, where it is
/// not refused (as NCCL does).
fn registered<R>(
    wanted: Option<bool>,
    register: impl Fn(bool) -> Result<R, Failure>,
) -> Result<(R, Ordering), Failure> {
    let relaxed = Ordering { relaxed: true, refused: None };
    match wanted {
        Some(false) => Ok((register(false)?, Ordering { relaxed: false, refused: None })),
        Some(true) => Ok((register(true)?, relaxed)),
        None => match register(true) {
            Ok(region) => Ok((region, relaxed)),
            Err(failure) => Ok((register(false)?, Ordering { relaxed: false, refused: Some(failure.cause) })),
        },
    }
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

#[cfg(test)]
mod tests {
    use std::fs;

    use std::cell::RefCell;

    use super::*;

    /// Registers with the given wish on a device that refuses relaxed ordering or takes it, and what was asked of it.
    fn asked(wanted: Option<bool>, takes: bool) -> (Result<Ordering, Failure>, Vec<bool>) {
        let asked = RefCell::new(Vec::<bool>::new());
        let register = |relaxed: bool| {
            asked.borrow_mut().push(relaxed);
            if takes || !relaxed {
                Ok(())
            } else {
                Err(Failure::new(Stage::Open, Kind::Configuration, "x0: registering memory failed"))
            }
        };
        let ordering = registered(wanted, register).map(|((), ordering)| ordering);
        (ordering, asked.into_inner())
    }

    #[test]
    fn a_buffer_is_registered_once() {
        assert_eq!(asked(None, true).1, [true]);
        assert_eq!(asked(Some(true), true).1, [true]);
        assert_eq!(asked(Some(false), true).1, [false]);
    }

    #[test]
    fn relaxed_ordering_that_is_refused_is_told_and_never_silent() {
        let (ordering, asked_of_it) = asked(None, false);
        assert_eq!(asked_of_it, [true, false]);
        let notes = ordering.unwrap().notes(&Driver::default());
        assert_eq!(notes["relaxed_ordering"], "false");
        assert!(notes["relaxed_ordering_refused"].contains("registering memory failed"), "{notes:?}");
        assert!(asked(Some(true), false).0.is_err(), "what a plan demands is not left out");
        let notes = asked(None, true).0.unwrap().notes(&Driver { software: true, ..Driver::default() });
        assert!(notes["relaxed_ordering_effect"].starts_with("none"), "asked for is not possible: {notes:?}");
    }

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
