//! A double of libibverbs and librdmacm for tests on hosts without an RDMA device: what `agent/src/verbs/library.rs` and
//! `cm_library.rs` look up, as strict as the providers and the kernel are. Never part of the product. Its use:
//! `README.md` beside this file.
//!
//! | file | holds |
//! | --- | --- |
//! | `settings`, `hostile` | what the environment asks for |
//! | `profile` | the devices, as data, each trait with its source |
//! | `device`, `port` | the device list, contexts and queries |
//! | `event` | asynchronous events |
//! | `memory` | protection domains, regions, and how bytes get to their place |
//! | `completion` | channels and completion queues |
//! | `transition`, `queue_pair` | the states, the masks, the objects |
//! | `post` | work requests as they are posted |
//! | `fabric`, `wire` | how processes find each other, and what they say |
//! | `requester`, `responder` | the two halves of a queue pair that move bytes |
//! | `address` | address handles |
//! | `counters` | what a port counts, in the tree around the process |
//! | `connection` | librdmacm |
#![allow(unused_unsafe, reason = "some of these functions do nothing unsafe")]
#![allow(clippy::missing_safety_doc, reason = "the contracts are those of rdma-core")]

/// Functions as C calls them.
macro_rules! exported {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $returned:ty $body:block)+) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> $returned {
            // SAFETY: callers keep to <infiniband/verbs.h> and <rdma/rdma_cma.h>: pointers are those that this library
            // handed out and that were not given back, or are valid for the call.
            unsafe { $body }
        }
    )+};
}

mod address;
mod completion;
mod connection;
mod counters;
mod device;
mod event;
mod fabric;
mod hostile;
mod memory;
mod port;
mod post;
mod profile;
mod queue_pair;
mod requester;
mod responder;
mod settings;
mod transition;
mod wire;

/// Leaves `errno` and returns null, as functions that make objects do.
fn refused<T>(errno: i32) -> *mut T {
    // SAFETY: the address of this thread's errno is always valid.
    unsafe { *libc::__errno_location() = errno };
    std::ptr::null_mut()
}
