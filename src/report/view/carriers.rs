//! What really carried the bytes, said first and without flattery.

use std::collections::BTreeMap;

use railgauge_wire::terms::{GpuPath, LinkLayer, Transport};
use serde::Serialize;

use crate::{analysis::results::CaseResult, run::event::LinkRecord};

/// One kind of transport that was seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Carrier {
    /// What it is.
    pub words: String,
    /// What its numbers do not say; empty for real hardware.
    pub caution: String,
    /// Tests it carried.
    pub tests: Vec<String>,
    /// Cases it carried.
    pub cases: usize,
}

/// Every kind of transport of the measured cases, RDMA on hardware first.
pub(super) fn carriers(results: &[CaseResult<'_>]) -> Vec<Carrier> {
    let mut kinds: BTreeMap<(String, String), (Vec<String>, usize)> = BTreeMap::new();
    for result in results.iter().filter(|result| !result.samples.is_empty()) {
        let Some(link) = result.link else { continue };
        let (tests, cases) = kinds.entry((caution(link), words(link))).or_default();
        *cases += 1;
        if tests.last() != Some(&result.case.test) && !tests.contains(&result.case.test) {
            tests.push(result.case.test.clone());
        }
    }
    kinds.into_iter().map(|((caution, words), (tests, cases))| Carrier { words, caution, tests, cases }).collect()
}

/// What carried the bytes of a link, by the field's names.
fn words(link: &LinkRecord) -> String {
    let layer = match link.link_layer {
        LinkLayer::Infiniband => "InfiniBand",
        LinkLayer::RoceV1 => "RoCE v1",
        LinkLayer::RoceV2 => "RoCE v2",
        LinkLayer::Iwarp => "iWARP",
        LinkLayer::Ethernet => "Ethernet",
        LinkLayer::Loopback => "the loopback of one host",
        LinkLayer::Nvlink => "NVLink",
        LinkLayer::Pcie => "PCIe",
    };
    let service = |name: &str| match (link.software, link.link_layer) {
        (true, LinkLayer::Iwarp) => format!("Soft-iWARP ({name} queue pairs)"),
        (true, _) => format!("Soft-RoCE ({name} queue pairs, {layer} packets)"),
        (false, _) => format!("RDMA over {layer} ({name} queue pairs)"),
    };
    let words = match link.transport {
        Transport::VerbsRc => service("reliable connected"),
        Transport::VerbsUc => service("unreliable connected"),
        Transport::VerbsUd => service("unreliable datagram"),
        Transport::Tcp => format!("TCP sockets over {layer}"),
        Transport::NcclIb => format!("NCCL over {layer} verbs"),
        Transport::NcclSocket => format!("NCCL over sockets ({layer})"),
        Transport::NcclP2p => format!("NCCL peer to peer ({layer})"),
        Transport::NcclShm => "NCCL through shared memory".to_owned(),
    };
    match link.gpu_path {
        GpuPath::GdrDmabuf => format!("{words}, GPUDirect RDMA by dma-buf"),
        GpuPath::GdrPeermem => format!("{words}, GPUDirect RDMA by nvidia-peermem"),
        GpuPath::Staged => format!("{words}, GPU memory copied through host memory"),
        GpuPath::None => words,
    }
}

/// What its numbers do not say.
fn caution(link: &LinkRecord) -> String {
    match link.transport {
        Transport::Tcp => "TCP, not RDMA: the kernel's network stack, as a baseline".to_owned(),
        Transport::NcclSocket => "sockets, not RDMA".to_owned(),
        _ if link.software && link.link_layer == LinkLayer::Iwarp => {
            "Soft-iWARP: emulated in software, says nothing about NIC hardware".to_owned()
        }
        _ if link.software => "Soft-RoCE: emulated in software, says nothing about NIC hardware".to_owned(),
        _ => String::new(),
    }
}
