use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashMap},
    fmt,
};

use railgauge_model::plan::{
    Plan,
    model::{Launcher, Test, Wanted},
    per_end::PerEnd,
};
use railgauge_wire::{
    Carrier, Dcb, Gpu, GpuPath, HostFacts, Interface, Memory, NanosecondsI64, RdmaDevice, RdmaPort, Transport,
    facts::port_name, remedy::Remedy,
};

use super::{finding::Found, observed::Severity};

/// What is known of the hosts that answered. The facts may be borrowed: those of 10,000 hosts take 100 MB.
#[derive(Debug, Clone)]
pub struct Cluster<F = HostFacts> {
    pub facts: BTreeMap<String, F>,
    /// Wall clock of a host minus the controller's, in nanoseconds, where it was read.
    pub clocks: BTreeMap<String, NanosecondsI64>,
}

pub(super) type Seen<'a> = Cluster<&'a HostFacts>;

impl<F> Default for Cluster<F> {
    fn default() -> Self {
        Self { facts: BTreeMap::new(), clocks: BTreeMap::new() }
    }
}

impl<F: Borrow<HostFacts>> Cluster<F> {
    pub(super) fn seen(&self) -> Seen<'_> {
        let facts = self.facts.iter().map(|(host, facts)| (host.clone(), facts.borrow()));
        Cluster { facts: facts.collect(), clocks: self.clocks.clone() }
    }
}

pub(super) struct Scene<'a> {
    pub plan: &'a Plan,
    pub cluster: &'a Seen<'a>,
    ports: Vec<Port<'a>>,
    unused: Vec<Port<'a>>,
    whole: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Port<'a> {
    pub host: &'a str,
    pub facts: &'a HostFacts,
    pub device: &'a RdmaDevice,
    pub port: &'a RdmaPort,
    pub interface: Option<&'a Interface>,
    pub member: Option<&'a str>,
}

impl<'a> Port<'a> {
    /// Its physical ports: settings of an Ethernet interface are those of the members of a bond.
    pub(super) fn wires(self) -> Vec<Self> {
        if self.port.members.is_empty() {
            return vec![self];
        }
        let of_member =
            |name: &'a String| Self { interface: self.facts.interface(name), member: Some(name.as_str()), ..self };
        self.port.members.iter().map(of_member).collect()
    }

    pub(super) fn found(&self, severity: Severity, what: impl fmt::Display, remedy: impl Into<Remedy>) -> Found {
        Found::host(severity, self.host, self.told(what), remedy).device(self.name())
    }

    /// Of its device, whatever its number.
    pub(super) fn of_device(&self, severity: Severity, what: impl Into<String>, remedy: impl Into<Remedy>) -> Found {
        Found::host(severity, self.host, what, remedy).device(self.device.name.clone())
    }

    pub(super) fn dcb(&self) -> Option<&'a Dcb> {
        self.interface?.dcb.as_ref()
    }

    pub(super) fn told(&self, what: impl fmt::Display) -> String {
        match (self.member, &self.port.netdev) {
            (Some(member), Some(bond)) => format!("{member} of {bond}: {what}"),
            (Some(member), None) => format!("{member}: {what}"),
            (None, _) => what.to_string(),
        }
    }

    pub(super) fn name(&self) -> String {
        match self.port.number {
            1 => self.device.name.clone(),
            number => format!("{}:{number}", self.device.name),
        }
    }

    /// Whether it is RDMA over Ethernet with InfiniBand's transport.
    pub(super) fn is_roce(&self) -> bool {
        self.port.link_layer.as_deref() == Some("Ethernet") && !self.is_iwarp()
    }

    /// Whether it is RDMA over TCP, or a device that is used like it (eRDMA).
    pub(super) fn is_iwarp(&self) -> bool {
        self.device.kind.as_deref() == Some("RNIC")
    }

    /// As `[preflight]` names it.
    pub(super) fn iommu_mode(&self) -> Option<&'static str> {
        match self.device.function.iommu.as_deref() {
            Some("identity") => Some("passthrough"),
            Some(_) => Some("translated"),
            None if self.facts.iommus == 0 => Some("off"),
            None => None,
        }
    }

    pub(super) fn is_infiniband(&self) -> bool {
        self.port.link_layer.as_deref() == Some("InfiniBand")
    }

    pub(super) fn is_hardware(&self) -> bool {
        !self.device.software
    }
}

#[derive(Clone, Copy)]
pub(super) struct Card<'a> {
    pub host: &'a str,
    pub gpu: &'a Gpu,
}

impl Card<'_> {
    pub(super) fn name(self) -> String {
        format!("GPU {}", self.gpu.index)
    }

    pub(super) fn found(self, severity: Severity, what: impl Into<String>, remedy: impl Into<Remedy>) -> Found {
        Found::host(severity, self.host, what, remedy).device(self.name())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    Slurm,
    Pod,
    Container,
    Machine,
}

impl<'a> Scene<'a> {
    pub(super) fn around(&self, facts: &HostFacts) -> Around {
        match (&self.plan.launch.via, facts.surroundings.container.as_deref()) {
            (Launcher::Slurm(_), _) => Around::Slurm,
            (Launcher::Kubectl(_), _) | (_, Some("kubernetes")) => Around::Pod,
            (Launcher::Podman | Launcher::Docker, _) | (_, Some(_)) => Around::Container,
            _ => Around::Machine,
        }
    }

    /// Finds the ports that the plan uses: those it names, else all; none if no test can use RDMA.
    pub(super) fn new(plan: &'a Plan, cluster: &'a Seen<'a>) -> Self {
        let uses = |test: &Test| matches!(test.transport, Transport::Verbs | Transport::Nccl | Transport::Nic);
        let ports = if plan.tests.iter().any(uses) { all_ports(plan, cluster) } else { Vec::new() };
        let (ports, unused) = ports.into_iter().partition(|port| is_used(plan, cluster, port));
        Self { plan, cluster, ports, unused, whole: false }
    }

    /// As if every device were used: for escalated checks, which ignore what the tests use.
    pub(super) fn whole(plan: &'a Plan, cluster: &'a Seen<'a>) -> Self {
        Self { plan, cluster, ports: all_ports(plan, cluster), unused: Vec::new(), whole: true }
    }

    pub(super) fn ports(&self) -> impl Iterator<Item = Port<'a>> {
        self.ports.iter().copied()
    }

    pub(super) fn wires(&self) -> impl Iterator<Item = Port<'a>> {
        self.ports().flat_map(Port::wires)
    }

    /// Interfaces of hardware that carries RDMA over Ethernet.
    pub(super) fn roce(&self) -> impl Iterator<Item = Port<'a>> {
        self.wires().filter(|port| port.is_roce() && port.is_hardware())
    }

    /// RDMA ports that the plan could use but a run does not: down here and on most hosts, or of a device that cannot be opened.
    pub(super) fn unused(&self) -> impl Iterator<Item = Port<'a>> {
        self.unused.iter().copied()
    }

    pub(super) fn devices(&self) -> impl Iterator<Item = Port<'a>> {
        let mut last = ("", "");
        self.ports().filter(move |port| {
            let this = (port.host, port.device.name.as_str());
            std::mem::replace(&mut last, this) != this
        })
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = (&'a str, &'a HostFacts)> {
        self.cluster.facts.iter().map(|(host, facts)| (host.as_str(), *facts))
    }

    pub(super) fn gpus(&self) -> impl Iterator<Item = Card<'a>> {
        let used = self.needs_gpus();
        self.hosts()
            .filter(move |_| used)
            .flat_map(|(host, facts)| facts.gpus.iter().map(move |gpu| Card { host, gpu }))
    }

    pub(super) fn wanted(&self) -> &'a Wanted {
        &self.plan.preflight.wanted
    }

    pub(super) fn has(&self, test: impl Fn(&Test) -> bool) -> bool {
        self.plan.tests.iter().any(test)
    }

    pub(super) fn needs_rdma(&self) -> bool {
        let over_ib =
            |test: &Test| test.collective.as_ref().is_some_and(|join| join.carried_by == Some(Carrier::NcclIb));
        self.whole || self.has(|test| matches!(test.transport, Transport::Verbs | Transport::Nic) || over_ib(test))
    }

    pub(super) fn needs_gpus(&self) -> bool {
        let of_all = |test: &Test| test.memory == PerEnd::same(Memory::Cuda);
        self.whole || self.has(|test| of_all(test) || test.transport == Transport::Nccl)
    }

    pub(super) fn may_use_gpudirect(&self) -> bool {
        let staged = |test: &Test| matches!(test.gpu_path, Some(GpuPath::Staged | GpuPath::None));
        self.whole || self.has(|test| test.memory.has_gpu() && test.transport != Transport::Tcp && !staged(test))
    }
}

fn all_ports<'a>(plan: &Plan, cluster: &'a Seen<'a>) -> Vec<Port<'a>> {
    let named: HashMap<&str, &[String]> =
        plan.hosts.iter().rev().map(|host| (host.name.as_str(), host.devices.as_slice())).collect();
    let of = |(host, facts): (&'a String, &&'a HostFacts)| {
        let named = named.get(host.as_str()).copied().unwrap_or_default();
        ports_of(host, facts).filter(move |port| is_named(port, named))
    };
    cluster.facts.iter().flat_map(of).collect()
}

/// The ports of a host that a run of the plan uses, whatever its tests use: those it names, else all but those that are down on most hosts.
pub(super) fn ports_of_plan<'a>(plan: &Plan, host: &'a str, facts: &'a HostFacts, cluster: &Seen<'_>) -> Vec<Port<'a>> {
    let named = names(plan, host);
    ports_of(host, facts).filter(|port| is_named(port, named) && is_used(plan, cluster, port)).collect()
}

fn names<'p>(plan: &'p Plan, host: &str) -> &'p [String] {
    plan.hosts.iter().find(|known| known.name == host).map(|known| known.devices.as_slice()).unwrap_or_default()
}

/// Whether a run uses a port. A plan without names uses the active ones of devices that can be opened. A port that is down counts as used
/// unless it is down on most hosts.
fn is_used(plan: &Plan, cluster: &Seen<'_>, port: &Port<'_>) -> bool {
    // The port first: finding a host in a large plan is slow.
    let left_out = port.facts.leaves_out(port.device);
    if !(left_out || is_down(port.port)) || !names(plan, port.host).is_empty() {
        return true;
    }
    if left_out {
        return false;
    }
    let fellow = |facts: &&HostFacts| {
        let device = facts.rdma.iter().find(|device| device.name == port.device.name)?;
        device.ports.iter().find(|fellow| fellow.number == port.port.number).map(is_down)
    };
    let fellows: Vec<bool> = cluster.facts.values().filter_map(fellow).collect();
    fellows.iter().filter(|down| **down).count() * 2 <= fellows.len()
}

fn is_down(port: &RdmaPort) -> bool {
    port.state.as_deref().is_some_and(|state| state != "ACTIVE")
}

fn ports_of<'a>(host: &'a str, facts: &'a HostFacts) -> impl Iterator<Item = Port<'a>> {
    facts.rdma.iter().flat_map(move |device| {
        device.ports.iter().map(move |port| {
            let interface = port.netdev.as_deref().and_then(|name| facts.interface(name));
            Port { host, facts, device, port, interface, member: None }
        })
    })
}

/// Whether the plan names a port, or none at all. `mlx5_0` and `mlx5_0:1` are the same.
fn is_named(port: &Port<'_>, names: &[String]) -> bool {
    let name = |text: &String| {
        let (name, number) = port_name(text);
        name == port.device.name && number.unwrap_or(1) == port.port.number
    };
    names.is_empty() || names.iter().any(name)
}
