//! Missing and impossible values of a sample, with the host of each.

use railgauge_wire::{Bytes, Metric, Nanoseconds};
use serde::Serialize;

use super::{Contradiction, Stray};
use crate::value::Senseless;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Implausible {
    pub absent: Vec<Absent>,
    pub impossible: Vec<Impossible>,
}

#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{host}: {what}")]
pub struct Absent {
    pub host: String,
    #[serde(flatten)]
    pub what: Lack,
}

#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "lack", rename_all = "kebab-case")]
pub enum Lack {
    #[error("open: the sample does not say what carried it")]
    Link,
    #[error("measure: the window holds no measurement ({operations} operations, {bytes} B, {elapsed} ns)")]
    Window { operations: u64, bytes: Bytes, elapsed: Nanoseconds },
    #[error("measure: the responder counted nothing")]
    Responder,
    #[error("measure: the latency has no samples")]
    LatencySamples,
    /// The value is in the metric's unit.
    #[error("measure: a {metric} of {value}")]
    AboveZero { metric: Metric, value: f64 },
    #[error("measure: the sample holds no {metric}")]
    Metric { metric: Metric },
    #[error("measure: {why}")]
    Sense { why: Senseless },
}

#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "impossible", rename_all = "kebab-case")]
pub enum Impossible {
    #[error("{host}: connect: the host never answered in this run")]
    Stranger { host: String },
    /// Contradicts itself, the link, or the controller's clock.
    #[error("{host}: measure: {what}")]
    Sample { host: String, what: Contradiction },
    /// An end of a flow at once ran at another time.
    #[error("{0}")]
    Stray(Stray),
}
