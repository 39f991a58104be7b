//! Effects of time on all values of a test: they sink, rise, or step.
//!
//! Uses the median over the pairs of every moment (a repeat of a round), so that a bad part has no effect. Subtracts
//! the result from the values before the search for parts.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use railgauge_stats::{
    course::{Course, course},
    localise::Pair,
    robust::median,
};
use serde::Serialize;

use super::{Names, One, View, told::percent};
use crate::words::change;

/// Least change reported, as a difference of logarithms: clusters wander by less.
const LEAST: f64 = 0.05;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverTime {
    /// The last against the first, in percent of the metric.
    pub change_percent: f64,
    /// When they changed; `None` for a drift.
    pub step_at: Option<String>,
}

impl fmt::Display for OverTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = change(self.change_percent);
        match &self.step_at {
            Some(at) => write!(f, "the values of all pairs changed by {by} at {at}"),
            None => write!(f, "the values of all pairs drifted by {by} during the run"),
        }
    }
}

type Moment = (Option<Timestamp>, u32, u32);

/// Subtracts the effects of time from the values of `pairs` (those of `cases`) and returns them.
pub(super) fn set_aside(view: &View<'_>, names: &Names, pairs: &mut [Pair], cases: &[&One<'_>]) -> Option<OverTime> {
    let kind = |pair: &Pair| names.is_within(pair.from, pair.to);
    let centre = |within: bool| {
        let of: Vec<f64> = pairs.iter().filter(|pair| kind(pair) == within).map(|pair| pair.value).collect();
        median(&of).unwrap_or_default()
    };
    let centres = [centre(false), centre(true)];
    let mut moments: BTreeMap<(u32, u32), (Option<Timestamp>, Vec<f64>)> = BTreeMap::new();
    for (pair, one) in pairs.iter().zip(cases) {
        let off = pair.value - one.log? - centres[usize::from(kind(pair))];
        for (repeat, log, started) in view.repeats_of(one) {
            let moment = moments.entry((one.result.case.round, repeat)).or_default();
            moment.0 = moment.0.into_iter().chain(started).min();
            moment.1.push(log + off);
        }
    }
    let mut order: Vec<(Moment, f64)> = moments
        .into_iter()
        .filter_map(|((round, repeat), (at, logs))| Some(((at, round, repeat), median(&logs).ok()?)))
        .collect();
    order.sort_unstable_by_key(|(moment, _)| *moment);
    let values: Vec<f64> = order.iter().map(|(_, value)| *value).collect();
    let course: Course = course(&values, LEAST).ok().flatten()?;
    let mut of_round: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (at, ((_, round, _), _)) in order.iter().enumerate() {
        of_round.entry(*round).or_default().push(course.at(at));
    }
    for (pair, one) in pairs.iter_mut().zip(cases) {
        pair.value -= of_round.get(&one.result.case.round).and_then(|of| median(of).ok()).unwrap_or_default();
    }
    let step_at = course.step.map(|step| order[step].0.0.map_or("an unknown time".to_owned(), |at| format!("{at:.0}")));
    Some(OverTime { change_percent: percent(view.metric.better(), course.by), step_at })
}
