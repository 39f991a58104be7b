//! Finds the bad part of a cluster from a test's pairs, with [`railgauge_stats::localise`].
//!
//! Each test is searched in several views (`pick`), each with its own [`Localisation`]: the usual view is first, the
//! others hold only what none before them named. Only trusted values count. A suspect is not yet a verdict: [`further`]
//! names pairs to measure again, after which every suspect is confirmed or cleared.

mod clusters;
mod conditions;
mod crossing;
mod decide;
mod further;
mod groups;
mod lanes;
mod levels;
mod losses;
mod meanwhile;
mod merged;
mod names;
mod node;
mod noisy;
mod over_time;
mod pick;
mod probe;
mod rates;
mod remedies;
mod search;
mod told;
mod waived;

use std::sync::Arc;

use foldhash::HashMap;
use railgauge_model::{plan::model::Test, schedule::Cell};
use railgauge_stats::localise::{Findings, Judgement, Suspect};
use railgauge_wire::{Bytes, Metric};
use serde::Serialize;

use super::{journal::Journal, row::Row};
use crate::case::CaseResult;

pub use crossing::AcrossRails;
pub use further::further;
pub use groups::GroupsUnlike;
pub use levels::LevelOf;
pub use names::only;
pub use noisy::TooNoisy;
pub use over_time::OverTime;
pub(crate) use pick::Scatter;
pub use pick::{Repeats, Searched};
pub use railgauge_stats::localise::Way;
pub use rates::{CarryLess, Lesser};
pub use search::localise;
pub use told::{
    Alike, Cluster, Confirmation, DecidedBy, Further, Good, Lane, Named, OpenReason, PartName, Probe, Standing,
    TOGETHER, TwoClusters, Which,
};
use told::{percent, value};
pub(crate) use waived::waives_flow;

pub(crate) use crossing::Crossing;
pub(crate) use names::{Names, One};
pub(crate) use pick::View;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Localisation {
    pub test: String,
    /// `pair`, `group` for a collective, or `part` within hosts.
    pub counted: &'static str,
    pub metric: Metric,
    #[serde(skip_serializing_if = "Repeats::is_median")]
    pub repeats: Repeats,
    /// Whether its view is not the usual one; then it has only what stands out there.
    #[serde(skip)]
    pub is_extra: bool,
    pub unit: String,
    pub size_bytes: Bytes,
    pub pairs: usize,
    /// Without a trusted value: not judged.
    pub missing: usize,
    /// Hosts without a trusted value of any pair or group: nothing is known about them.
    #[serde(skip)]
    pub unmeasured: Vec<String>,
    pub good: Vec<Good>,
    /// Worst first.
    pub suspects: Vec<Named>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<Further>,
    pub two_clusters: Option<TwoClusters>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<Alike>,
    /// How many hosts (within hosts: parts) have a value and how many are needed, if they are too few to distinguish a part.
    #[serde(skip)]
    pub too_few: Option<[usize; 2]>,
    /// Pairs that scatter too much for a bad one to stand out: their presence rules out the statement that nothing is bad.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_noisy: Option<TooNoisy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTime>,
    /// Why no part explains what is wrong in a collective: then nothing can be called good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexplained: Option<String>,
    /// Neither good nor bad, because no good pair shows them to be good: `gpu07 rail 3`.
    #[serde(skip)]
    pub unjudged: Vec<String>,
    /// For every judged case, the position in `good` of what it was compared with, or its kind if there was none.
    #[serde(skip)]
    pub level_of: LevelOf,
    pub remarks: Vec<String>,
    #[serde(skip)]
    pub probes: Vec<Probe>,
    #[serde(skip)]
    pub cell: Option<Cell>,
    #[serde(skip)]
    raw: Vec<Suspect>,
    #[serde(skip)]
    screen: Option<Arc<Screen>>,
    /// Share of the ceiling that good pairs reach, if below 90 % and no limit of the plan judges it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_of_ceiling: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lossy: Vec<PartName>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lesser: Vec<Lesser>,
    /// How much worse pairs across rails are than pairs on one rail, in percent of the metric, where all are alike:
    /// within groups, between them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub across_rails_percent: Vec<f64>,
    #[serde(skip)]
    judgements: Vec<Judgement>,
    #[serde(skip)]
    bounds: rates::Bounds,
    #[serde(skip)]
    conditions: conditions::Conditions,
    /// With too few hosts to confirm anything: the value between both kinds, in the metric's unit.
    #[serde(skip)]
    low_below: f64,
    #[serde(skip)]
    confirms: bool,
    /// Whether a pair's value covers one direction only.
    #[serde(skip)]
    pub(crate) directed: bool,
    /// Smallest effect that gets a name, as a difference of logarithms.
    #[serde(skip)]
    least: f64,
    /// Standard deviation of good pairs, as a difference of logarithms; 0 if unknown.
    #[serde(skip)]
    noise: f64,
}

#[derive(Debug, Clone, PartialEq)]
struct Screen {
    findings: Findings,
    names: Names,
    reasons: Vec<String>,
}

/// Hosts of the test without a value in any case, by name: all failed, or none was planned.
fn unmeasured<'c>(test: &Test, cases: impl Iterator<Item = (&'c CaseResult<'c>, bool)>) -> Vec<String> {
    let mut hosts: HashMap<&str, bool> = test.hosts.iter().map(|host| (host.as_str(), false)).collect();
    for (result, has_value) in cases {
        let flow = &result.case.flow;
        for port in [&flow.from, &flow.to].into_iter().chain(&flow.members) {
            *hosts.entry(&port.host).or_default() |= has_value;
        }
    }
    let mut without: Vec<String> =
        hosts.into_iter().filter(|(_, has_value)| !has_value).map(|(host, _)| host.to_owned()).collect();
    without.sort_unstable();
    without
}

impl Localisation {
    fn of(journal: &Journal, first: &CaseResult<'_>, row: &Row, counted: &'static str) -> Self {
        Self {
            test: row.test.to_string(),
            counted,
            metric: row.metric,
            unit: row.unit().to_owned(),
            size_bytes: row.size_bytes,
            cell: Some(Cell::clone(&first.case.cell)),
            confirms: journal.plan.localise.confirm,
            directed: !first.test.bidirectional,
            least: (journal.plan.localise.least_percent / 100.0).ln_1p(),
            ..Self::default()
        }
    }

    /// `None` for others than pairs, which have one view.
    pub fn searched(&self) -> Option<Searched> {
        let Self { metric, repeats, size_bytes, .. } = *self;
        (self.counted == "pair").then_some(Searched { metric, repeats, size_bytes })
    }

    /// In the metric's unit, from the scale of the judgement, on which higher is better.
    fn metric_value(&self, log: f64) -> f64 {
        value(self.metric.better(), log)
    }

    /// In percent of the metric, from a difference on that scale.
    fn percent(&self, log: f64) -> f64 {
        percent(self.metric.better(), log)
    }

    /// In percent of the metric, the smaller end first.
    fn interval(&self, log: Option<(f64, f64)>) -> Option<(f64, f64)> {
        log.map(|(low, high)| (self.percent(low), self.percent(high))).map(|(a, b)| (a.min(b), a.max(b)))
    }

    /// `None` unless they are worse and all alike.
    pub fn across_rails(&self) -> Option<AcrossRails> {
        let percent = self.across_rails_percent.clone();
        (!percent.is_empty()).then(|| AcrossRails { percent, better: self.metric.better() })
    }

    /// Without ends that the plan waives; `None` if none remains.
    pub fn carry_less(&self) -> Option<CarryLess> {
        let ends: Vec<Lesser> = self.lesser.iter().filter(|end| !end.waived).cloned().collect();
        let others = self.lesser.first()?.others;
        (!ends.is_empty()).then(|| CarryLess { ends, others, unit: self.unit.clone() })
    }
}
