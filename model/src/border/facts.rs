//! Limits on how much of everything a host reports: the facts multiply into the cases of a run.

use railgauge_wire::{HostFacts, MOST_NODES, neighbours};

/// Large machines have some twenty RDMA ports, and some hundreds with the virtual functions of containers.
pub const PORTS: usize = 256;
/// The largest machines on sale have sixteen GPUs; partitions of a GPU do not count.
pub const GPUS: usize = 256;
pub const INTERFACES: usize = 8192;

pub fn too_many(facts: &HostFacts) -> Option<String> {
    let ports = facts.rdma.iter().map(|device| device.ports.len()).sum();
    let parts = [
        (facts.rdma.len(), PORTS, "RDMA devices"),
        (ports, PORTS, "RDMA ports"),
        (facts.gpus.len(), GPUS, "GPUs"),
        (facts.cpu.nodes_with_processors.len(), MOST_NODES as usize, "NUMA nodes"),
        (facts.gpu_distances.len(), PORTS * GPUS, "distances between GPUs and RDMA devices"),
        (facts.interfaces.len(), INTERFACES, "network interfaces"),
        (facts.neighbours.as_ref().map_or(0, Vec::len), neighbours::MOST, "neighbours of interfaces"),
        (facts.parts.cards.len(), INTERFACES, "network cards"),
        (facts.parts.modules.len(), INTERFACES, "modules of ports"),
    ];
    let (found, most, what) = parts.into_iter().find(|(found, most, _)| found > most)?;
    Some(format!("it reports {found} {what}, and at most {most} are taken"))
}
