//! How hosts, switches and cables hang together, as far as anybody told.
//!
//! | module | holds |
//! | --- | --- |
//! | [`told`] | what one source says |

pub mod told;
