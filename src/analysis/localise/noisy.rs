//! Results that scatter so much that nothing standing out does not mean that nothing is bad.

use std::fmt;

use railgauge_stats::localise::{Findings, HALF};
use railgauge_wire::terms::Better;
use serde::Serialize;

use super::{Good, Localisation, Which, percent};
use crate::analysis::words::{scatter, share};

/// Fewer good ones than this are told with their number.
const FEW: usize = 6;

/// Pairs that scatter so much that one at half the rate of the others would not stand out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TooNoisy {
    /// Which pairs, as in [`Good::which`].
    pub which: Which,
    pub n: usize,
    /// Standard deviation among good ones in percent of their centre.
    pub spread_percent: f64,
    /// From which difference on a single pair would stand out, in percent of the metric: below −50 for a bandwidth, above
    /// 100 for a latency.
    pub seen_from_percent: f64,
}

impl TooNoisy {
    /// Of good values, where a single one stands out from a difference of logarithms on that is more than half the rate.
    pub(super) fn of(&Good { which, spread_percent, n, .. }: &Good, seen_from: f64, better: Better) -> Option<Self> {
        let seen_from_percent = percent(better, -seen_from);
        (seen_from > HALF).then_some(Self { which, n, spread_percent, seen_from_percent })
    }
}

impl Localisation {
    /// The kind of pairs that scatters most, if one at half the rate would not stand out among them. Single pairs are the
    /// smallest parts that can be named, and a larger part takes less to be seen.
    pub(super) fn hidden_by_noise(&self, findings: &Findings) -> Option<TooNoisy> {
        let used = self.good.iter().zip(&findings.seen_from).enumerate();
        let used = used.filter(|(at, _)| findings.level_of.contains(at));
        let (_, (good, seen_from)) = used.max_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b))?;
        TooNoisy::of(good, *seen_from, self.metric.better())
    }
}

impl fmt::Display for TooNoisy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { which, n, spread_percent, seen_from_percent } = self;
        let which = if *which == Which::ALL { "pairs".to_owned() } else { which.to_string() };
        let (scatter, seen_from) = (scatter(*spread_percent), share(1.0 + seen_from_percent / 100.0));
        // Of few the spread is hardly known, however close together they lie.
        let scatter = if *n < FEW { format!("{scatter} and only {n} are good") } else { scatter };
        let beyond = if *seen_from_percent < 0.0 { "less" } else { "more" };
        write!(f, "{which} scatter by {scatter}, so that one stands out only at {seen_from} of the others or {beyond}")
    }
}
