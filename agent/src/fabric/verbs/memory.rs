//! The measured bytes of a link, and how the device reaches them.
//!
//! GPU memory uses GPUDirect RDMA, registered by its dma-buf or by the module nvidia-peermem, or is copied through host memory
//! (`staged`). The plan may require one of the three. Otherwise GPUDirect is used as in NCCL (dma-buf first), and a link without either
//! fails: a copy through host memory is a different measurement and must be asked for.

use std::{collections::BTreeMap, sync::Arc};

use railgauge_wire::{
    Distance, Failure, Footprint, GpuPath, Kind, LinkSpec, Memory, Stage,
    link::{self, LINE, PAGE},
    remedy,
};

use crate::{
    endpoint::verbs::{choice::Driver, settings::Settings},
    facts,
    gpu::{self, Device, buffer, reached::Reached},
    memory::{backing::Backing, shared::Shared},
    system::tree::Tree,
    verbs::{
        Access, Domain, Region, Walk,
        region::{self},
    },
};

/// Files that show a loaded module of peer memory: the driver's own, and its predecessors. As in NCCL.
const PEER_MEMORY: [&str; 3] = [
    "sys/module/nvidia_peermem/version",
    "sys/kernel/mm/memory_peers/nv_mem/version",
    "sys/kernel/mm/memory_peers/nv_mem_nc/version",
];

pub(crate) struct Bytes {
    pub region: Arc<Region>,
    pub ordered: bool,
    pub path: GpuPath,
    /// Whether the NIC's driver would copy small messages into place with the CPU, which fails for GPU memory.
    pub scatters: bool,
    pub notes: BTreeMap<String, String>,
}

pub(crate) fn take(
    spec: &LinkSpec,
    (domain, driver): (&Arc<Domain>, &Driver),
    settings: &Settings,
    atomics: bool,
    length: u64,
) -> Result<Bytes, Failure> {
    let has_data_direct = spec.memory != Memory::Host && driver.is("mlx5_core") && Region::has_data_direct(domain);
    let data_direct = has_data_direct && settings.data_direct;
    let register = |backing: Arc<dyn Backing>| {
        let once = |relaxed_ordering| {
            let access = Access { atomics, relaxed_ordering, data_direct };
            Region::register(domain, backing.clone(), access).map(Arc::new)
        };
        registered(settings.relaxed_ordering, once)
    };
    if spec.memory == Memory::Host {
        let (region, ordering) = register(Arc::new(Shared::new(length, settings.huge_pages)?))?;
        let (ordered, notes) = (!ordering.relaxed, ordering.notes(driver));
        return Ok(Bytes { region, ordered, path: GpuPath::None, scatters: false, notes });
    }
    let host = Tree::host();
    let device = Device::open(spec.gpu.unwrap_or(0))?;
    if spec.gpu_path != Some(GpuPath::Staged) {
        buffer::by_nics(&device)?;
    }
    let mut notes = device.record();
    let nic = facts::rdma::address(&host, domain.device().name());
    let distance = nic.and_then(|nic| gpu::present::between(&host, device.pci(), &nic));
    if let Some(distance) = distance {
        notes.insert("gpu_distance".into(), distance.to_string());
    }
    // Below a shared switch, packets take PCIe also where the GPU has another way to the CPU (NVLink-C2C). NCCL asks for that mapping
    // there (transport/net_ib, `ncclTopoGdrModePci`), and for Data Direct.
    let by_pcie = data_direct || matches!(distance, Some(Distance::Pix | Distance::Pxb));
    let mut mapping = "";
    let mut by_dma_buf = || {
        Region::takes_dma_buf(domain)?;
        let (memory, exported) = Reached::exported(&device, length, by_pcie)?;
        mapping = exported;
        register(Arc::new(memory))
    };
    let by_peer_memory = || peer_memory(&host).and_then(|_| register(Arc::new(Reached::direct(&device, length)?)));
    let ((region, ordering), path) = match spec.gpu_path {
        Some(GpuPath::GdrDmabuf) => (by_dma_buf()?, GpuPath::GdrDmabuf),
        Some(GpuPath::GdrPeermem) => (by_peer_memory()?, GpuPath::GdrPeermem),
        Some(GpuPath::Staged) => {
            (register(Arc::new(Reached::staged(&device, length, settings.huge_pages)?))?, GpuPath::Staged)
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
    if path == GpuPath::GdrDmabuf && has_data_direct {
        notes.insert("data_direct".into(), data_direct.to_string());
    }
    if path == GpuPath::GdrPeermem {
        notes.insert("peer_memory".into(), peer_memory(&host)?);
    }
    if path == GpuPath::GdrDmabuf {
        notes.insert("dma_buf_mapping".into(), mapping.into());
    }
    let ordered = !ordering.relaxed;
    notes.append(&mut ordering.notes(driver));
    let scatters = path != GpuPath::Staged && driver.is("mlx5_core") && !region::can_be_off();
    Ok(Bytes { region, ordered, path, scatters, notes })
}

/// Whether the registration has relaxed ordering; if asked for and refused, why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ordering {
    relaxed: bool,
    refused: Option<String>,
}

impl Ordering {
    fn notes(self, driver: &Driver) -> BTreeMap<String, String> {
        let mut notes = BTreeMap::from([("relaxed_ordering".to_owned(), self.relaxed.to_string())]);
        if self.relaxed {
            notes.insert("relaxed_ordering_effect".to_owned(), driver.relaxed_ordering());
        }
        notes.extend(self.refused.map(|cause| ("relaxed_ordering_refused".to_owned(), cause)));
        notes
    }
}

/// Registers a buffer once: with relaxed ordering if `wanted`, or by default where it is not refused (as in NCCL).
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

/// A datagram follows the 40 bytes of a global route header.
pub(crate) const HEADER: u64 = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub qps: u32,
    pub area: u64,
    pub max_size: u64,
    pub footprint: Footprint,
    pub datagrams: bool,
}

impl Layout {
    /// `last_level_cache` in bytes matters for DRAM footprints only.
    pub(crate) fn new(qps: u32, max_size: u64, footprint: Footprint, last_level_cache: u64, datagrams: bool) -> Self {
        let area = link::area(qps, max_size, footprint, last_level_cache);
        Self { qps: qps.max(1), area, max_size, footprint, datagrams }
    }

    pub(crate) fn length(&self) -> u64 {
        u64::from(self.qps) * 2 * self.area
    }

    /// Of the first byte that queue pair `i` sends from.
    pub(crate) fn outgoing(&self, i: usize) -> u64 {
        i as u64 * 2 * self.area
    }

    /// Of the first byte that queue pair `i` receives into.
    pub(crate) fn incoming(&self, i: usize) -> u64 {
        self.outgoing(i) + self.area + if self.datagrams { LINE } else { 0 }
    }

    /// Half a share of a peer whose buffer has so many bytes.
    pub(crate) fn area_of(length: u64, qps: usize) -> u64 {
        length / 2 / (qps as u64).max(1)
    }

    /// Range of messages of `size` bytes in areas of `area` bytes: inside one page as in perftest, or all of it.
    pub(crate) fn walk(&self, size: u64, area: u64) -> Walk {
        let step = size.max(1).next_multiple_of(LINE);
        let span = match self.footprint {
            Footprint::Cache => PAGE,
            Footprint::Dram => area.saturating_sub(LINE),
        };
        let places = span / step;
        if places < 2 { Walk::default() } else { Walk { step, span: places * step } }
    }

    /// Atomics use one page, whatever the footprint. It is read before and after a pass, to add its words up.
    pub(crate) const fn words() -> Walk {
        Walk { step: LINE, span: PAGE }
    }

    pub(crate) fn landing(&self) -> Walk {
        match self.footprint {
            Footprint::Cache => Walk { step: LINE, span: PAGE },
            Footprint::Dram => self.walk(self.max_size + LINE, self.area),
        }
    }
}

/// Copies of messages between GPU memory and the host memory in front of it.
pub(crate) struct Copies {
    pub(super) region: Arc<Region>,
    pub(super) outgoing: Vec<u64>,
    pub(super) incoming: Option<Vec<u64>>,
    pub(super) header: u64,
    pub(super) size: u64,
}

impl Copies {
    /// Copies messages before posting them on queue pair `i`.
    pub(crate) fn fetch(&self, i: usize, messages: u64) -> Result<(), Failure> {
        (0..messages).try_for_each(|_| self.region.backing().fetch(self.outgoing[i], self.size))
    }

    pub(crate) fn deliver(&self, i: usize, place: u64) -> Result<(), Failure> {
        let place = self.incoming.as_ref().map_or(place + self.header, |places| places[i]);
        self.region.backing().deliver(place, self.size)
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, fs};

    use proptest::prelude::*;

    use super::*;

    /// Result for a device that refuses or accepts relaxed ordering, and the requests to it.
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

    fn footprint() -> impl Strategy<Value = Footprint> {
        prop_oneof![Just(Footprint::Cache), Just(Footprint::Dram)]
    }

    proptest! {
        #[test]
        fn no_message_leaves_its_half_of_a_share(
            qps in 1..40u32,
            max in 1..4_000_000u64,
            part in 1..1000u64,
            cache in 0..64_000_000u64,
            footprint in footprint(),
            datagrams: bool,
        ) {
            let layout = Layout::new(qps, max, footprint, cache, datagrams);
            let size = (max * part / 1000).max(1);
            let line = if datagrams { LINE } else { 0 };
            for (walk, size) in [(layout.walk(size, layout.area), size), (layout.landing(), max), (Layout::words(), 8)] {
                prop_assert!(walk.fits(line, size, layout.area), "{walk:?} {layout:?}");
                prop_assert!(walk.step == 0 || walk.span.is_multiple_of(walk.step));
            }
            prop_assert_eq!(Layout::area_of(layout.length(), qps as usize), layout.area);
            let end = layout.incoming(qps as usize - 1) + max;
            prop_assert!(end <= layout.length());
        }
    }

    #[test]
    fn cache_walks_one_page_and_dram_four_caches() {
        let cache = Layout::new(1, 1 << 20, Footprint::Cache, 32 << 20, false);
        assert_eq!(cache.walk(64, cache.area), Walk { step: 64, span: 4096 });
        assert_eq!(cache.walk(2048, cache.area), Walk { step: 2048, span: 4096 });
        assert_eq!(cache.walk(4096, cache.area), Walk::default(), "the same place every time");
        let dram = Layout::new(2, 1 << 20, Footprint::Dram, 32 << 20, false);
        assert!(dram.walk(65536, dram.area).span * 2 >= 4 * (32 << 20));
    }
}
