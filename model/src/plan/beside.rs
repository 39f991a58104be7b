use railgauge_wire::{terms::Metric, unit::GigabitsPerSecond};
use serde::{Deserialize, Serialize};

use super::model::Test;

/// TCP connections between the interfaces of a flow's NICs, or a command on its hosts. In every repeat the flow is measured without, then
/// with each number of connections or with the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Numbers of connections per direction, ascending, unique; only zero with a command.
    pub flows: Vec<u32>,
    pub direction: Way,
    /// Total rate of all connections of one direction; unlimited if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<GigabitsPerSecond>,
    /// Replaces connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Already split; `{host}`, `{name}`, `{user}` and `{port}` are replaced with values of the host.
    pub words: Vec<String>,
    pub on: On,
}

railgauge_wire::words! {
    On {
        Source = "source",
        Destination = "destination",
        Both = "both",
    }
}

impl On {
    /// `on both hosts`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Source => "on its source",
            Self::Destination => "on its destination",
            Self::Both => "on both hosts",
        }
    }
}

railgauge_wire::words! {
    Way {
        Same = "same",
        Opposite = "opposite",
        Both = "both",
    }
}

impl Way {
    pub const fn ways(self) -> (bool, bool) {
        (!matches!(self, Self::Opposite), !matches!(self, Self::Same))
    }
}

impl Test {
    /// Whether all flows of a round are timed from one planned start: they share NICs on purpose, or other traffic runs alongside.
    pub fn timed_together(&self) -> bool {
        self.at_once() || self.beside.is_some()
    }

    /// The numbers of neighbours to measure, none first. Zero means a command.
    pub fn neighbours(&self) -> Vec<Option<u32>> {
        let beside = self.beside.iter().flat_map(|beside| beside.flows.iter().copied().map(Some));
        std::iter::once(None).chain(beside).collect()
    }
}

pub const fn is_loss(metric: Metric) -> bool {
    matches!(metric, Metric::VictimLoss | Metric::BesideLoss)
}
