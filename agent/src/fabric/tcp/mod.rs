//! TCP sockets: the baseline, available on every host. Never called RDMA.
//!
//! A link is one connection per stream for payload and one for signals. What is counted:
//!
//! * **Bandwidth** (`write`, `send`: the initiator sends; `read`: the responder sends). Every message is one `send` call of the message's
//!   size; small messages may share a segment, as in any bulk transfer over TCP. The window runs from the first send until the receiver has
//!   confirmed every byte, and both ends must have counted the same bytes. `slices` are the receiver's. Both directions at once: bytes of
//!   both, over one window.
//! * **Latency** on the first stream, one message at a time with TCP_NODELAY: see [`stream`].
//! * **CPU time** is that of all threads of the link, the kernel's share of their calls included.

mod conduct;
mod link;
mod memory;
mod shared;
mod stream;

pub(crate) use link::open;
