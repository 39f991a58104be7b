//! What checks look at: the plan, and every host's facts with the devices that the plan uses.

use railgauge_model::plan::{
    Plan,
    model::{Test, Wanted},
};
use railgauge_wire::{
    facts::{Gpu, HostFacts, Interface, RdmaDevice, RdmaPort},
    terms::{Carrier, GpuPath, Memory, Transport},
};

use super::Cluster;

/// A plan and its hosts.
pub(super) struct Scene<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// What is known of the hosts.
    pub cluster: &'a Cluster,
    /// Every RDMA port the plan uses.
    ports: Vec<Port<'a>>,
    /// Whether everything is looked at, also what no test uses.
    whole: bool,
}

/// An RDMA port the plan uses.
#[derive(Clone, Copy)]
pub(super) struct Port<'a> {
    /// The host's name in the plan.
    pub host: &'a str,
    /// The host.
    pub facts: &'a HostFacts,
    /// The device.
    pub device: &'a RdmaDevice,
    /// The port.
    pub port: &'a RdmaPort,
    /// The network interface behind it.
    pub interface: Option<&'a Interface>,
}

impl Port<'_> {
    /// As plans name it: `mlx5_0`, `mlx5_0:2`.
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

    /// Whether it is InfiniBand.
    pub(super) fn is_infiniband(&self) -> bool {
        self.port.link_layer.as_deref() == Some("InfiniBand")
    }

    /// Whether the device is no program.
    pub(super) fn is_hardware(&self) -> bool {
        !self.device.software
    }
}

impl<'a> Scene<'a> {
    /// Finds the ports that the plan uses: those it names, else all; none if no test of it can use RDMA.
    pub(super) fn new(plan: &'a Plan, cluster: &'a Cluster) -> Self {
        let uses = |test: &Test| matches!(test.transport, Transport::Verbs | Transport::Nccl);
        let ports = if plan.tests.iter().any(uses) { all_ports(plan, cluster) } else { Vec::new() };
        Self { plan, cluster, ports, whole: false }
    }

    /// As if every device were used: for checks that the plan escalates, which are to look whatever its tests do.
    pub(super) fn whole(plan: &'a Plan, cluster: &'a Cluster) -> Self {
        Self { plan, cluster, ports: all_ports(plan, cluster), whole: true }
    }

    /// Every RDMA port the plan uses, by host.
    pub(super) fn ports(&self) -> impl Iterator<Item = Port<'a>> {
        self.ports.iter().copied()
    }

    /// The first ports of the devices the plan uses: one for each device.
    pub(super) fn devices(&self) -> impl Iterator<Item = Port<'a>> {
        let mut last = ("", "");
        self.ports().filter(move |port| {
            let this = (port.host, port.device.name.as_str());
            std::mem::replace(&mut last, this) != this
        })
    }

    /// Every host that answered.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (&'a str, &'a HostFacts)> {
        self.cluster.facts.iter().map(|(host, facts)| (host.as_str(), facts))
    }

    /// Every GPU, if the plan uses any.
    pub(super) fn gpus(&self) -> impl Iterator<Item = (&'a str, &'a Gpu)> {
        let used = self.needs_gpus();
        self.hosts().filter(move |_| used).flat_map(|(host, facts)| facts.gpus.iter().map(move |gpu| (host, gpu)))
    }

    /// What the plan wants.
    pub(super) fn wanted(&self) -> &'a Wanted {
        &self.plan.preflight.wanted
    }

    /// Whether any test is such a one.
    pub(super) fn has(&self, test: impl Fn(&Test) -> bool) -> bool {
        self.plan.tests.iter().any(test)
    }

    /// Whether a test cannot do without RDMA.
    pub(super) fn needs_rdma(&self) -> bool {
        let over_ib =
            |test: &Test| test.collective.as_ref().is_some_and(|join| join.carried_by == Some(Carrier::NcclIb));
        self.whole || self.has(|test| test.transport == Transport::Verbs || over_ib(test))
    }

    /// Whether a test uses GPUs.
    pub(super) fn needs_gpus(&self) -> bool {
        self.whole || self.has(|test| test.memory == Memory::Cuda || test.transport == Transport::Nccl)
    }

    /// Whether a NIC may reach GPU memory by itself in a test.
    pub(super) fn may_use_gpudirect(&self) -> bool {
        let staged = |test: &Test| matches!(test.gpu_path, Some(GpuPath::Staged | GpuPath::None));
        self.whole || self.has(|test| test.memory == Memory::Cuda && test.transport != Transport::Tcp && !staged(test))
    }
}

fn all_ports<'a>(plan: &Plan, cluster: &'a Cluster) -> Vec<Port<'a>> {
    cluster.facts.iter().flat_map(|(host, facts)| ports_of_plan(plan, host, facts)).collect()
}

/// The ports of a host that the plan can use, whatever its tests use: those it names, else all.
pub(super) fn ports_of_plan<'a>(plan: &Plan, host: &'a str, facts: &'a HostFacts) -> Vec<Port<'a>> {
    let named = plan.hosts.iter().find(|known| known.name == host).map(|known| known.devices.as_slice());
    ports_of(host, facts).filter(|port| is_named(port, named.unwrap_or_default())).collect()
}

fn ports_of<'a>(host: &'a str, facts: &'a HostFacts) -> impl Iterator<Item = Port<'a>> {
    facts.rdma.iter().flat_map(move |device| {
        device.ports.iter().map(move |port| {
            let interface = port.netdev.as_deref().and_then(|name| facts.interface(name));
            Port { host, facts, device, port, interface }
        })
    })
}

/// Whether the plan names a port, or none at all. `mlx5_0` and `mlx5_0:1` are the same.
fn is_named(port: &Port<'_>, names: &[String]) -> bool {
    let name = |text: &String| match text.rsplit_once(':') {
        Some((name, number)) => name == port.device.name && number == port.port.number.to_string(),
        None => *text == port.device.name && port.port.number == 1,
    };
    names.is_empty() || names.iter().any(name)
}
