//! A plan and the number of rails of every host, turned into rounds in which no NIC is used twice. Pure and seeded.

use railgauge_wire::terms::{Aim, Fabric, Memory, Op, Service};
use serde::{Deserialize, Serialize};

/// One end of a case: a host and which of its rails.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Port {
    /// Host name in the plan.
    pub host: String,
    /// Rail, counted from 0.
    pub rail: u32,
}

/// A pair of ends that share a link through all their cases: queue pairs stay up between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Where the bytes of a write come from; the initiator.
    pub from: Port,
    /// The other end.
    pub to: Port,
}

/// What is measured once on a flow: the cells of a test's matrix that are not the pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Operation.
    pub op: Op,
    /// Loop.
    pub aim: Aim,
    /// Verbs or TCP.
    pub fabric: Fabric,
    /// Queue pair service.
    pub service: Service,
    /// Where the bytes live.
    pub memory: Memory,
    /// Message size in bytes.
    pub size: u64,
    /// Queue pairs or streams.
    pub qps: u32,
}

/// Flows that run at the same time: no two share a [`Port`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Position of the test in the plan.
    pub test: usize,
    /// Number of the round in its test, counted from 0.
    pub number: u32,
    /// The flows.
    pub flows: Vec<Flow>,
}

/// Everything a run will do, in order. Every flow of a round runs every cell of its test, in the cells' order, and
/// the whole list of a test's rounds is run `repeats` times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Cells of each test, by the test's position in the plan.
    pub cells: Vec<Vec<Cell>>,
    /// All rounds, tests in the plan's order.
    pub rounds: Vec<Round>,
}
