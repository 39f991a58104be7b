use railgauge_wire::terms::TestMetric;
use serde::{Deserialize, Serialize};

use super::model::{Pattern, Test};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtOnce {
    /// Every other host to one; to each in turn if `None`.
    Incast(Option<String>),
    /// One host to every other; from each in turn if `None`.
    Outcast(Option<String>),
    AllToAll,
    Ring,
    /// A random permutation, this many times; every host sends and receives once.
    Permutation(u32),
    Bisection(Cut),
    Victim(Victim),
}

/// A flow measured alone, then during an incast that shares no NIC port with it: all hosts but its ends send to one other. Rounds of a draw
/// are consecutive: even rounds measure the flow alone, odd rounds with the incast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Victim {
    /// Source and sink; random if `None`.
    pub flow: Option<(String, String)>,
    /// Sink of the incast; random if `None`.
    pub to: Option<String>,
    /// How many random choices; each makes two rounds.
    pub draws: u32,
}

impl Victim {
    /// Fewest hosts of such a test: both ends of the flow, the sink of the incast, and two senders, since one sender is not an incast.
    pub const HOSTS: usize = 5;

    pub const fn is_alone_in(round: u32) -> bool {
        round.is_multiple_of(2)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    Drawn(u32),
    /// Two groups: the first host of one with the first of the other, and so on.
    Groups(String, String),
}

impl Test {
    pub fn at_once(&self) -> bool {
        self.collective.is_none() && matches!(self.pattern, Pattern::AtOnce(_))
    }

    pub fn flows_at_once(&self) -> Option<&AtOnce> {
        match &self.pattern {
            Pattern::AtOnce(pattern) if self.collective.is_none() => Some(pattern),
            _ => None,
        }
    }

    /// Whether flows with few queue pairs are compared with those with many, to distinguish collisions on a path from damage: bandwidth in
    /// one direction between pairs, at most one flow out of and into every NIC port. Other flows slow each other, and with both directions
    /// together it is unknown which one is slow.
    pub fn compares_paths(&self) -> bool {
        let apart = match &self.pattern {
            Pattern::AtOnce(AtOnce::Permutation(_) | AtOnce::Ring | AtOnce::Bisection(_)) => true,
            Pattern::AtOnce(_) => false,
            _ => true,
        };
        let bandwidth = self.metric == TestMetric::Bandwidth && !self.bidirectional;
        apart && self.collective.is_none() && bandwidth && self.qps.iter().min() != self.qps.iter().max()
    }

    pub fn has_victim(&self) -> bool {
        matches!(self.flows_at_once(), Some(AtOnce::Victim(_)))
    }

    pub fn on_fabric(&self) -> bool {
        self.collective.is_none() && matches!(self.pattern, Pattern::Fabric(_))
    }
}
