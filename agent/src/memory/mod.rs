//! Where the bytes live, and whether they are the right ones.
//!
//! | file | holds |
//! | --- | --- |
//! | [`host`] | page-aligned host memory, on huge pages if asked for |
//! | [`available`] | how much of it may be taken |
//! | [`nodes`](mod@nodes) | on which NUMA nodes it lies |
//! | [`place`] | near which NIC, on which core |
//! | [`backing`] | what devices reach of it, whatever kind it is |
//! | [`pattern`] | the bytes of a verify pass: fill, poison, check |
//! | [`values`] | the numbers of a collective |

pub(crate) mod available;
pub(crate) mod backing;
pub(crate) mod host;
pub(crate) mod nodes;
pub mod pattern;
pub(crate) mod place;
pub(crate) mod values;
