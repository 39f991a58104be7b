//! Collectives between GPUs with the host's own NCCL. Each rank is a process, since NCCL reads its environment once.
//!
//! ```text
//! controller ─ conversation/member ─ process ═ pipe ═ worker ─ bench ─ communicator, collective::layout, gpu::kernels
//! ```

pub(crate) mod bench;
pub(crate) mod library;
pub mod log;
mod ras;
pub(crate) mod worker;
