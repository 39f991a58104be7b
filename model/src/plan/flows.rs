//! Flows that run at the same time: patterns in which they share NICs on purpose.

use railgauge_wire::terms::TestMetric;
use serde::{Deserialize, Serialize};

use super::model::{Pattern, Test};

/// Patterns whose flows run at the same time and share NICs on purpose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtOnce {
    /// Every other host to one; to each in turn if `None`.
    Incast(Option<String>),
    /// One host to every other; from each in turn if `None`.
    Outcast(Option<String>),
    AllToAll,
    /// Each host to the next, the last to the first.
    Ring,
    /// Each host to another one, drawn by the seed so many times; every host sends and receives once.
    Permutation(u32),
    /// Pairs across a cut, in both directions.
    Bisection(Cut),
    Victim(Victim),
}

/// A flow that is measured alone, then beside an incast that shares no NIC port with it: all hosts but its ends send to one
/// other. The rounds of a draw follow one another: the even one is the flow alone, the odd one the flow beside the incast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Victim {
    /// Source and sink of the flow; drawn by the seed if `None`.
    pub flow: Option<(String, String)>,
    /// Where the incast goes; drawn by the seed if `None`.
    pub to: Option<String>,
    /// How often it is drawn: twice as many rounds.
    pub draws: u32,
}

impl Victim {
    /// Fewest hosts of such a test: both ends of the flow, the host that the incast goes to, and two that send to it. One flow
    /// more would be no incast.
    pub const HOSTS: usize = 5;

    /// Whether the victim is by itself in this round of its test.
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
    /// Whether the flows of a round share NICs on purpose and are measured where they all overlap.
    pub fn at_once(&self) -> bool {
        self.collective.is_none() && matches!(self.pattern, Pattern::AtOnce(_))
    }

    /// How its flows share NICs on purpose; `None` where they do not.
    pub fn flows_at_once(&self) -> Option<&AtOnce> {
        match &self.pattern {
            Pattern::AtOnce(pattern) if self.collective.is_none() => Some(pattern),
            _ => None,
        }
    }

    /// Whether its flows with few queue pairs are compared with those with many, to tell collisions on a path from damage: bandwidth in one
    /// direction between pairs, with one flow at most out of and into every NIC port. Others are low because of each other anyway, and of
    /// both directions together nobody knows which is low.
    pub fn compares_paths(&self) -> bool {
        let apart = match &self.pattern {
            Pattern::AtOnce(AtOnce::Permutation(_) | AtOnce::Ring | AtOnce::Bisection(_)) => true,
            Pattern::AtOnce(_) => false,
            _ => true,
        };
        let bandwidth = self.metric == TestMetric::Bandwidth && !self.bidirectional;
        apart && self.collective.is_none() && bandwidth && self.qps.iter().min() != self.qps.iter().max()
    }

    /// Whether a flow is measured alone and beside an incast.
    pub fn has_victim(&self) -> bool {
        matches!(self.flows_at_once(), Some(AtOnce::Victim(_)))
    }

    /// Whether its pairs follow from where their ends are in the plan's topology.
    pub fn on_fabric(&self) -> bool {
        self.collective.is_none() && matches!(self.pattern, Pattern::Fabric(_))
    }
}
