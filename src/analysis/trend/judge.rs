//! Watches every series, and groups what moved together.

use std::{collections::BTreeMap, thread};

use railgauge_stats::{
    Refusal,
    changepoint::{self, End, Kind, Rules, Watch, watch},
    robust::median,
    shift::Interval,
};
use railgauge_wire::terms::{Better, Metric};

use super::{
    Alert, Change, Options, Rule, Series, State, Way, date,
    history::{Collected, Everything},
    reason,
};
use crate::analysis::history::{Cause, Labels, Moved};

/// Days without a value after which a series has ended.
const ENDED: i64 = 14;
/// Nights of a level from which on the slow rule can alert.
const WATCHED: usize = 28;
/// Days around a change in which what was changed on purpose is named beside it.
const NEARBY: i64 = 3;

/// Every series with its alerts, in the order in which they began.
pub(super) fn watch_all(everything: &Everything, options: &Options) -> Result<Vec<Series>, Refusal> {
    let rules = Rules { least: (options.least_percent / 100.0).ln_1p(), within_share: None };
    let all = &everything.series;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = all.len().div_ceil(threads).max(1);
    let watched: Vec<Result<Watch, Refusal>> = thread::scope(|scope| {
        let work = |part: &[Collected]| part.iter().map(|series| watch(&series.nights, &rules)).collect::<Vec<_>>();
        let parts: Vec<_> = all.chunks(part).map(|part| scope.spawn(move || work(part))).collect();
        // A thread that panicked has said so; its panic goes on here.
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
    });
    all.iter().zip(watched).map(|(series, watch)| Ok(of_series(everything, series, &watch?))).collect()
}

fn of_series(everything: &Everything, collected: &Collected, watch: &Watch) -> Series {
    let (subject, metric) = (&everything.subjects[collected.subject], collected.metric);
    let middle = |runs: &[f64]| median(runs).map_or(f64::NAN, f64::exp);
    let points: Vec<(i64, f64)> = collected.nights.iter().map(|night| (night.day, middle(&night.runs))).collect();
    let ends = (points.first().map_or(0, |(day, _)| *day), points.last().map_or(0, |(day, _)| *day));
    let alive = everything.nights.last().is_none_or(|last| last - ends.1 <= ENDED);
    let alerts = watch.alerts.iter().map(|alert| of_alert(alert, metric, alive, &points));
    Series {
        kind: subject.kind(metric),
        link: subject.flow.name(),
        metric,
        better: metric.better(),
        plan: collected.plan.chars().take(12).collect(),
        hardware: collected.hardware.clone(),
        span: (date(ends.0), date(ends.1)),
        nights: points.len(),
        alive,
        level: (date(watch.since), watch.history),
        centre: watch.centre.exp(),
        scale_percent: percent(watch.scale),
        watched: watch.history >= WATCHED,
        alerts: alerts.collect(),
        repeat: watch.repeat.filter(|_| alive),
        points,
    }
}

fn of_alert(alert: &changepoint::Alert, metric: Metric, alive: bool, points: &[(i64, f64)]) -> Alert {
    let (state, end) = match alert.end {
        End::Open if alive => (State::Open, None),
        End::Open => (State::Ended, points.last().map(|(day, _)| *day)),
        End::WentAway(day) => (State::WentAway, Some(day)),
        End::Overtaken(day) => (State::Overtaken, Some(day)),
    };
    let rose = alert.effect > 0.0;
    let mut found = Alert {
        since: date(alert.since),
        day: alert.since,
        raised: date(alert.raised),
        rule: if alert.kind == Kind::Fast { Rule::Fast } else { Rule::Slow },
        way: if rose == (metric.better() == Better::Higher) { Way::Better } else { Way::Worse },
        percent: percent(alert.effect),
        interval: alert.interval.map(|Interval { low, high, .. }| (percent(low), percent(high))),
        strength: alert.strength.abs(),
        nights: alert.nights,
        state,
        end: end.map(date),
        back: end.filter(|_| state == State::WentAway),
        reason: String::new(),
    };
    found.reason = reason::alert(&found);
    found
}

/// Alerts grouped by what they have in common: those that last first, then the latest.
pub(super) fn changes(everything: &Everything, series: &[Series]) -> Vec<Change> {
    let mut labels = Labels::default();
    everything.series.iter().for_each(|one| labels.add(&everything.subjects[one.subject], &everything.groups));
    let alerts: Vec<(usize, usize)> =
        series.iter().enumerate().flat_map(|(at, one)| (0..one.alerts.len()).map(move |alert| (at, alert))).collect();
    let moved = |&(at, alert): &(usize, usize)| {
        let alert = &series[at].alerts[alert];
        let size = (alert.percent / 100.0).ln_1p().abs();
        Moved { series: at, day: alert.day, better: if alert.way == Way::Better { size } else { -size } }
    };
    let mut alone: Vec<bool> = vec![true; alerts.len()];
    let mut changes = Vec::new();
    for Cause { name, series: counts, day, members } in labels.causes(&alerts.iter().map(moved).collect::<Vec<_>>()) {
        members.iter().for_each(|&member| alone[member] = false);
        let members = members.into_iter().map(|member| alerts[member]).collect();
        changes.push(change(everything, series, name, day, counts, members));
    }
    for (&(at, alert), _) in alerts.iter().zip(alone).filter(|(_, alone)| *alone) {
        let one = &series[at];
        let name = format!("{}, {}", one.kind, one.link);
        changes.push(change(everything, series, name, one.alerts[alert].day, (1, 1), vec![(at, alert)]));
    }
    changes.sort_by_key(|change| (change.state, change.way, change.series.0 == 1, std::cmp::Reverse(change.day)));
    changes
}

fn change(
    everything: &Everything,
    series: &[Series],
    name: String,
    day: i64,
    counts: (usize, usize),
    mut members: Vec<(usize, usize)>,
) -> Change {
    let alert = |&(at, alert): &(usize, usize)| &series[at].alerts[alert];
    members.sort_by(|a, b| alert(b).percent.abs().total_cmp(&alert(a).percent.abs()));
    let mut by_metric: BTreeMap<Metric, Vec<f64>> = BTreeMap::new();
    for member in &members {
        by_metric.entry(series[member.0].metric).or_default().push(alert(member).percent);
    }
    let effects = by_metric.into_iter().filter_map(|(metric, all)| Some((metric, median(&all).ok()?)));
    let near = |epoch: &&super::Epoch| (epoch.day - day).abs() <= NEARBY;
    let mut change = Change {
        name,
        since: date(day),
        day,
        way: members.first().map_or(Way::Worse, |member| alert(member).way),
        state: members.iter().map(|member| alert(member).state).min().unwrap_or(State::Open),
        series: counts,
        effects: effects.collect(),
        epochs: everything.epochs.iter().filter(near).map(|epoch| format!("{}: {}", epoch.date, epoch.what)).collect(),
        sentence: String::new(),
        members,
    };
    change.sentence = reason::change(&change, series);
    change
}

/// A difference of logarithms in percent.
fn percent(difference: f64) -> f64 {
    100.0 * difference.exp_m1()
}
