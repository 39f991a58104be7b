//! Watches series, and makes alerts of what the statistics find.

use railgauge_stats::{
    Refusal,
    changepoint::{self, AlertEnd, Kind, Night, Rules, Watch, watch},
    shift::Interval,
};
use railgauge_wire::Metric;

use super::{Alert, Options, Rule, State, Way, date, parts::sign, reason};
use crate::parallel::map_few;

/// Difference of logarithms that represents a missing value.
const FARTHEST: f64 = 7.0;

impl Alert {
    /// As a difference of logarithms above zero.
    pub(super) fn size(&self) -> f64 {
        size(self.percent)
    }
}

/// A change in percent as a difference of logarithms above zero.
pub(super) fn size(percent: f64) -> f64 {
    (percent / 100.0).ln_1p().abs().min(FARTHEST)
}

pub(super) fn rules(options: &Options) -> Rules {
    Rules { least: (options.least_percent / 100.0).ln_1p() }
}

pub(super) fn watch_each(all: &[&[Night]], rules: &Rules) -> Result<Vec<Watch>, Refusal> {
    map_few(all, usize::MAX, |nights| watch(nights, rules)).into_iter().collect()
}

pub(super) fn of_alert(alert: &changepoint::Alert, metric: Metric, alive: bool, points: &[(i64, f64)]) -> Alert {
    let (state, end) = match alert.end {
        AlertEnd::Open if alive => (State::Open, None),
        AlertEnd::Open => (State::Ended, points.last().map(|(day, _)| *day)),
        AlertEnd::WentAway(day) => (State::WentAway, Some(day)),
        AlertEnd::Overtaken(day) => (State::Overtaken, Some(day)),
        AlertEnd::Accepted(day) => (State::Accepted, Some(day)),
    };
    let sign = sign(metric);
    let interval = |Interval { low, high, .. }| {
        let (low, high) = (percent(sign * low), percent(sign * high));
        (low.min(high), low.max(high))
    };
    let mut found = Alert {
        since: date(alert.since),
        day: alert.since,
        raised: date(alert.raised),
        rule: match alert.kind {
            Kind::Step => Rule::Step,
            Kind::Drift => Rule::Drift,
            Kind::Intermittent => Rule::Intermittent,
        },
        way: if alert.effect > 0.0 { Way::Better } else { Way::Worse },
        percent: percent(sign * alert.effect),
        interval: alert.interval.map(interval),
        strength: alert.strength.abs(),
        nights: alert.nights,
        lost: alert.lost,
        state,
        end: end.map(date),
        back: end.filter(|_| state == State::WentAway),
        taken: None,
        reason: String::new(),
    };
    found.reason = reason::alert(&found);
    found
}

/// From a difference of logarithms.
pub(super) fn percent(difference: f64) -> f64 {
    100.0 * difference.exp_m1()
}
