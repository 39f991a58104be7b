//! What a check is, and the words of every check.

pub(super) use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

pub(super) use railgauge_model::plan::{
    Plan,
    count::count,
    model::{Launcher, Test},
};
pub(super) use railgauge_wire::{
    Bond, Bridge, Bytes, DeviceFile, Distance, Gid, Gpu, GpuPath, HostFacts, IpcLock, Joining, Nanoseconds, Op,
    PciErrors, Registration, Service, TestMetric, Traffic, Transport,
    facts::{AMD_SMI, CUBLASLT, GPUS, HIP, HIPBLASLT, IOMMUS, LIMITS, NEIGHBOURS, POWER_CAP, RCCL},
    gpu_state::is_of_program,
    remedy::{self, Entry, Remedy},
};

pub(super) use crate::{
    finding::Found,
    observed::{
        Observation,
        Severity::{self, Failure, Notice, Warning},
        Usual, Value, WantedBy,
    },
    scene::{Around, Card, Port, Scene},
};

#[derive(Debug)]
pub struct Check {
    pub name: &'static str,
    pub rule: Rule,
}

#[derive(Debug)]
pub struct Rule {
    /// The facts it reads, and their source.
    pub reads: &'static str,
    pub meaning: &'static str,
    pub source: &'static str,
    pub spoils: Spoils,
    pub subject: Subject,
    /// What must be readable of each subject: if one is missing, an empty result means nothing.
    pub(crate) needs: &'static [Need],
    pub(super) find: fn(&Scene<'_>, &mut Vec<Found>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoils {
    Everything,
    Bandwidth,
    Latency,
    GpuMemory,
    Nothing,
}

/// What a check examines. An empty result means nothing for a host without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The host itself, or whether it has what the plan needs.
    Host,
    /// A port of an RDMA device that the plan can use, also of a software device.
    Port,
    RocePort,
    Nic,
    RoceNic,
    InfiniBand,
    Gpu,
    NicOrGpu,
    GpuBesideNic,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Need {
    Host(fn(&HostFacts) -> bool, &'static str),
    Port(fn(&Port<'_>) -> bool, &'static str),
    /// Of every GPU; this implies that GPUs can be read at all.
    Gpu(fn(&Gpu) -> bool, &'static str),
    /// Nothing of this name is among the facts' `unreadable`.
    Readable(&'static str),
    Plan(fn(&Plan, &str, &HostFacts) -> Option<String>),
    Clock,
}

impl Check {
    pub(crate) fn find(&self, scene: &Scene<'_>) -> Vec<Found> {
        let mut found = Vec::new();
        (self.rule.find)(scene, &mut found);
        found
    }
}

/// The common value of all ports of this name, of at least two hosts: the design of the cluster, not a fault of one host.
pub(super) fn fellows<'a, T: PartialEq>(port: &Port<'_>, all: impl Iterator<Item = (Port<'a>, T)>) -> Option<T> {
    let of_name = |other: &Port<'_>| {
        (&other.device.name, other.port.number, other.member) == (&port.device.name, port.port.number, port.member)
    };
    let mut values = all.filter(|(other, _)| of_name(other)).map(|(_, value)| value);
    let (first, second) = (values.next()?, values.next()?);
    (first == second && values.all(|value| value == first)).then_some(first)
}

/// Data centre bridging of each port, which only Ethernet has.
pub(super) const DCB: Need = Need::Port(|port| port.dcb().is_some(), "data centre bridging of its ports");

/// A host's number of something, if it is not the usual one.
pub(super) fn counted(
    host: &str,
    count: usize,
    words: &str,
    usual: Option<&Usual<usize>>,
    remedy: Entry,
    fact: &str,
) -> Option<Found> {
    let usual = usual.filter(|usual| usual.value != count)?;
    let severity = usual.severity(if count < usual.value { Failure } else { Notice });
    let what = format!("{count} {words}, {}", usual.words(usize::to_string));
    Some(Found::host(severity, host, what, remedy).usual(fact, count, usual))
}

/// Severity and words of a value that is not the usual one. The design of the cluster is no fault: a rail of storage or of another network is
/// the same on every host.
pub(super) fn departure<T: Clone + PartialOrd>(
    usual: &Usual<T>,
    is_same_everywhere: bool,
    what: String,
) -> (Severity, String) {
    match is_same_everywhere && !usual.wanted {
        true => (Notice, format!("{what} and this one the same on every host")),
        false => (usual.severity(Warning), what),
    }
}

pub(super) fn of_interface(remedy: Entry, port: &Port<'_>, beside: &[(&'static str, &str)]) -> Remedy {
    let interface = port.interface.map(|interface| ("interface", &*interface.name));
    remedy.with(beside.iter().copied().chain(interface))
}

pub(super) fn at_address(remedy: Entry, pci: Option<&str>) -> Remedy {
    remedy.with(pci.map(|pci| ("pci", pci)))
}
