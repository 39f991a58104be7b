//! The checks, one file each.

mod acs;
mod bond;
mod clock;
mod clock_source;
mod device_count;
mod dscp_map;
mod ecn;
mod firmware;
mod gid;
mod gid_table;
mod governor;
mod gpu_busy;
mod gpu_clocks;
mod gpu_count;
mod gpu_distance;
mod gpu_driver;
mod gpu_library;
mod gpu_memory;
mod gpu_nvlink;
mod gpu_pcie;
mod gpu_persistence;
mod gpu_xid;
mod gpudirect;
mod huge_pages;
mod idle;
mod iommu;
mod iwarp;
mod link_rate;
mod locked_memory;
mod max_read_request;
mod mtu;
mod numa;
mod partition;
mod pause_frames;
mod pcie_errors;
mod pcie_link;
mod pfc;
mod port_state;
mod qos_trust;
mod software_device;
mod subnet_manager;
mod verbs_library;
mod versions;
mod virtual_machine;

pub(super) use iommu::iommu_mode;

use railgauge_wire::{
    facts::{Gpu, HostFacts},
    remedy::{self, Entry, Remedy},
};

use super::{
    finding::{Found, Severity, UNKNOWN},
    scene::{Port, Scene},
    usual::Usual,
};

/// A check: what it reads and what its findings mean.
#[derive(Debug)]
pub struct Check {
    /// Name, as plans waive it.
    pub name: &'static str,
    /// The facts it reads, and where they come from.
    pub reads: &'static str,
    /// What its findings mean for the numbers.
    pub meaning: &'static str,
    /// Where this is known from.
    pub source: &'static str,
    /// Which numbers its findings may explain.
    pub spoils: Spoils,
    /// What a host must have for the check to say anything of it.
    pub subject: Subject,
    /// What it must be able to read of each subject: where one of them is missing, nothing found says nothing.
    pub(super) needs: &'static [Need],
    find: fn(&Scene<'_>) -> Vec<Found>,
}

/// Which numbers a finding may explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoils {
    /// Bandwidths, message rates and latencies alike.
    Everything,
    /// Bandwidths and message rates.
    Bandwidth,
    /// Latencies.
    Latency,
    /// Everything that moves GPU memory.
    GpuMemory,
    /// None: something to know.
    Nothing,
}

/// What a check looks at. That it finds nothing means nothing for a host without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The host itself, or whether it has what the plan needs.
    Host,
    /// A port of an RDMA device that the plan can use, also of a software device.
    Port,
    /// A RoCE port, also of a software device.
    RocePort,
    /// An RDMA device that is no software device.
    Nic,
    /// A RoCE port of such a device.
    RoceNic,
    /// An InfiniBand port.
    InfiniBand,
    /// A GPU.
    Gpu,
    /// An RDMA device or a GPU.
    NicOrGpu,
    /// An RDMA device and a GPU.
    GpuBesideNic,
}

/// Something that a check reads, and what a host that lacks it does not tell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Need {
    /// Of the host itself.
    Host(fn(&HostFacts) -> bool, &'static str),
    /// Of every port that the check looks at.
    Port(fn(&Port<'_>) -> bool, &'static str),
    /// Of every GPU; that GPUs can be read at all goes without saying.
    Gpu(fn(&Gpu) -> bool, &'static str),
    /// That nothing of this name is among the facts' `unreadable`.
    Readable(&'static str),
    /// The host's clock against the controller's.
    Clock,
}

impl Check {
    /// Everything it finds.
    pub(super) fn find(&self, scene: &Scene<'_>) -> Vec<Found> {
        (self.find)(scene)
    }
}

/// Every check there is, by name.
pub const CHECKS: &[Check] = &[
    acs::CHECK,
    bond::CHECK,
    clock::CHECK,
    clock_source::CHECK,
    device_count::CHECK,
    dscp_map::CHECK,
    ecn::CHECK,
    firmware::CHECK,
    gid::CHECK,
    gid_table::CHECK,
    governor::CHECK,
    gpu_busy::CHECK,
    gpu_clocks::CHECK,
    gpu_count::CHECK,
    gpu_distance::CHECK,
    gpu_driver::CHECK,
    gpu_library::CHECK,
    gpu_memory::CHECK,
    gpu_nvlink::CHECK,
    gpu_pcie::CHECK,
    gpu_persistence::CHECK,
    gpu_xid::CHECK,
    gpudirect::CHECK,
    huge_pages::CHECK,
    idle::CHECK,
    iommu::CHECK,
    iwarp::CHECK,
    link_rate::CHECK,
    locked_memory::CHECK,
    max_read_request::CHECK,
    mtu::CHECK,
    numa::CHECK,
    partition::CHECK,
    pause_frames::CHECK,
    pcie_errors::CHECK,
    pcie_link::CHECK,
    pfc::CHECK,
    port_state::CHECK,
    qos_trust::CHECK,
    software_device::CHECK,
    subnet_manager::CHECK,
    verbs_library::CHECK,
    versions::CHECK,
    virtual_machine::CHECK,
];

/// What a plan wants and nobody can read: never a pass.
fn unread(host: &str, what: &str, wanted: &str) -> Found {
    let what = format!("{what} cannot be read, the plan wants {wanted}");
    Found::host(Severity::Warning, host, what, remedy::READ_AS_ROOT).meaning(UNKNOWN).unread()
}

/// A remedy about the interface of a port, with these values beside it.
fn of_interface(remedy: Entry, port: &Port<'_>, beside: &[(&'static str, &str)]) -> Remedy {
    let interface = port.interface.map(|interface| ("interface", &*interface.name));
    remedy.with(beside.iter().copied().chain(interface))
}

/// A remedy about what is at a PCI address.
fn at_address(remedy: Entry, pci: Option<&str>) -> Remedy {
    remedy.with(pci.map(|pci| ("pci", pci)))
}
