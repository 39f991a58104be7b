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

pub(crate) use cm::Identifier;
pub(crate) use completion::{Completion, CompletionQueue, Poller};
pub(crate) use device::{Device, Domain, Limits};
pub(crate) use events::Watch;
pub(crate) use flag::{Beat, Span};
pub(crate) use gid::{Gid, Pkey};
pub(crate) use library::Library;
pub(crate) use port::Port;
pub(crate) use queue_pair::{Address, Capacity, Change, QueuePair};
pub(crate) use receive::Receives;
pub(crate) use region::{Access, Region};
pub(crate) use send::{Sends, Template, Verb, Walk};
pub(crate) use words::Doing;
