//! Facts of a host: one document per host, collected by the agent itself. An unreadable fact is `None`, and `unreadable` says why;
//! nothing is guessed.

mod gpu;
mod machine;
mod network;
mod parts;
mod pci;
mod rdma;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use gpu::{
    AMD_SMI, CUBLASLT, Gpu, GpuDistance, GpuFabric, HIP, HIPBLASLT, MemoryFaults, POWER_CAP, RCCL, Registration,
};
pub use machine::{Cpu, HugePages, IpcLock, Load, MOST_NODES, Surroundings, Traffic, Xid};
pub use network::{Bond, BondMember, Dcb, Ecn, Interface, Neighbour, Pause};
pub use parts::{Card, LONGEST_SERIAL, Label, Module, Parts, serial_number};
pub use pci::{Bridge, PciErrors, PciFunction, Sriov};
pub use rdma::{DeviceFile, Gid, RateSource, RdmaDevice, RdmaPort, port_name};

use crate::unit::{Bytes, GigabitsPerSecond};

/// Kernel modules that some check asks for. Only MLNX_OFED and DOCA have `mlx_compat`: the kernel's own drivers do not need it.
#[rustfmt::skip]
pub const MODULES: [&str; 23] = [
    "amdgpu", "bnxt_re", "efa", "erdma", "gdrdrv", "ib_core", "ib_ipoib", "ib_uverbs", "irdma", "mana_ib", "mlx4_core",
    "mlx5_core", "mlx5_ib", "mlx_compat", "nv_peer_mem", "nvidia", "nvidia_fs", "nvidia_peermem", "nvidia_uvm",
    "rdma_cm", "rdma_rxe", "rdma_ucm", "siw",
];

/// Key of [`HostFacts::unreadable`] for the GPUs, where the driver's library does not answer.
pub const GPUS: &str = "gpus";
/// Folder of the IOMMUs, and key of [`HostFacts::unreadable`] for them.
pub const IOMMUS: &str = "sys/class/iommu";
/// Key of [`HostFacts::unreadable`] for the host's LLDP neighbours.
pub const NEIGHBOURS: &str = "neighbours (LLDP)";
/// File of the limits that the agent runs under, and key of [`HostFacts::unreadable`] for them.
pub const LIMITS: &str = "proc/self/limits";

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// The host's own name (`uname -n`).
    pub hostname: String,
    /// Operating system, as `PRETTY_NAME` of os-release.
    pub os: Option<String>,
    /// Kernel release (`uname -r`).
    pub kernel: String,
    pub command_line: Option<String>,
    /// Machine architecture (`uname -m`).
    pub architecture: String,
    pub surroundings: Surroundings,
    pub cpu: Cpu,
    pub memory_bytes: Option<Bytes>,
    pub huge_pages: Vec<HugePages>,
    /// Whether the kernel makes huge pages by itself: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Whether the kernel moves memory between NUMA nodes by itself.
    pub numa_balancing: Option<bool>,
    /// Locked-memory limit; `None` if unlimited, or if the agent may pass it (`CAP_IPC_LOCK`).
    pub memlock_bytes: Option<Bytes>,
    /// What the capability does that lifts this limit; `None` where it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipc_lock: Option<IpcLock>,
    /// Processors that the agent may run on; `None` where the kernel does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors_allowed: Option<u32>,
    /// Limit on open files; `None` if unlimited.
    pub open_files: Option<u64>,
    /// Clock source of the kernel, such as `tsc`.
    pub clock_source: Option<String>,
    pub load: Load,
    /// `net.ipv4.tcp_ecn`.
    pub tcp_ecn: Option<u32>,
    pub iommus: u32,
    /// Versions of kernel modules for RDMA and GPUs; empty where a module has none.
    pub modules: BTreeMap<String, String>,
    /// RDMA devices, in the order of their names.
    pub rdma: Vec<RdmaDevice>,
    /// GPUs, in the order of PCI addresses, which is NVML's; CUDA's or HIP's numbers are in [`Gpu::cuda_device`].
    pub gpus: Vec<Gpu>,
    /// `CUDA_VISIBLE_DEVICES` of the agent, or one of HIP's variables for the same: CUDA's GPU 0 may then differ from the first of
    /// `gpus`.
    pub cuda_visible: Option<String>,
    /// Environment variables of the agent that replace files or libraries of the host (`RAILGAUGE_ROOT`, `RAILGAUGE_IBVERBS`,
    /// `RAILGAUGE_RDMACM`), and their values: reported hardware may then be something else.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, String>,
    /// How far each GPU is from each RDMA device on the PCIe tree.
    pub gpu_distances: Vec<GpuDistance>,
    /// Messages of the NVIDIA driver in the kernel's log since boot, oldest first; `None` where it cannot be read.
    pub xids: Option<Vec<Xid>>,
    /// Network interfaces, in the order of their names.
    pub interfaces: Vec<Interface>,
    /// Switches next to its interfaces (LLDP), from lldpd; `None` without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<Vec<Neighbour>>,
    #[serde(skip_serializing_if = "Parts::is_empty")]
    pub parts: Parts,
    /// Libraries found at run time and their versions or the loader's words: `libibverbs.so.1` → path.
    pub libraries: BTreeMap<String, String>,
    pub unreadable: BTreeMap<String, String>,
}

impl HostFacts {
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    /// Whether a plan that names no devices leaves this one out: the agent cannot open it, but others. Pods in the host's RDMA namespace see
    /// all of its devices, and have the files of some.
    pub fn leaves_out(&self, device: &RdmaDevice) -> bool {
        device.is_refused() && self.rdma.iter().any(|other| other.device_file == Some(DeviceFile::Open))
    }

    /// Speeds of the members of a port's bond that carry traffic, the fastest first; `None` without a bond or with an unknown speed. One
    /// queue pair uses one of them.
    pub fn member_rates(&self, port: &RdmaPort) -> Option<Vec<GigabitsPerSecond>> {
        if port.members.is_empty() {
            return None;
        }
        let bond = self.interface(port.netdev.as_deref()?)?;
        let carrying = bond.members.iter().filter(|member| port.members.contains(&member.name) && member.carries());
        network::rates(carrying)
    }

    /// Whether the host's GPUs are AMD's: it has some, AMD's kernel module is loaded, and NVIDIA's is not. A host whose processor has AMD
    /// graphics loads that module too; they are not among its GPUs.
    pub fn has_amd_gpus(&self) -> bool {
        !self.gpus.is_empty() && self.modules.contains_key("amdgpu") && !self.modules.contains_key("nvidia")
    }

    /// The loader's messages for all names of a library that contain `part`; `None` where it finds one, or looked for none.
    pub fn unfound(&self, part: &str) -> Option<String> {
        let asked = || self.libraries.iter().filter(|(name, _)| name.contains(part));
        // The loader's messages are not paths.
        let is_missing = asked().count() > 0 && asked().all(|(_, said)| !said.starts_with('/'));
        is_missing.then(|| asked().map(|(name, said)| format!("{name}: {said}")).collect::<Vec<_>>().join("; "))
    }

    pub fn finds(&self, part: &str) -> bool {
        self.libraries.iter().any(|(name, said)| name.contains(part) && said.starts_with('/'))
    }

    /// Whether CUDA's numbers of the GPUs are known: the driver reported them, or nothing hides or reorders GPUs.
    pub fn numbers_gpus(&self) -> bool {
        self.cuda_visible.is_none() || self.gpus.iter().any(|gpu| gpu.cuda_device.is_some())
    }

    /// The GPU with this number in CUDA and in plans; `None` without such a GPU or without known numbers.
    pub fn cuda_gpu(&self, number: u32) -> Option<&Gpu> {
        self.gpus.iter().find(|gpu| self.cuda_number(gpu) == Some(number))
    }

    pub fn cuda_number(&self, gpu: &Gpu) -> Option<u32> {
        match self.gpus.iter().any(|gpu| gpu.cuda_device.is_some()) {
            true => gpu.cuda_device,
            false => self.cuda_visible.is_none().then_some(gpu.index),
        }
    }

    /// The GPUs that CUDA sees, by their numbers, and how far each is from this RDMA device, where that is known.
    pub fn gpus_near<'f>(&'f self, device: &'f str) -> impl Iterator<Item = GpuDistance> + 'f {
        let known = self.gpu_distances.iter().filter(move |known| known.device == device);
        known.filter_map(|known| {
            let gpu = self.gpus.iter().find(|gpu| gpu.index == known.gpu)?;
            Some(GpuDistance { gpu: self.cuda_number(gpu)?, ..known.clone() })
        })
    }
}
