//! Collectives between GPUs with the host's own NCCL. One rank is one process, since NCCL reads its environment once.
//!
//! ```text
//! controller ─ conversation/member ─ process ═ pipe ═ worker ─ bench ─ communicator, collective::layout, gpu::kernels
//! ```
//!
//! | file | holds |
//! | --- | --- |
//! | [`worker`] | the process itself: opens, joins, measures; watched from inside |
//! | [`library`] | NCCL opened at run time |
//! | [`bench`] | one measurement |
//! | [`log`] | NCCL's log as evidence of what carried the bytes |

pub(crate) mod bench;
pub(crate) mod library;
pub mod log;
pub(crate) mod worker;
