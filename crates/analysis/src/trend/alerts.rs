//! Watches series, and makes alerts of what the statistics find.

use railgauge_stats::{
    Refusal,
    changepoint::{self, AlertEnd, Night, Rules, Watch, watch},
    shift::Interval,
};
use railgauge_wire::Metric;

use super::{Alert, Options, Rule, Series, State, Way, date, day, parts::sign, reason};
use crate::parallel::map_few;

/// Difference of logarithms that represents a missing value.
const FARTHEST: f64 = 7.0;

impl Alert {
    /// First night back at the old level, in days from 1970.
    pub fn back(&self) -> Option<i64> {
        day(self.end.as_deref().filter(|_| self.state == State::WentAway)?).ok()
    }

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
        rule: alert.kind,
        way: if alert.effect > 0.0 { Way::Better } else { Way::Worse },
        percent: percent(sign * alert.effect),
        interval: alert.interval.map(interval),
        strength: alert.strength.abs(),
        nights: alert.nights,
        lost: alert.lost,
        state,
        end: end.map(date),
        taken: None,
        reason: String::new(),
    };
    found.reason = reason::alert(&found);
    found
}

/// An open change from its first night to the last one, which other series show.
pub(super) fn shown(
    kind: Rule,
    (since, raised): (i64, i64),
    effect: f64,
    strength: f64,
    nights: (usize, usize),
) -> changepoint::Alert {
    changepoint::Alert { raised, since, kind, effect, interval: None, strength, nights, lost: 0, end: AlertEnd::Open }
}

impl Series {
    pub(super) fn is_worse(&self) -> bool {
        self.alerts.iter().any(|alert| alert.way == Way::Worse && alert.state == State::Open)
    }

    /// Adds low nights that come and go: as a suspicion if they are not sure. `with` says what else was low then.
    pub(super) fn flickers(&mut self, found: &changepoint::Alert, is_sure: bool, with: &str) {
        let alert = of_alert(found, self.metric, true, &[]);
        if is_sure {
            self.suspicion = None;
            self.alerts.push(Alert { reason: alert.reason.clone() + with, ..alert });
        } else if self.suspicion.is_none() {
            self.suspicion = Some(Alert { reason: reason::suspicion(&alert) + with, ..alert });
        }
    }
}

/// From a difference of logarithms.
pub(super) fn percent(difference: f64) -> f64 {
    100.0 * difference.exp_m1()
}
