use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{
    terms::{Carrier, GpuPath, LinkLayer, Memory, Precision, Service, Transport},
    unit::{Bytes, GigabitsPerSecond},
};

/// Both ends of a pair use the same number.
pub type LinkId = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    Initiator,
    /// The target; active only where the operation needs it.
    Responder,
}

crate::words! {
    #[derive(Default)]
    Completion {
        /// Busy polling (perftest's default).
        #[default]
        Poll = "poll",
        /// Sleeping on the completion channel (perftest `-e`).
        Events = "events",
    }

    #[derive(Default)]
    Footprint {
        /// Stays in the last-level cache, as perftest does.
        #[default]
        Cache = "cache",
        /// At least four times the last-level cache.
        Dram = "dram",
    }

    #[derive(Default)]
    Joining {
        /// By link layer: `rdma-cm` for iWARP, `exchange` for the rest.
        #[default]
        Auto = "auto",
        Exchange = "exchange",
        RdmaCm = "rdma-cm",
    }

    /// How the target of an RDMA WRITE detects its arrival in a latency loop. Times of the two ways are not comparable: they use different
    /// packets, and with adaptive routing different paths.
    WriteLatency {
        /// It polls the last byte in memory (perftest `ib_write_lat`).
        Poll = "poll",
        /// The write carries immediate data, which completes a receive (perftest `--write_with_imm`).
        Immediate = "immediate",
    }

    /// What the devices guarantee about the order in which the bytes of an RDMA WRITE become visible, where the last one is polled.
    WriteOrder {
        /// The last byte is written last (`ibv_query_qp_data_in_order`, asked of the queue pair in RTS).
        Promised = "promised",
        /// No guarantee: the loop checks the first messages itself. perftest polls all the same.
        NotPromised = "not-promised",
        /// The library cannot be asked (older than rdma-core 36).
        Unknown = "unknown",
    }
}

impl WriteOrder {
    /// Guaranteed only if both ends guarantee it.
    pub fn both(self, other: Self) -> Self {
        match (self, other) {
            (Self::Promised, Self::Promised) => Self::Promised,
            (Self::NotPromised, _) | (_, Self::NotPromised) => Self::NotPromised,
            _ => Self::Unknown,
        }
    }
}

/// Setting of a link of InfiniBand whose packets carry a global route header (40 bytes; InfiniBand Architecture Specification 8.3).
pub const GRH: &str = "grh";

/// Bytes of a cache line, and of the range that the footprint `cache` uses, as perftest does.
pub const LINE: u64 = 64;
pub const PAGE: u64 = 4096;

/// Bytes of a link's registered memory: two areas for each of one thread's queue pairs.
pub fn registered(qps: u32, max_size: u64, footprint: Footprint, last_level_cache: u64) -> u64 {
    2 * u64::from(qps.max(1)) * area(qps, max_size, footprint, last_level_cache)
}

/// Bytes of an area. With the footprint `dram`, all areas to send from, and all to receive into, are four times the cache.
pub fn area(qps: u32, max_size: u64, footprint: Footprint, last_level_cache: u64) -> u64 {
    let room = max_size.saturating_add(PAGE + LINE);
    let area = match footprint {
        Footprint::Cache => room,
        Footprint::Dram => room.max((4 * last_level_cache).div_ceil(u64::from(qps.max(1))).saturating_add(max_size)),
    };
    area.div_ceil(PAGE).saturating_mul(PAGE)
}

/// Default depth: perftest's `--tx-depth`.
pub const DEPTH: u32 = 128;

/// Settings of a plan. `None` means the agent's default; the answer to `Open` has the resolved values.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Knobs {
    /// Work requests in flight per queue pair (perftest `--tx-depth`), or sends per stream.
    pub depth: Option<u32>,
    /// Work requests posted at once (perftest `--post_list`).
    pub post_list: Option<u32>,
    /// One completion per this many work requests (perftest `--cq-mod`).
    pub signal_every: Option<u32>,
    /// Largest inline payload in bytes (perftest `--inline_size`).
    pub inline: Option<u32>,
    /// Outstanding reads and atomics (perftest `--outs`).
    pub outstanding_reads: Option<u8>,
    /// Path MTU in bytes (perftest `--mtu`).
    pub mtu: Option<u32>,
    /// GID index (perftest `--gid-index`, `NCCL_IB_GID_INDEX`).
    pub gid_index: Option<u8>,
    /// Partition key, without its highest bit (full or limited membership); its index is looked up in the port's table (`UCX_IB_PKEY`;
    /// perftest `--pkey_index` and `NCCL_IB_PKEY` take the index).
    pub pkey: Option<u16>,
    /// Traffic class byte, DSCP in its upper six bits (perftest `--tclass`, `NCCL_IB_TC`).
    pub traffic_class: Option<u8>,
    /// Service level (perftest `--sl`, `NCCL_IB_SL`).
    pub service_level: Option<u8>,
    /// Flow label of the first queue pair, counting up from there: varies RoCE v2 UDP source ports.
    pub flow_label: Option<u32>,
    /// Transport retries, 0 to 7 (`NCCL_IB_RETRY_CNT`). Default 6: Soft-RoCE takes 7 as endless.
    pub retry_count: Option<u8>,
    /// Local ACK timeout exponent, 4.096 µs × 2^n (perftest `--qp-timeout`, `NCCL_IB_TIMEOUT`).
    pub timeout: Option<u8>,
    /// PCIe relaxed ordering (`NCCL_IB_PCI_RELAXED_ORDERING`).
    pub relaxed_ordering: Option<bool>,
    /// Enhanced connection establishment (`NCCL_IB_ECE_ENABLE`; perftest has none without rdma_cm).
    pub ece: Option<bool>,
    /// Memory of GPUs by the NIC's second PCI function (perftest `--use_data_direct`, `NCCL_IB_DATA_DIRECT`).
    pub data_direct: Option<bool>,
    /// Buffers on huge pages (perftest `--use_hugepages`).
    pub huge_pages: Option<bool>,
    pub core: Option<u32>,
    pub completion: Option<Completion>,
    pub footprint: Option<Footprint>,
    /// Element type of matrix products. The plan's reader sets it in every such test, so that it is part of the test's settings.
    pub precision: Option<Precision>,
    /// The plan's reader sets it in every test of the latency of `write`, so that it is part of the test's settings; unused elsewhere.
    pub write_latency: Option<WriteLatency>,
    pub joining: Option<Joining>,
    /// Congestion control of TCP connections by its name in the kernel (iperf3 `-C`); the system's if `None`.
    pub congestion_control: Option<String>,
}

/// What an agent opens for its end of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSpec {
    pub role: Role,
    pub transport: Transport,
    pub service: Service,
    pub device: Option<String>,
    /// Port of the RDMA device, counted from 1.
    pub port: u8,
    /// Address for TCP to listen on or connect from; chosen from `device` if `None`.
    pub address: Option<String>,
    pub memory: Memory,
    pub gpu: Option<u32>,
    /// Required path of GPU memory; any if `None`.
    pub gpu_path: Option<GpuPath>,
    pub qps: u32,
    /// Threads that share the queue pairs, each with its own device context, completion queue and memory.
    pub threads: u32,
    pub max_size: Bytes,
    /// Secret of both ends, so that no stranger can join (TCP).
    pub token: String,
    /// Whether the link outlives breaks as jobs do: neither a port that goes down nor a silent peer ends it before the transport's own
    /// retries or the deadline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rides_out: bool,
    pub knobs: Knobs,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Endpoint {
    Verbs(VerbsEndpoint),
    Tcp(TcpEndpoint),
    /// One for each thread of a link of several.
    Several(Vec<Endpoint>),
}

/// What a peer needs to connect.
///
/// Every queue pair owns an equal share of the registered buffer, in the order of `qp_numbers`. Its first half is sent from and read by
/// the peer, its second half is received into and written by the peer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VerbsEndpoint {
    pub qp_numbers: Vec<u32>,
    pub psns: Vec<u32>,
    /// Local identifier; 0 on Ethernet.
    pub lid: u16,
    /// GID, as 32 hexadecimal digits.
    pub gid: String,
    /// GID type as in sysfs ("RoCE v2", "IB/RoCE v1").
    pub gid_type: String,
    pub mtu: u32,
    pub address: u64,
    pub length: Bytes,
    pub rkey: u32,
    /// Whether incoming writes may be polled: host memory without PCIe relaxed ordering.
    pub polled: bool,
    /// Whether packets must carry a global route header (`IBV_QPF_GRH_REQUIRED`).
    pub grh_required: bool,
    /// Partition key in use; `None` where the port has none (iWARP).
    pub pkey: Option<u16>,
    pub control: Option<ControlEndpoint>,
    /// What each of its queue pairs offers, if the plan asks for it.
    pub ece: Option<Ece>,
    /// Reads and atomics this side accepts at once.
    pub max_reads: u8,
    /// Queue key (datagrams only).
    pub qkey: u32,
    pub cm_port: Option<u16>,
    pub cm_address: Option<String>,
}

/// `struct ibv_ece` (`ibv_query_ece(3)`): functions of connections that the maker of a device has beyond the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[repr(C)]
pub struct Ece {
    pub vendor_id: u32,
    pub options: u32,
    pub comp_mask: u32,
}

/// A reliable connection alongside the measured queue pairs for readiness and credits, never measured bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlEndpoint {
    pub qp_number: u32,
    pub psn: u32,
    pub address: u64,
    pub rkey: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpEndpoint {
    /// Address to connect to, without a port.
    pub address: String,
    /// Port; 0 on the initiator.
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    pub endpoint: Endpoint,
    pub device: String,
    pub transport: Carrier,
    pub link_layer: LinkLayer,
    pub gpu_path: GpuPath,
    /// Link rate as the port reports it; `None` where unknown or unreliable (Soft-RoCE).
    pub rate_gbps: Option<GigabitsPerSecond>,
    /// Largest path MTU of this side, in bytes.
    pub mtu: u32,
    pub software: bool,
    /// Known once joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_order: Option<WriteOrder>,
    pub settings: BTreeMap<String, String>,
}
