//! GPUs: CUDA's driver API or AMD's HIP opened at run time, memory, streams, kernels; and what NVML or AMD SMI says of them.
//!
//! | file | holds |
//! | --- | --- |
//! | [`driver`] | the table of the driver's functions |
//! | [`vendor`] | what differs between NVIDIA and AMD |
//! | [`present`] | GPUs on the PCI bus |
//! | [`device`] | one GPU and its context |
//! | [`buffer`] | memory on it, and its dma-buf |
//! | [`stream`] | streams, graphs, copies, page-locked host memory |
//! | [`kernels`] | fill, poison and check where the data lives (`kernels.ptx`, `kernels.hip`) |
//! | [`copies`] | how fast bytes move between host and GPU |
//! | [`blas`], [`product`] | functions of cuBLASLt or hipBLASLt, and one matrix product by them |
//! | [`matrices`] | matrices whose product is known, to verify every element |
//! | [`cards`] | the state of GPUs while tests run |
//! | [`nvml`], [`facts`], [`state`] | NVML's functions, and what it says |
//! | [`amd`] | what AMD SMI says |

mod amd;
mod blas;
pub(crate) mod buffer;
pub(crate) mod cards;
pub mod copies;
pub(crate) mod device;
pub(crate) mod driver;
pub(crate) mod facts;
pub mod kernels;
pub(crate) mod matrices;
mod nvml;
pub(crate) mod present;
pub(crate) mod product;
pub(crate) mod state;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod vendor;

pub(crate) use amd::NAMES as AMD_SMI;
pub(crate) use blas::{HIP_NAMES as HIPBLASLT, NAMES as CUBLASLT};
pub use buffer::Buffer;
pub use device::Device;
pub(crate) use driver::HIP;
pub use stream::Stream;
pub(crate) use stream::{Event, Graph, Pinned};

/// What RCCL may be called, and where ROCm installs it.
pub(crate) const RCCL: [&str; 2] = ["librccl.so.1", "/opt/rocm/lib/librccl.so.1"];
