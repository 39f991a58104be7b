//! How a case is measured: one file for each kind of case, read from top to bottom.
//!
//! | file | does |
//! | --- | --- |
//! | [`counters`] | counter changes of the NICs around a timed pass |
//! | `steps` | a verify pass, arming, a timed pass: each asked of both ends of a link |
//! | [`traffic`] | how the traffic of the soak differs from that of tests |
//! | [`case`] | what a case needs, and the result of one try |
//! | [`sweep`] | the cases of a flow on one link, led by its two ends |
//! | [`concurrent`] | flows that run at once, from a planned start |
//! | [`collective`] | the ranks of one collective: opened, joined, measured together |
//! | `command` | the plan's command during a flow |
//! | `neighbour` | other traffic of the same two hosts during a flow |
//! | [`node`] | memory of one host's processors and GPUs |

pub(super) mod case;
pub(super) mod collective;
mod command;
pub(super) mod concurrent;
pub(super) mod counters;
mod neighbour;
pub(super) mod node;
mod steps;
pub(super) mod sweep;
pub(super) mod traffic;
