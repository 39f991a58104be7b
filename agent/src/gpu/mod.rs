//! GPUs: CUDA's driver API or AMD's HIP opened at run time, memory, streams, kernels; and their state by NVML or AMD SMI.

mod amd;
mod blas;
pub(crate) mod buffer;
pub(crate) mod cards;
pub(crate) mod device;
pub(crate) mod driver;
pub(crate) mod facts;
pub mod kernels;
pub(crate) mod matrices;
pub(crate) mod monitor;
mod nvml;
pub(crate) mod present;
pub(crate) mod product;
pub(crate) mod reached;
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

pub(crate) use cards::{Cards, Lasting, Unread};
pub(crate) use driver::{Handle, SUCCESS, Status};
pub(crate) use matrices::Matrices;
pub(crate) use nvml::{CHIP, CLOCK_MEMORY, CLOCK_SM, NVLINKS, Nvml};
pub(crate) use vendor::Vendor;

pub(crate) const RCCL: [&str; 2] = ["librccl.so.1", "/opt/rocm/lib/librccl.so.1"];
