//! Sums of several consecutive changes for the worse of one series.

use std::collections::BTreeMap;

use railgauge_stats::robust::median;
use serde::Serialize;

use super::{Alert, Rule, Series, State, Way, reason};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Total {
    pub kind: String,
    /// First night of the first of them.
    pub since: String,
    pub percent: f64,
    pub series: (usize, usize),
    pub sentence: String,
}

/// Largest first.
pub(super) fn totals(series: &[Series]) -> Vec<Total> {
    let mut kinds: BTreeMap<&str, Vec<&Series>> = BTreeMap::new();
    series.iter().filter(|one| one.alive).for_each(|one| kinds.entry(&one.kind).or_default().push(one));
    let total = |(kind, all): (&str, Vec<&Series>)| {
        let several: Vec<&Series> = all.iter().copied().filter(|one| standing(one).count() > 1).collect();
        let percent = median(&several.iter().filter_map(|one| against_good(one)).collect::<Vec<f64>>()).ok()?;
        let since = several.iter().flat_map(|one| standing(one)).map(|alert| alert.since.as_str()).min()?;
        let series = (several.len(), all.len());
        let sentence = reason::total(percent, since, series);
        Some(Total { kind: kind.to_owned(), since: since.to_owned(), percent, series, sentence })
    };
    let mut totals: Vec<Total> = kinds.into_iter().filter_map(total).collect();
    totals.sort_by(|a, b| b.percent.abs().total_cmp(&a.percent.abs()));
    totals
}

pub(super) fn standing(one: &Series) -> impl Iterator<Item = &Alert> {
    let of_level = |rule| matches!(rule, Rule::Step | Rule::Drift);
    one.alerts.iter().filter(move |a| a.way == Way::Worse && a.state == State::Open && of_level(a.rule))
}

/// Percent; `None` without a present level.
pub(super) fn against_good(one: &Series) -> Option<f64> {
    (one.missing == 0).then(|| 100.0 * (one.centre / one.accepted - 1.0)).filter(|percent| percent.is_finite())
}
