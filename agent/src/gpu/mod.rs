//! GPUs: CUDA's driver API or AMD's HIP opened at run time, memory, streams, kernels; and what NVML or AMD SMI says of them.
//!
//! | file | holds |
//! | --- | --- |
//! | [`driver`] | the table of the driver's functions |
//! | [`maker`] | what differs between CUDA and HIP beyond names |
//! | [`present`] | GPUs on the PCI bus |
//! | [`device`] | one GPU and its context |
//! | [`buffer`] | memory on it, and its dma-buf |
//! | [`stream`] | streams, graphs, copies, page-locked host memory |
//! | [`event`] | moments on a GPU's own clock |
//! | [`reach`] | memory as a NIC reaches it: by itself, or through host memory |
//! | [`kernels`] | fill, poison and check where the data lives (`kernels.ptx`, `kernels.hip`) |
//! | [`hiprtc`] | the compiler of HIP's kernels |
//! | [`copies`] | how fast bytes move between host and GPU |
//! | [`values`], [`table`] | the data of collectives, and its numbers as elements of every type |
//! | [`blas`], [`product`] | functions of cuBLASLt or hipBLASLt, and one matrix product by them |
//! | [`matrices`] | matrices whose product is known, to verify every element |
//! | [`cards`] | the state of GPUs while tests run, whoever tells it |
//! | [`nvml`], [`facts`], [`state`] | NVML's functions, and what it says |
//! | [`amd`] | what AMD SMI says |
//! | [`fabric`] | how GPUs stand with the NVLink fabric |
//! | [`distance`] | how far GPUs and NICs are from each other on the PCIe tree |

mod amd;
mod blas;
pub(crate) mod buffer;
pub(crate) mod cards;
pub mod copies;
pub(crate) mod device;
pub(crate) mod distance;
pub(crate) mod driver;
pub(crate) mod event;
mod fabric;
pub(crate) mod facts;
mod hiprtc;
pub mod kernels;
pub(crate) mod maker;
pub(crate) mod matrices;
mod nvml;
pub(crate) mod present;
pub(crate) mod product;
pub(crate) mod reach;
pub(crate) mod state;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod values;

pub(crate) use amd::NAMES as AMD_SMI;
pub(crate) use blas::{HIP_NAMES as HIPBLASLT, NAMES as CUBLASLT};
pub use buffer::Buffer;
pub(crate) use buffer::Mapping;
pub use device::Device;
pub(crate) use driver::HIP;
pub(crate) use event::Event;
pub(crate) use stream::Pinned;
pub use stream::Stream;

/// What RCCL may be called, and where ROCm installs it.
pub(crate) const RCCL: [&str; 2] = ["librccl.so.1", "/opt/rocm/lib/librccl.so.1"];
