//! Which devices the rails of a host are.

use railgauge_model::plan::model::Host;
use railgauge_wire::{facts::HostFacts, terms::Transport};

/// Devices of a host for one fabric, in rail order: those the plan names, else those the host offers.
pub(crate) fn devices(host: &Host, facts: Option<&HostFacts>, transport: Transport) -> Vec<String> {
    let named = match transport {
        Transport::Verbs => &host.devices,
        Transport::Tcp => &host.tcp,
        Transport::Nccl => return Vec::new(),
    };
    match (named.is_empty(), transport, facts) {
        (false, ..) => named.clone(),
        (true, Transport::Verbs, Some(facts)) => active_ports(facts),
        _ => Vec::new(),
    }
}

/// Every active port of every RDMA device, `mlx5_0` or `mlx5_0:2`.
fn active_ports(facts: &HostFacts) -> Vec<String> {
    let ports = facts.rdma.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    ports
        .filter(|(_, port)| port.state.as_deref().is_some_and(|state| state.contains("ACTIVE")))
        .map(|(device, port)| match port.number {
            1 => device.name.clone(),
            n => format!("{}:{n}", device.name),
        })
        .collect()
}
