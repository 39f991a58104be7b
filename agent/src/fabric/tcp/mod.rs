//! TCP sockets: the baseline, and the fabric that is always there. Never called RDMA.
//!
//! A link is one connection per stream for payload and one for signals. What is counted:
//!
//! * **Bandwidth** (`write`, `send`: the initiator sends; `read`: the responder sends). Every message is one `send`
//!   call of the message's size; small messages may share a segment, as in any bulk transfer over TCP. The window
//!   runs from the first send to the moment the receiver has said that it has every byte, and both ends must have
//!   counted the same bytes. `slices` are the receiver's. Both directions at once: bytes of both, over one window.
//! * **Latency** on the first stream, one message at a time with TCP_NODELAY: see [`stream`].
//! * **CPU time** is that of all threads of the link, the kernel's share of their calls included.
//!
//! | file | holds |
//! | --- | --- |
//! | [`link`] | one end, made of what [`crate::endpoint::tcp`] opens and joins |
//! | [`stream`] | sending and receiving: many messages, or one at a time |
//! | [`memory`] | a stream's bytes, in host memory or staged to a GPU |
//! | [`conduct`] | one pass, run from the link's thread |
//! | [`shared`] | what the threads of a pass share, what the two ends tell one another, what a pass came to |

mod conduct;
mod link;
mod memory;
mod shared;
mod stream;

pub(crate) use link::open;
