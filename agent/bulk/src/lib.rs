//! The agent's loops over the bytes of buffers, and what is done with every sample. The agent is compiled for size, and these for speed.

pub mod histogram;
pub mod reduce;
pub mod sum;
