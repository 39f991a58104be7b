//! Where the bytes live, and whether they are the right ones.
//!
//! | file | holds |
//! | --- | --- |
//! | [`host`] | page-aligned host memory, on huge pages if asked for |
//! | [`shared`] | host memory that devices write, lent as atomics only |
//! | [`place`] | near which NIC, on which core |
//! | [`backing`] | what devices reach of it, whatever kind it is |
//! | [`pattern`] | the bytes of a verify pass: fill, poison, check |

pub(crate) mod backing;
pub(crate) mod host;
pub mod pattern;
pub(crate) mod place;
pub(crate) mod shared;
