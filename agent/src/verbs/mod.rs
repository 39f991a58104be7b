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
//! | [`device`], [`port`], [`gid`], [`pkey`] | what there is, and which GID and partition to use |
//! | [`events`] | what happens to a device beside the work posted to it |
//! | [`domain`], [`region`], [`completion`], [`queue_pair`], [`address`] | the objects |
//! | [`cm`], [`cm_library`] | connections made by librdmacm |
//! | [`transition`] | the attributes of a queue pair's states, as data |
//! | [`send`], [`receive`], [`poll`] | the fast path: prebuilt requests, batches of completions |
//! | [`message`] | messages of any length, one request at a time |
//! | [`flag`] | memory that a device writes and a loop watches |
//! | [`scatter`] | mlx5's copies out of completions, which GPU memory does not bear |
//! | [`cache`] | open devices, kept warm |
//! | [`stub`] | a device that completes at once, to measure our own cost |
//! | [`words`] | every status and errno in words |
//!
//! Types come from rdma-sys; its functions are never called by name, so the agent does not need the library to start.

pub(crate) mod address;
pub(crate) mod cache;
pub(crate) mod cm;
pub(crate) mod cm_library;
pub(crate) mod completion;
pub(crate) mod device;
pub(crate) mod domain;
pub(crate) mod events;
pub(crate) mod flag;
pub(crate) mod gid;
pub(crate) mod library;
pub(crate) mod loader;
pub(crate) mod message;
pub(crate) mod pkey;
pub(crate) mod poll;
pub(crate) mod port;
pub(crate) mod queue_pair;
pub(crate) mod receive;
pub(crate) mod region;
pub(crate) mod scatter;
pub(crate) mod send;
pub(crate) mod stub;
pub(crate) mod transition;
pub(crate) mod words;
