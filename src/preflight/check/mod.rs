//! The checks, one file each. Which there are is said once, by [`railgauge_model::checks`]: plans name them.

pub(super) use iommu::iommu_mode;

use railgauge_model::plan::Plan;
use railgauge_wire::{
    facts::{Gpu, HostFacts},
    remedy::{self, Entry, Remedy},
};

use super::{
    finding::{Found, Severity, UNKNOWN},
    observed::{Observation, Value, WantedBy},
    scene::{Around, Port, Scene},
    usual::Usual,
};

/// A check.
#[derive(Debug)]
pub struct Check {
    /// Name, as plans waive it.
    pub name: &'static str,
    /// What its file says of it.
    pub rule: Rule,
}

/// What a check reads and what its findings mean.
#[derive(Debug)]
pub struct Rule {
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

/// Something that a check reads, and what is unknown about a host without it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Need {
    /// Of the host itself.
    Host(fn(&HostFacts) -> bool, &'static str),
    /// Of every port that the check looks at.
    Port(fn(&Port<'_>) -> bool, &'static str),
    /// Of every GPU; this implies that GPUs can be read at all.
    Gpu(fn(&Gpu) -> bool, &'static str),
    /// That nothing of this name is among the facts' `unreadable`.
    Readable(&'static str),
    /// Something of the plan about the host: what it lacks.
    Plan(fn(&Plan, &str, &HostFacts) -> Option<String>),
    /// The host's clock against the controller's.
    Clock,
}

impl Check {
    /// Everything it finds.
    pub(super) fn find(&self, scene: &Scene<'_>) -> Vec<Found> {
        (self.rule.find)(scene)
    }
}

/// Declares a file of this folder for every check of the list, and the table of them all.
macro_rules! declare {
    ($($module:ident = $name:literal,)*) => {
        $(mod $module;)*

        /// Every check there is, by name.
        pub const CHECKS: &[Check] = &[$(Check { name: $name, rule: $module::RULE }),*];
    };
}

railgauge_model::checks!(declare);

/// What a plan wants and nobody can read: never a pass.
fn unread(host: &str, what: &str, wanted: &str) -> Found {
    let what = format!("{what} cannot be read, but the plan requires {wanted}");
    Found::host(Severity::Warning, host, what, remedy::READ_AS_ROOT).meaning(UNKNOWN).unread()
}

/// The value that all ports of this name have, of two hosts at least: what the cluster is built like, and no fault of one host.
fn fellows<'a, T: PartialEq>(port: &Port<'_>, all: impl Iterator<Item = (Port<'a>, T)>) -> Option<T> {
    let of_name = |other: &Port<'_>| {
        (&other.device.name, other.port.number, other.member) == (&port.device.name, port.port.number, port.member)
    };
    let mut values = all.filter(|(other, _)| of_name(other)).map(|(_, value)| value);
    let (first, second) = (values.next()?, values.next()?);
    (first == second && values.all(|value| value == first)).then_some(first)
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
