//! What really carried the bytes: the first statement of the report, without euphemism.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_analysis::case::CaseResult;
use railgauge_model::journal::event::LinkRecord;
use railgauge_wire::{Carrier, GpuPath, LinkLayer};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CarrierGroup {
    pub words: String,
    /// What its numbers do not show; empty for real hardware.
    pub caution: String,
    pub tests: Vec<String>,
    pub cases: usize,
}

type CarrierKind = (Carrier, LinkLayer, GpuPath, bool);

fn kind(link: &LinkRecord) -> CarrierKind {
    (link.transport, link.link_layer, link.gpu_path, link.software)
}

/// RDMA on hardware first.
pub(super) fn carriers(results: &[CaseResult<'_>]) -> Vec<CarrierGroup> {
    let mut kinds: BTreeMap<CarrierKind, CarrierGroup> = BTreeMap::new();
    for result in results.iter().filter(|result| !result.samples.is_empty()) {
        let Some(link) = result.link else { continue };
        let carrier = kinds.entry(kind(link)).or_insert_with(|| CarrierGroup {
            words: words(kind(link)),
            caution: caution(kind(link)),
            tests: Vec::new(),
            cases: 0,
        });
        carrier.cases += 1;
        if !carrier.tests.iter().any(|test| **test == *result.case.test) {
            carrier.tests.push(result.case.test.to_string());
        }
    }
    let mut carriers: Vec<CarrierGroup> = kinds.into_values().collect();
    carriers.sort_by_key(|carrier| !carrier.caution.is_empty());
    carriers
}

/// In a few words; empty if nothing was measured.
pub(super) fn of_test(results: &[&CaseResult<'_>]) -> String {
    let links = results.iter().filter(|result| !result.samples.is_empty()).filter_map(|result| result.link);
    let kinds: BTreeSet<CarrierKind> = links.map(kind).collect();
    kinds.into_iter().map(words).collect::<Vec<_>>().join(" and ")
}

fn words((transport, link_layer, gpu_path, software): CarrierKind) -> String {
    let layer = match link_layer {
        LinkLayer::Infiniband => "InfiniBand",
        LinkLayer::RoceV1 => "RoCE v1",
        LinkLayer::RoceV2 => "RoCE v2",
        LinkLayer::Iwarp => "iWARP",
        LinkLayer::Ethernet => "Ethernet",
        LinkLayer::Loopback => "the loopback of one host",
        LinkLayer::Nvlink => "NVLink",
        LinkLayer::Xgmi => "xGMI",
        LinkLayer::Pcie => "PCIe",
        LinkLayer::Memory => "memory",
        LinkLayer::Unknown => "an unknown link layer",
    };
    let service = |name: &str| match (software, link_layer) {
        (true, LinkLayer::Iwarp) => format!("Soft-iWARP ({name} queue pairs)"),
        (true, _) => format!("Soft-RoCE ({name} queue pairs, {layer} packets)"),
        (false, _) => format!("RDMA over {layer} ({name} queue pairs)"),
    };
    let words = match transport {
        Carrier::VerbsRc => service("reliable connected"),
        Carrier::VerbsUc => service("unreliable connected"),
        Carrier::VerbsUd => service("unreliable datagram"),
        Carrier::Tcp => format!("TCP sockets over {layer}"),
        Carrier::NcclIb => format!("NCCL over {layer} verbs"),
        Carrier::NcclPlugin => "NCCL over a network plugin".to_owned(),
        Carrier::NcclSocket => format!("NCCL over sockets ({layer})"),
        Carrier::NcclP2p => format!("NCCL peer to peer ({layer})"),
        Carrier::NcclShm => "NCCL through shared memory".to_owned(),
        Carrier::Cpu => "Processors within a host".to_owned(),
        Carrier::CudaCopy if link_layer == LinkLayer::Memory => "Copies within the memory of a GPU".to_owned(),
        Carrier::CudaKernel => "Kernels of GPUs in their own memory".to_owned(),
        Carrier::Cublaslt => "Matrix products of GPUs by cuBLASLt".to_owned(),
        Carrier::CudaCopy => format!("Copies of GPUs over {layer}"),
        Carrier::VerbsLoopback if software => "Soft-RoCE (queue pairs of one port, connected to each other)".to_owned(),
        Carrier::VerbsLoopback => format!("RDMA through a NIC and back over {layer}"),
        Carrier::HipCopy if link_layer == LinkLayer::Memory => "Copies within the memory of an AMD GPU".to_owned(),
        Carrier::HipKernel => "AMD GPU kernels in their own memory".to_owned(),
        Carrier::Hipblaslt => "AMD GPU matrix products by hipBLASLt".to_owned(),
        Carrier::HipCopy => format!("AMD GPU copies over {layer}"),
    };
    match gpu_path {
        GpuPath::GdrDmabuf => format!("{words}, GPUDirect RDMA by dma-buf"),
        GpuPath::GdrPeermem => format!("{words}, GPUDirect RDMA by nvidia-peermem"),
        GpuPath::Gdr => format!("{words}, GPUDirect RDMA"),
        GpuPath::Staged => format!("{words}, GPU memory copied through host memory"),
        GpuPath::None => words,
    }
}

fn caution((transport, link_layer, _, software): CarrierKind) -> String {
    match transport {
        Carrier::Tcp => "TCP, not RDMA: the kernel's network stack, as a baseline".to_owned(),
        Carrier::NcclSocket => "Sockets, not RDMA".to_owned(),
        _ if software && link_layer == LinkLayer::Iwarp => {
            "Soft-iWARP: emulated in software; the results do not apply to NIC hardware".to_owned()
        }
        _ if software => "Soft-RoCE: emulated in software; the results do not apply to NIC hardware".to_owned(),
        _ => String::new(),
    }
}
