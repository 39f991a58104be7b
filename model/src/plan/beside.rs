//! Traffic beside the flows of a test, between the same two hosts.

use railgauge_wire::{terms::Metric, unit::GigabitsPerSecond};
use serde::{Deserialize, Serialize};

use super::model::Test;

/// TCP connections between the interfaces of the NICs that a flow uses, or a command on its hosts. The flow is measured without, then
/// beside each number of connections or beside the command, in every repeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Numbers of connections in each direction, rising, each once; zero alone beside a command.
    pub flows: Vec<u32>,
    pub direction: Way,
    /// How fast all connections of one direction send together; as fast as they go if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<GigabitsPerSecond>,
    /// The command, in place of connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
}

/// A command that the agents run beside a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Its words; `{host}`, `{name}`, `{user}` and `{port}` are what the plan says of the host.
    pub words: Vec<String>,
    pub on: On,
}

/// On which hosts of a flow a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum On {
    /// Where its bytes leave.
    Source,
    Destination,
    Both,
}

impl On {
    /// All of them, as plans write them.
    pub const WORDS: [(&'static str, Self); 3] =
        [("source", Self::Source), ("destination", Self::Destination), ("both", Self::Both)];

    /// As plans write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Destination => "destination",
            Self::Both => "both",
        }
    }

    /// In words: `on both hosts`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Source => "on its source",
            Self::Destination => "on its destination",
            Self::Both => "on both hosts",
        }
    }
}

/// Which way traffic goes, seen from the flow that it runs beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Where the bytes of the flow go.
    Same,
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

    /// What is measured again beside each flow alone: the numbers of neighbours, none first. Zero neighbours are a command.
    pub fn neighbours(&self) -> Vec<Option<u32>> {
        let beside = self.beside.iter().flat_map(|beside| beside.flows.iter().copied().map(Some));
        std::iter::once(None).chain(beside).collect()
    }
}

/// Whether a metric is a loss against the same flow alone.
pub const fn is_loss(metric: Metric) -> bool {
    matches!(metric, Metric::VictimLoss | Metric::BesideLoss)
}
