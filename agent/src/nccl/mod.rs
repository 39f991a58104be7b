//! Collectives between GPUs with the host's own NCCL. One rank is one process, since NCCL reads its environment once.
//!
//! ```text
//! controller ─ conversation/member ─ process ═ pipe ═ worker ─ bench ─ communicator, collective::layout, gpu::kernels
//! ```
//!
//! | file | holds |
//! | --- | --- |
//! | [`process`] | a rank's process, as its agent sees it |
//! | [`worker`] | the process itself: opens, joins, measures; watched from inside |
//! | [`library`] | NCCL opened at run time |
//! | [`communicator`] | one communicator and the collectives on it |
//! | [`bench`] | one measurement |
//! | [`log`] | NCCL's log as evidence of what carried the bytes |
//! | `network` | the networks, ports and interfaces behind the numbers in that log |

pub(crate) mod bench;
pub(crate) mod communicator;
pub(crate) mod library;
pub mod log;
mod network;
pub(crate) mod process;
pub(crate) mod worker;
