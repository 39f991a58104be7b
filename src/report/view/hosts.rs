//! What ran where.

use railgauge_wire::facts::{HostFacts, RdmaDevice};
use serde::Serialize;

use crate::analysis::{
    journal::{HostUp, Journal},
    results::of_host,
    words::amount,
};

/// One host of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostView {
    /// Name in the plan.
    pub name: String,
    /// Why it was lost; empty if it was not.
    pub lost: String,
    /// Operating system and kernel.
    pub system: String,
    /// Processor and memory.
    pub machine: String,
    /// RDMA devices, one text each.
    pub devices: Vec<String>,
    /// Libraries, one text each.
    pub libraries: Vec<String>,
    /// Clock against the controller's, with its uncertainty.
    pub clock: String,
    /// What could not be read.
    pub unreadable: Vec<String>,
}

/// Every host of the plan, in its order.
pub(super) fn hosts(journal: &Journal) -> Vec<HostView> {
    let blank = |name: &str| HostView {
        name: name.to_owned(),
        lost: journal.lost.get(name).map(|failure| of_host(name, failure)).unwrap_or_default(),
        system: String::new(),
        machine: String::new(),
        devices: Vec::new(),
        libraries: Vec::new(),
        clock: String::new(),
        unreadable: Vec::new(),
    };
    let host = |name: &str| match journal.hosts.get(name) {
        Some(up) => known(blank(name), up),
        None => blank(name),
    };
    journal.plan.hosts.iter().map(|planned| host(&planned.name)).collect()
}

fn known(blank: HostView, HostUp { facts, clock, .. }: &HostUp) -> HostView {
    HostView {
        system: join([facts.os.clone(), Some(format!("kernel {}", facts.kernel)), Some(facts.architecture.clone())]),
        machine: machine(facts),
        devices: facts.rdma.iter().flat_map(device).collect(),
        libraries: facts.libraries.iter().map(|(name, found)| format!("{name}: {found}")).collect(),
        clock: clock.map_or_else(String::new, |(offset, half)| {
            format!("{:+.3} ms ± {:.3} ms", offset as f64 / 1e6, half as f64 / 1e6)
        }),
        unreadable: facts.unreadable.iter().map(|(what, why)| format!("{what}: {why}")).collect(),
        ..blank
    }
}

fn machine(facts: &HostFacts) -> String {
    let cpu = &facts.cpu;
    join([
        cpu.model.clone(),
        (cpu.threads > 0).then(|| format!("{} threads", cpu.threads)),
        (cpu.numa_nodes > 1).then(|| format!("{} NUMA nodes", cpu.numa_nodes)),
        cpu.governor.as_ref().map(|governor| format!("governor {governor}")),
        facts.memory_bytes.map(amount),
    ])
}

/// One text per port: `mlx5_0: mlx5_core, firmware 28.41.1000, Ethernet 200 Gb/s, MTU 4096, ACTIVE`.
fn device(device: &RdmaDevice) -> Vec<String> {
    let kind = if device.software { " (software)" } else { "" };
    let common = [
        device.driver.as_ref().map(|driver| format!("{driver}{kind}")),
        device.firmware.as_ref().map(|firmware| format!("firmware {firmware}")),
        device.pcie.map(|(speed, width)| format!("PCIe {speed} GT/s x{width}")),
    ];
    if device.ports.is_empty() {
        return vec![format!("{}: {}", device.name, join(common))];
    }
    let port = |port: &railgauge_wire::facts::RdmaPort| {
        let name =
            if device.ports.len() > 1 { format!("{}:{}", device.name, port.number) } else { device.name.clone() };
        let words = common.clone().into_iter().chain([
            port.link_layer.clone(),
            port.rate_gbps.map(|rate| format!("{rate} Gb/s")),
            port.mtu.map(|mtu| format!("MTU {mtu}")),
            port.state.clone(),
        ]);
        format!("{name}: {}", join(words))
    };
    device.ports.iter().map(port).collect()
}

fn join(words: impl IntoIterator<Item = Option<String>>) -> String {
    words.into_iter().flatten().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}
