//! The devices of a host that are its rails.

use railgauge_wire::{HostFacts, Transport};

use crate::plan::Host;

/// In rail order: those the plan names, else those the host offers.
pub fn devices(host: &Host, facts: Option<&HostFacts>, transport: Transport) -> Vec<String> {
    let named = match transport {
        Transport::Verbs | Transport::Nic => &host.devices,
        Transport::Tcp => &host.tcp,
        Transport::Nccl => return Vec::new(),
        Transport::Cpu | Transport::Gpu => return facts.map(|facts| parts(facts, transport)).unwrap_or_default(),
    };
    match (named.is_empty(), transport, facts) {
        (false, ..) => named.clone(),
        (true, Transport::Verbs | Transport::Nic, Some(facts)) => active_ports(facts),
        _ => Vec::new(),
    }
}

/// Parts of a host for tests within it: NUMA nodes with processors, by number, or GPUs by PCI address, which is empty where unknown.
pub fn parts(facts: &HostFacts, transport: Transport) -> Vec<String> {
    match transport {
        Transport::Gpu => facts.gpus.iter().map(|gpu| gpu.pci.clone().unwrap_or_default()).collect(),
        Transport::Cpu => facts.cpu.nodes().iter().map(u32::to_string).collect(),
        Transport::Verbs | Transport::Tcp | Transport::Nccl | Transport::Nic => Vec::new(),
    }
}

/// Every active port of every RDMA device that can be opened, `mlx5_0` or `mlx5_0:2`.
pub fn active_ports(facts: &HostFacts) -> Vec<String> {
    let devices = facts.rdma.iter().filter(|device| !facts.leaves_out(device));
    let ports = devices.flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    ports
        .filter(|(_, port)| port.is_active())
        .map(|(device, port)| match port.number {
            1 => device.name.clone(),
            n => format!("{}:{n}", device.name),
        })
        .collect()
}
