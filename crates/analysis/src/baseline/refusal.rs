//! Why a value cannot be compared with a baseline.

use railgauge_wire::Metric;
use serde::Serialize;

use crate::{
    settings::Difference,
    words::{count, number},
};

const NAMED: usize = 3;
const UNKNOWN: &str = "unknown";

/// Values are in the metric's unit, the spread in percent of the baseline's centre.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "refusal", rename_all = "kebab-case")]
pub enum Refusal {
    #[error("the baseline has no test {test}")]
    NoTest { test: String },
    #[error("the baseline was measured with other settings: {difference}")]
    OtherSettings { difference: Difference },
    #[error(
        "{} is worse than the limit, but within {deviations} standard deviations of the baseline, whose values scatter by {} %",
        number(*.value), number(*.spread_percent)
    )]
    Ordinary { value: f64, limit: f64, deviations: f64, spread_percent: f64 },
    #[error("nothing carried its bytes")]
    NothingCarried,
    #[error("the baseline has no {metric} of such a link")]
    NoSuchLink { metric: Metric },
    #[error("what its hosts are is not known")]
    HostsUnknown,
    #[error("the baseline is of other hardware: {}", named(.differences))]
    OtherHardware { differences: Vec<Difference> },
    #[error("the baseline rests on {} of such a link, and {needed} are needed", count(*.values, "value"))]
    FewValues { values: usize, needed: usize },
}

fn named(differences: &[Difference]) -> String {
    differences.iter().take(NAMED).map(|one| one.words(UNKNOWN)).collect::<Vec<_>>().join(", ")
}
