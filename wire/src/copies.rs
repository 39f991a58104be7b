//! How fast bytes move between a host and its GPU, measured before pairs of GPUs are: so that a slow slot is not blamed on
//! the fabric.

use serde::{Deserialize, Serialize};

/// Copies of one GPU. All in GB/s (1e9 bytes).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Copies {
    /// CUDA device index.
    pub gpu: u32,
    /// PCI address as CUDA tells it: CUDA may count GPUs otherwise than the facts do.
    pub pci: String,
    /// From page-locked host memory to the GPU.
    pub to_gpu: f64,
    /// From the GPU to page-locked host memory.
    pub from_gpu: f64,
    /// On the GPU; every byte is read and written, and counted once.
    pub on_gpu: f64,
    /// To other GPUs of the host, by CUDA device index.
    pub to_peers: Vec<(u32, f64)>,
}
