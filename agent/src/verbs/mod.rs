//! libibverbs in safe hands: one small file per object, each a handle, its parent kept alive, and one `Drop`.
//!
//! ```text
//! Device ◀ Domain ◀ Region, Address, QueuePair ▶ CompletionQueue (▶ Channel)
//! Sends, Receives post to a QueuePair what lies in a Region; Poller takes what a CompletionQueue has
//! ```
//!
//! | file | holds |
//! | --- | --- |
//! | [`loader`], [`library`] | libraries opened at run time, with versioned symbols |
//! | [`device`], [`port`], [`gid`] | what there is, and which GID to use |
//! | [`domain`], [`region`], [`completion`], [`queue_pair`], [`address`] | the objects |
//! | [`cm`], [`cm_library`] | connections made by librdmacm |
//! | [`transition`] | the attributes of a queue pair's states, as data |
//! | [`send`], [`receive`], [`poll`] | the fast path: prebuilt requests, batches of completions |
//! | [`message`] | messages of any length, one request at a time |
//! | [`flag`] | memory that a device writes and a loop watches |
//! | [`cache`] | open devices, kept warm |
//! | [`stub`] | a device that completes at once, to measure our own cost |
//! | [`words`] | every status and errno in words |
//!
//! Types come from rdma-sys; its functions are never called by name, so the agent does not need the library to start.

pub mod address;
pub mod cache;
pub mod cm;
pub mod cm_library;
pub mod completion;
pub mod device;
pub mod domain;
pub mod flag;
pub mod gid;
pub mod library;
pub mod loader;
pub mod message;
pub mod poll;
pub mod port;
pub mod queue_pair;
pub mod receive;
pub mod region;
pub mod send;
pub mod stub;
pub mod transition;
pub mod words;
