//! How fast bytes move between a host and its GPU, measured before pairs of GPUs are: so that a slow slot is not blamed on
//! the fabric.

use serde::{Deserialize, Serialize};

use crate::unit::GigabytesPerSecond;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Copies {
    /// CUDA device index.
    pub gpu: u32,
    /// PCI address from CUDA, whose numbers of GPUs may differ from those of the facts.
    pub pci: String,
    pub to_gpu: GigabytesPerSecond,
    pub from_gpu: GigabytesPerSecond,
    /// On the GPU; every byte is read and written, and counted once.
    pub on_gpu: GigabytesPerSecond,
    /// To other GPUs of the host, by CUDA device index.
    pub to_peers: Vec<(u32, GigabytesPerSecond)>,
}
