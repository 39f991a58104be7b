//! Traffic beside the flows of a test, between the same two hosts.

use railgauge_wire::{terms::Metric, unit::GigabitsPerSecond};
use serde::{Deserialize, Serialize};

use super::model::Test;

/// TCP connections between the interfaces of the NICs that a flow uses. The flow is measured without them, then beside each number
/// of them, in every repeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Numbers of connections in each direction, rising, each once.
    pub flows: Vec<u32>,
    /// Which way they send.
    pub direction: Way,
    /// How fast all connections of one direction send together; as fast as they go if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<GigabitsPerSecond>,
}

/// Which way traffic goes, seen from the flow that it runs beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Where the bytes of the flow go.
    Same,
    /// Against them.
    Opposite,
    /// Both, each with so many connections.
    Both,
}

impl Way {
    /// All of them, as plans write them.
    pub const WORDS: [(&'static str, Self); 3] =
        [("same", Self::Same), ("opposite", Self::Opposite), ("both", Self::Both)];

    /// As plans write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Opposite => "opposite",
            Self::Both => "both",
        }
    }

    /// Whether connections send where the bytes of the flow go, and whether some send against them.
    pub const fn ways(self) -> (bool, bool) {
        (!matches!(self, Self::Opposite), !matches!(self, Self::Same))
    }
}

impl Test {
    /// Whether all flows of a round are timed from one planned start: they share NICs on purpose, or other traffic runs beside them.
    pub fn timed_together(&self) -> bool {
        self.at_once() || self.beside.is_some()
    }

    /// What is measured again beside each flow alone: the numbers of neighbours, none first.
    pub fn neighbours(&self) -> Vec<Option<u32>> {
        let beside = self.beside.iter().flat_map(|beside| beside.flows.iter().copied().map(Some));
        std::iter::once(None).chain(beside).collect()
    }
}

/// Whether a metric is a loss against the same flow alone.
pub const fn is_loss(metric: Metric) -> bool {
    matches!(metric, Metric::VictimLoss | Metric::BesideLoss)
}
