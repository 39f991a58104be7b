//! Results that scatter too much to show that nothing is bad.

use std::fmt;

use railgauge_stats::localise::HALF;
use railgauge_wire::Better;
use serde::Serialize;

use super::told::{Good, Which, percent};
use crate::words::{scatter, share};

/// Number of good ones below which it is reported.
const FEW: usize = 6;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TooNoisy {
    /// As in [`Good::which`].
    pub which: Which,
    pub n: usize,
    /// Of good ones, in percent of their centre.
    pub spread_percent: f64,
    /// Difference from which on a single pair would stand out, in percent of the metric: below −50 for a bandwidth,
    /// above 100 for a latency.
    pub seen_from_percent: f64,
}

impl TooNoisy {
    /// Only if a single good value would need a difference of logarithms larger than that of half the rate to stand out.
    pub(super) fn of(&Good { which, spread_percent, n, .. }: &Good, seen_from: f64, better: Better) -> Option<Self> {
        let seen_from_percent = percent(better, -seen_from);
        (seen_from > HALF).then_some(Self { which, n, spread_percent, seen_from_percent })
    }
}

impl fmt::Display for TooNoisy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { which, n, spread_percent, seen_from_percent } = self;
        let which = if *which == Which::ALL { "pairs".to_owned() } else { which.to_string() };
        let (scatter, seen_from) = (scatter(*spread_percent), share(1.0 + seen_from_percent / 100.0));
        // With few values the spread is hardly known, however close together they are.
        let scatter = if *n < FEW { format!("{scatter} and only {n} are good") } else { scatter };
        let beyond = if *seen_from_percent < 0.0 { "less" } else { "more" };
        write!(
            f,
            "{which} scatter by {scatter}, so only one at {seen_from} of the others or {beyond} would be an outlier"
        )
    }
}
