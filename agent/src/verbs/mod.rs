//! libibverbs in safe hands: each object is a handle, its parent kept alive, and one `Drop`.
//!
//! ```text
//! Device ◀ Domain ◀ Region, Address, QueuePair ▶ CompletionQueue (▶ Channel)
//! Sends, Receives post to a QueuePair what lies in a Region; Poller takes what a CompletionQueue has
//! ```
//!
//! | file | holds |
//! | --- | --- |
//! | [`device`], [`port`], [`gid`] | what there is, and which GID and partition to use |
//! | [`events`] | what happens to a device beside the work posted to it |
//! | [`cm`] | connections made by librdmacm |
//! | [`send`], [`receive`], [`completion`] | the fast path: prebuilt requests, batches of completions |
//! | [`flag`] | memory that a device writes and a loop watches |
//! | [`words`] | every status and errno in words |
//!
//! Types come from rdma-sys; its functions are never called by name, so the agent does not need the library to start.

pub(crate) mod cm;
pub(crate) mod completion;
pub(crate) mod device;
pub(crate) mod events;
pub(crate) mod flag;
pub(crate) mod gid;
pub(crate) mod library;
pub(crate) mod port;
pub(crate) mod queue_pair;
pub(crate) mod receive;
pub(crate) mod region;
pub(crate) mod send;
pub(crate) mod words;
