//! Safe wrappers of libibverbs: each object is a handle, its parent kept alive, and one `Drop`.
//!
//! ```text
//! Device ◀ Domain ◀ Region, Address, QueuePair ▶ CompletionQueue (▶ Channel)
//! Sends, Receives post to a QueuePair what lies in a Region; Poller takes what a CompletionQueue has
//! ```
//!
//! Types are from rdma-sys; its functions are never called by name, so the agent starts without the library.

pub(crate) mod cm;
pub(crate) mod completion;
pub(crate) mod device;
pub(crate) mod events;
pub(crate) mod file;
pub(crate) mod flag;
pub(crate) mod gid;
mod happened;
pub(crate) mod library;
pub(crate) mod port;
pub(crate) mod queue_pair;
pub(crate) mod receive;
pub(crate) mod region;
pub(crate) mod send;
pub(crate) mod words;
