//! Tests within a host: host memory by NUMA node, copies between a host and its GPUs, within a GPU and between GPUs, matrix products, and
//! writes through an RDMA port and back.
//!
//! One request covers all concurrent flows of a host. The agent prepares everything, verifies, starts all timed passes together, and
//! verifies again:
//!
//! ```text
//! each flow   open, fill, move once, compare ─┐
//!                                             ├─ all together: warm-up, timed pass ─▶ each flow: fill, move once, compare
//! each flow   open, fill, move once, compare ─┘
//! ```
//! A failed flow drops out; the others continue.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    case::CaseAccount,
    link::Knobs,
    step::Window,
    terms::{Carrier, GpuPath, LinkLayer, Op, Precision, TestMetric},
    unit::{Bytes, Nanoseconds},
};

pub const PATTERNS: u64 = 10;

/// Distance of dependent reads in a latency test: a cache line of most processors.
pub const LINE: Bytes = Bytes(64);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeSpec {
    pub op: Op,
    pub metric: TestMetric,
    /// Bytes that one operation reads, writes or copies; those of the result of a matrix product; the range of single reads.
    pub size: Bytes,
    /// How long the timed pass is; never adaptive.
    pub window: Window,
    pub warm_up: Nanoseconds,
    /// Seed of the bytes of the verify passes; none are made if `None`.
    pub verify: Option<u64>,
    /// Milliseconds for everything except the timed pass.
    pub deadline_ms: u64,
    /// Whether memory that fits the caches of the processors may be measured.
    pub cached: bool,
    /// Type of the elements of matrix products; `None` for all other operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    pub flows: Vec<NodeFlow>,
}

/// A part of the host, or the way between two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFlow {
    /// Where the bytes are, and what moves them.
    pub from: Part,
    /// Destination; the same part except between two GPUs.
    pub to: Part,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// The processors of a NUMA node and their memory, by the kernel's number.
    Processors(u32),
    /// A GPU by its PCI address, in sysfs' spelling: CUDA counts GPUs otherwise than the facts may.
    Gpu(String),
    Nic(Box<NicPort>),
}

/// A port that carries bytes between two places in the memory next to it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NicPort {
    pub device: String,
    /// Number of its port, counted from 1.
    pub port: u8,
    /// The GPU in whose memory the bytes are; host memory of the NIC's NUMA node if `None`.
    pub gpu: Option<GpuOfNic>,
    /// Required path of GPU memory; any direct path if `None`.
    pub gpu_path: Option<GpuPath>,
    pub knobs: Knobs,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuOfNic {
    /// Its number by CUDA, as in the specification of a link.
    pub number: u32,
    /// PCI address in sysfs' spelling, for reading its state; `None` where the facts lack it.
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
