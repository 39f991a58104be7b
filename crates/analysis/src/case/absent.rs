//! Missing and impossible values of a sample, with the host of each.

use std::fmt;

use railgauge_wire::{Bytes, Metric, Nanoseconds};
use serde::Serialize;

use super::{Contradiction, Stray};
use crate::value::Senseless;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Implausible {
    pub absent: Vec<Absent>,
    pub impossible: Vec<Impossible>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Absent {
    pub host: String,
    #[serde(flatten)]
    pub what: Lack,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "lack", rename_all = "kebab-case")]
pub enum Lack {
    Link,
    Window {
        operations: u64,
        bytes: Bytes,
        elapsed: Nanoseconds,
    },
    Responder,
    LatencySamples,
    AboveZero {
        metric: Metric,
        /// In the metric's unit.
        value: f64,
    },
    Metric {
        metric: Metric,
    },
    Sense {
        why: Senseless,
    },
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        match &self.what {
            Lack::Link => write!(f, "{host}: open: the sample does not say what carried it"),
            Lack::Window { operations, bytes, elapsed } => write!(
                f,
                "{host}: measure: the window holds no measurement ({operations} operations, {bytes} B, {elapsed} ns)"
            ),
            Lack::Responder => write!(f, "{host}: measure: the responder counted nothing"),
            Lack::LatencySamples => write!(f, "{host}: measure: the latency has no samples"),
            Lack::AboveZero { metric, value } => write!(f, "{host}: measure: a {metric} of {value}"),
            Lack::Metric { metric } => write!(f, "{host}: measure: the sample holds no {metric}"),
            Lack::Sense { why } => write!(f, "{host}: measure: {why}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "impossible", rename_all = "kebab-case")]
pub enum Impossible {
    /// From a host that never answered in the run.
    Stranger { host: String },
    /// Contradicts itself, the link, or the controller's clock.
    Sample { host: String, what: Contradiction },
    /// An end of a flow at once ran at another time.
    Stray(Stray),
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stranger { host } => write!(f, "{host}: connect: the host never answered in this run"),
            Self::Sample { host, what } => write!(f, "{host}: measure: {what}"),
            Self::Stray(stray) => stray.fmt(f),
        }
    }
}
