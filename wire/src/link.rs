//! One endpoint of a measured connection: what to open, and how a peer reaches it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    terms::{Carrier, GpuPath, LinkLayer, Memory, Precision, Service, Transport},
    unit::{Bytes, GigabitsPerSecond},
};

/// Names one link inside one agent's conversation; both ends of a pair use the same number.
pub type LinkId = u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Posts the operations and holds the clock.
    Initiator,
    /// Is the target; active only where the operation needs it.
    Responder,
}

/// How completions are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Completion {
    /// Busy polling (perftest's default).
    #[default]
    Poll,
    /// Sleeping on the completion channel (perftest `-e`).
    Events,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Footprint {
    /// Stays in the last-level cache, as perftest does.
    #[default]
    Cache,
    /// At least four times the last-level cache.
    Dram,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Joining {
    /// By link layer: `rdma-cm` for iWARP, `exchange` for the rest.
    #[default]
    Auto,
    Exchange,
    RdmaCm,
}

/// How the target of an RDMA WRITE learns in a latency loop that it has arrived. Times taken one way are never compared
/// with times taken the other way: the packets, and with adaptive routing the paths, are others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteLatency {
    /// It polls the last byte in memory (perftest `ib_write_lat`).
    Poll,
    /// The write carries immediate data, which completes a receive (perftest `--write_with_imm`).
    Immediate,
}

impl WriteLatency {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Immediate => "immediate",
        }
    }
}

/// What the devices say of the order in which the bytes of an RDMA WRITE become visible, where the last one is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteOrder {
    /// The last byte is written last (`ibv_query_qp_data_in_order`, asked of the queue pair in RTS).
    Promised,
    /// No promise: the loop checks the first messages itself, and perftest polls all the same.
    NotPromised,
    /// The library cannot be asked (older than rdma-core 36).
    Unknown,
}

impl WriteOrder {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Promised => "promised",
            Self::NotPromised => "not-promised",
            Self::Unknown => "unknown",
        }
    }

    /// What two ends say together: a promise is one of both.
    #[must_use]
    pub fn both(self, other: Self) -> Self {
        match (self, other) {
            (Self::Promised, Self::Promised) => Self::Promised,
            (Self::NotPromised, _) | (_, Self::NotPromised) => Self::NotPromised,
            _ => Self::Unknown,
        }
    }
}

/// Depth where neither the plan nor the device says otherwise: perftest's `--tx-depth`.
pub const DEPTH: u32 = 128;

/// Everything a plan may turn. `None` means the agent's default; the answer to `Open` says what was used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Knobs {
    /// Work requests in flight per queue pair (perftest `--tx-depth`), or sends per stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Work requests posted at once (perftest `--post_list`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_list: Option<u32>,
    /// One completion per this many work requests (perftest `--cq-mod`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal_every: Option<u32>,
    /// Largest inline payload in bytes (perftest `--inline_size`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline: Option<u32>,
    /// Outstanding reads and atomics (perftest `--outs`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outstanding_reads: Option<u8>,
    /// Path MTU in bytes (perftest `--mtu`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// GID index (perftest `--gid-index`, `NCCL_IB_GID_INDEX`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid_index: Option<u8>,
    /// Partition key; its index is found in the port's table. The highest bit, which tells members from limited members,
    /// does not count (`UCX_IB_PKEY`; perftest `--pkey_index` and `NCCL_IB_PKEY` take the index).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pkey: Option<u16>,
    /// Traffic class byte, DSCP in its upper six bits (perftest `--tclass`, `NCCL_IB_TC`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_class: Option<u8>,
    /// Service level (perftest `--sl`, `NCCL_IB_SL`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_level: Option<u8>,
    /// Flow label of the first queue pair, counting up from there: spreads RoCE v2 UDP source ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_label: Option<u32>,
    /// Transport retries, 0 to 7 (`NCCL_IB_RETRY_CNT`). Default 6: Soft-RoCE takes 7 as endless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<u8>,
    /// Local ACK timeout exponent, 4.096 µs × 2^n (perftest `--qp-timeout`, `NCCL_IB_TIMEOUT`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u8>,
    /// PCIe relaxed ordering (`NCCL_IB_PCI_RELAXED_ORDERING`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relaxed_ordering: Option<bool>,
    /// Buffers on huge pages (perftest `--use_hugepages`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<bool>,
    /// Core to run on, or that of the first of several threads; by default a core of the NIC's NUMA node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<Completion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footprint: Option<Footprint>,
    /// Type of the elements of matrix products. Set by the plan's reader in every test of them, so that it is a setting of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// How the latency of `write` is taken. Set by the plan's reader in every test that measures it, so that it is a
    /// setting of the test; of no meaning elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_latency: Option<WriteLatency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joining: Option<Joining>,
    /// Congestion control of TCP connections (iperf3 `-C`), a name the kernel knows; the system's if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
}

/// What an agent opens for its end of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSpec {
    pub role: Role,
    pub transport: Transport,
    pub service: Service,
    /// RDMA device, or for TCP the network interface; the first usable one if `None`.
    pub device: Option<String>,
    /// Port of the RDMA device, counted from 1.
    pub port: u8,
    /// Address for TCP to listen on or connect from; chosen from `device` if `None`.
    pub address: Option<String>,
    pub memory: Memory,
    /// CUDA device index, where `memory` is on a GPU.
    pub gpu: Option<u32>,
    /// Demanded path of GPU memory; any if `None`.
    pub gpu_path: Option<GpuPath>,
    pub qps: u32,
    /// Threads that they are divided among, each with a device context, a completion queue and memory of its own.
    #[serde(default = "one")]
    pub threads: u32,
    /// Which of the threads this end is, in its own agent; the controller leaves it 0.
    #[serde(default)]
    pub thread: u32,
    pub max_size: Bytes,
    /// Secret both ends share, so that no stranger can join (TCP).
    pub token: String,
    /// Whether the link outlives breaks as those of jobs do: a port that goes down, or a peer that is not heard, ends nothing before
    /// the transport's own retries or the deadline do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rides_out: bool,
    #[serde(default)]
    pub knobs: Knobs,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Endpoint {
    Verbs(VerbsEndpoint),
    Tcp(TcpEndpoint),
    /// One for each thread of a link of several.
    Several(Vec<Endpoint>),
}

/// What a queue pair's peer must know.
///
/// Every queue pair owns an equal share of the registered buffer, in the order of `qp_numbers`: the first half of a
/// share is sent from and read by the peer, the second half is received into and written by the peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerbsEndpoint {
    /// Queue pair numbers, one per queue pair of the link.
    pub qp_numbers: Vec<u32>,
    /// First packet sequence number of each queue pair.
    pub psns: Vec<u32>,
    /// Local identifier; 0 on Ethernet.
    pub lid: u16,
    /// GID, as 32 hexadecimal digits.
    pub gid: String,
    /// GID type as sysfs words it ("RoCE v2", "IB/RoCE v1").
    pub gid_type: String,
    /// Largest path MTU of the port, in bytes.
    pub mtu: u32,
    pub address: u64,
    pub length: Bytes,
    pub rkey: u32,
    /// Whether what is written into the buffer may be polled: host memory without PCIe relaxed ordering.
    #[serde(default)]
    pub polled: bool,
    /// Whether packets to and from this port must carry a global route header (`IBV_QPF_GRH_REQUIRED`).
    #[serde(default)]
    pub grh_required: bool,
    /// Partition key in use; `None` where the port has none (iWARP).
    #[serde(default)]
    pub pkey: Option<u16>,
    #[serde(default)]
    pub control: Option<ControlEndpoint>,
    /// Reads and atomics this side accepts at once.
    pub max_reads: u8,
    /// Queue key (datagrams only).
    pub qkey: u32,
    /// librdmacm's listening port, where the link is joined by rdma_cm.
    #[serde(default)]
    pub cm_port: Option<u16>,
    #[serde(default)]
    pub cm_address: Option<String>,
}

/// A reliable connection beside the measured queue pairs: it carries readiness and credits, never measured bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlEndpoint {
    pub qp_number: u32,
    /// First packet sequence number.
    pub psn: u32,
    pub address: u64,
    pub rkey: u32,
}

/// Where a TCP responder listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpEndpoint {
    /// Address to connect to, without a port.
    pub address: String,
    /// Port; 0 on the initiator.
    pub port: u16,
}

/// What was opened: proven names and resolved settings, for the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    pub endpoint: Endpoint,
    pub device: String,
    /// The carrier of the bytes.
    pub transport: Carrier,
    pub link_layer: LinkLayer,
    pub gpu_path: GpuPath,
    /// Link rate as the port reports it; `None` where it is unknown or not to be trusted (Soft-RoCE).
    pub rate_gbps: Option<GigabitsPerSecond>,
    /// Path MTU this side can do, in bytes.
    pub mtu: u32,
    /// Whether the device is an emulation in software (Soft-RoCE, siw), from its driver.
    pub software: bool,
    /// What the device says of the order of bytes, where the last byte of a write is polled; known once joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_order: Option<WriteOrder>,
    /// Every setting as resolved, by its name in plans.
    pub settings: BTreeMap<String, String>,
}
