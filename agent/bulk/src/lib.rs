//! The agent's loops over the bytes of buffers: the agent is compiled for size, and these for speed, with vector instructions.

pub mod reduce;
pub mod sum;
