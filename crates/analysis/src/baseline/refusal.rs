//! Why a value cannot be compared with a baseline.

use std::fmt;

use railgauge_wire::Metric;
use serde::Serialize;

use crate::{
    settings::Difference,
    words::{count, number},
};

const NAMED: usize = 3;
const UNKNOWN: &str = "unknown";

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "refusal", rename_all = "kebab-case")]
pub enum Refusal {
    NoTest {
        test: String,
    },
    OtherSettings {
        difference: Difference,
    },
    Ordinary {
        /// Observed, in the metric's unit.
        value: f64,
        /// In the metric's unit.
        limit: f64,
        /// Standard deviations from the baseline.
        deviations: f64,
        /// Of the baseline, in percent of its centre.
        spread_percent: f64,
    },
    NothingCarried,
    NoSuchLink {
        metric: Metric,
    },
    HostsUnknown,
    OtherHardware {
        differences: Vec<Difference>,
    },
    FewValues {
        values: usize,
        needed: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTest { test } => write!(f, "the baseline has no test {test}"),
            Self::OtherSettings { difference } => {
                write!(f, "the baseline was measured with other settings: {difference}")
            }
            Self::Ordinary { value, deviations, spread_percent, .. } => {
                let (value, spread) = (number(*value), number(*spread_percent));
                write!(
                    f,
                    "{value} is worse than the limit, but within {deviations} standard deviations of the baseline, whose values \
                     scatter by {spread} %"
                )
            }
            Self::NothingCarried => f.write_str("nothing carried its bytes"),
            Self::NoSuchLink { metric } => write!(f, "the baseline has no {metric} of such a link"),
            Self::HostsUnknown => f.write_str("what its hosts are is not known"),
            Self::OtherHardware { differences } => {
                let named: Vec<String> = differences.iter().take(NAMED).map(|one| one.words(UNKNOWN)).collect();
                write!(f, "the baseline is of other hardware: {}", named.join(", "))
            }
            Self::FewValues { values, needed } => {
                let values = count(*values, "value");
                write!(f, "the baseline rests on {values} of such a link, and {needed} are needed")
            }
        }
    }
}
