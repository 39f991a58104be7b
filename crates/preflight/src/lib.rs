//! Predicts bad measurements from the facts of all hosts. Pure.
//!
//! | file | holds |
//! | --- | --- |
//! | [`finding`] | what a check found, and how serious it is |
//! | `observed` | its value, as seen and as wanted, for programs |
//! | `scene`, `usual` | the input of checks, and reference values |
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
mod usual;

use std::{borrow::Borrow, collections::BTreeMap};

use railgauge_wire::{facts::HostFacts, unit::NanosecondsI64};

pub use check::{CHECKS, Check, Rule, Spoils, Subject};
pub use comparable::{Comparable, FactOf, comparable, software};
pub use demand::{Demand, Departure, Departures, Held, Holding, demands};
pub use drift::{Change, Drift, between, drift};
pub use finding::{Finding, Severity};
pub use judge::judge;
pub use observed::{Decimal, Observation, Value, WantedBy};

/// What is known of the hosts that answered. The facts may be borrowed: those of 10,000 hosts take 100 MB.
#[derive(Debug, Clone)]
pub struct Cluster<F = HostFacts> {
    pub facts: BTreeMap<String, F>,
    /// Wall clock of a host minus the controller's, in nanoseconds, where it was read.
    pub clocks: BTreeMap<String, NanosecondsI64>,
}

type Seen<'a> = Cluster<&'a HostFacts>;

impl<F> Default for Cluster<F> {
    fn default() -> Self {
        Self { facts: BTreeMap::new(), clocks: BTreeMap::new() }
    }
}

impl<F: Borrow<HostFacts>> Cluster<F> {
    fn seen(&self) -> Seen<'_> {
        let facts = self.facts.iter().map(|(host, facts)| (host.clone(), facts.borrow()));
        Cluster { facts: facts.collect(), clocks: self.clocks.clone() }
    }
}

#[cfg(test)]
mod tests;
