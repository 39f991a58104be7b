//! Tests within a host: host memory by NUMA node, copies between a host and its GPUs, within a GPU and between GPUs, matrix products, and
//! writes through an RDMA port and back.
//!
//! The controller asks once for all flows of a host that run at the same time. The agent makes everything ready, verifies, begins
//! all timed passes together, and verifies again:
//!
//! ```text
//! each flow   open, fill, move once, compare ─┐
//!                                             ├─ all together: warm-up, timed pass ─▶ each flow: fill, move once, compare
//! each flow   open, fill, move once, compare ─┘
//! ```
//! A flow that fails is out, and the others go on without it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    case::CaseAccount,
    link::Knobs,
    step::Window,
    terms::{Carrier, GpuPath, LinkLayer, Op, Precision, TestMetric},
    unit::{Bytes, Nanoseconds},
};

/// Patterns of a test of a GPU's memory.
pub const PATTERNS: u64 = 10;

/// Bytes from one read of a latency test to the next that it may follow: a cache line of most processors.
pub const LINE: Bytes = Bytes(64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeSpec {
    pub op: Op,
    /// What is timed of it: as many bytes or products as can be done, or one read of memory after the other.
    pub metric: TestMetric,
    /// Bytes that one operation reads, writes or copies; those of the result of a matrix product; those that single reads are spread
    /// over.
    pub size: Bytes,
    /// How long the timed pass is; never adaptive.
    pub window: Window,
    pub warm_up: Nanoseconds,
    /// Seed of the bytes of the verify passes; none are made if `None`.
    pub verify: Option<u64>,
    /// Milliseconds that all of it may take beside the timed pass.
    pub deadline_ms: u64,
    /// Whether memory that fits the caches of the processors may be measured.
    pub cached: bool,
    /// Type of the elements of matrix products; `None` for all other operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// What runs at the same time.
    pub flows: Vec<NodeFlow>,
}

/// A part of the host, or the way between two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFlow {
    /// Where the bytes are, and what moves them.
    pub from: Part,
    /// Where they come to; the same part for all operations but one between two GPUs.
    pub to: Part,
}

/// A part of a host with memory of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// The processors of a NUMA node and their memory, by the kernel's number.
    Processors(u32),
    /// A GPU by its PCI address, in sysfs' spelling: CUDA counts GPUs otherwise than the facts may.
    Gpu(String),
    Nic(Box<NicPort>),
}

/// An RDMA port of a host, through which bytes go from memory beside it to memory beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicPort {
    pub device: String,
    /// Number of its port, counted from 1.
    pub port: u8,
    /// The GPU in whose memory the bytes are; host memory of the NIC's NUMA node if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuOfNic>,
    /// Demanded path of GPU memory; any of those by which the NIC reaches it itself if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_path: Option<GpuPath>,
    /// Settings of the queue pairs, as of a link.
    #[serde(default)]
    pub knobs: Knobs,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuOfNic {
    /// Its number by CUDA, as in the specification of a link.
    pub number: u32,
    /// Its PCI address in sysfs' spelling, by which its state is read; `None` where the facts do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAccount {
    /// What lies between the two ends; `None` where it was not opened.
    pub link_layer: Option<LinkLayer>,
    /// What moves the bytes; `None` where it was not opened.
    pub carrier: Option<Carrier>,
    /// Whether a device that took part is an emulation in software (Soft-RoCE, siw).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub software: bool,
    /// How an RDMA port reached GPU memory; `None` where no port took part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_path: Option<GpuPath>,
    pub devices: (String, String),
    pub settings: BTreeMap<String, String>,
    pub account: CaseAccount,
}
