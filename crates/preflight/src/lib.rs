//! Predicts bad measurements from the facts of all hosts. Pure.
//!
//! | file | holds |
//! | --- | --- |
//! | [`finding`] | what a check found, and how serious it is |
//! | `observed` | its value, as seen and as usual or wanted, for programs |
//! | `scene` | the input of checks |
//! | `check/` | one file per check: what it reads, what it means for the numbers, the remedy, the source |
//! | [`demand`] | what the plan wants, answered for every host: the verdicts of preflight |
//! | `judge` | all checks over a cluster, equal findings folded, the plan's waivers applied |
//! | [`drift`] | for every fact the majority's value and the hosts that differ; changes between two runs |
//! | `comparable` | the facts of a host that can be compared, in words |
//!
//! A new check is one file in `check/` and one line in the list of checks, [`railgauge_model::checks`].
#![forbid(unsafe_code)]
// What no other crate needs is not `pub`, so that the compiler sees what is unused.
#![warn(unreachable_pub)]

mod check;
mod comparable;
pub mod demand;
pub mod drift;
pub mod finding;
mod judge;
mod observed;
mod scene;

pub use check::{CHECKS, Check, Rule, Spoils, Subject};
pub use comparable::{Comparable, FactOf, comparable, software};
pub use demand::{Demand, Departure, Departures, Held, Holding, demands};
pub use drift::{Change, Drift, between, drift};
pub use finding::Finding;
pub use judge::judge;
pub use observed::{Decimal, Observation, Severity, Value, WantedBy};
pub use scene::Cluster;

#[cfg(test)]
mod tests;
