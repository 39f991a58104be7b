//! Watches every series, and groups changes at the same time.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_stats::{
    Refusal,
    changepoint::{Grade, Member, Night, Watch},
    robust::median,
};
use railgauge_wire::Metric;

use super::{
    Change, Collected, Everything, NEARBY, Options, Passing, Replaced, Series, Standing, State, Watched, Way,
    alerts::{of_alert, percent, rules, watch_each},
    behind, date, joint, moves,
    parts::sign,
    peers, reason, replaced,
};
use crate::history::{Cause, EVERY, Labels};

/// In the order in which they began.
pub(super) fn watch_all(everything: &Everything, options: &Options) -> Result<Vec<Series>, Refusal> {
    let rules = rules(options);
    let all = &everything.series;
    let nights: Vec<&[Night]> = all.iter().map(|one| one.nights.as_slice()).collect();
    let watched = watch_each(&nights, &rules)?;
    let of = |(series, watch)| of_series(everything, series, watch);
    let mut series: Vec<Series> = all.iter().zip(&watched).map(of).collect();
    peers::hold(everything, &mut series, options)?;
    let marks: Vec<_> = watched.into_iter().map(|watch| watch.marks).collect();
    joint::look(everything, &mut series, &marks);
    replaced::settle(everything, &mut series, options)?;
    behind::settle(everything, &mut series, rules.least);
    Ok(series)
}

fn of_series(everything: &Everything, collected: &Collected, watch: &Watch) -> Series {
    let (subject, metric) = (&everything.subjects[collected.subject], collected.metric);
    let sign = sign(metric);
    let value = |logarithm: f64| (sign * logarithm).exp();
    let middle = |runs: &[f64]| median(runs).map_or(f64::NAN, value);
    let points: Vec<(i64, f64)> = collected.valued().map(|night| (night.day, middle(&night.runs))).collect();
    let ends = (points.first().map_or(0, |(day, _)| *day), points.last().map_or(0, |(day, _)| *day));
    let (alive, missing) = match collected.standing {
        Standing::Present | Standing::Stopped => (true, 0),
        Standing::Missing(nights) => (true, nights),
        Standing::Gone | Standing::Replaced | Standing::Retired => (false, 0),
    };
    let alerts = watch.alerts.iter().map(|alert| of_alert(alert, metric, alive, &points));
    let mut series = Series {
        kind: subject.kind(metric),
        link: collected.part.as_ref().map_or_else(|| subject.flow.name(), super::parts::Part::name),
        part: collected.part.is_some(),
        metric,
        better: metric.better(),
        plan: collected.plan.chars().take(12).collect(),
        hardware: collected.hardware.clone(),
        span: (date(ends.0), date(ends.1)),
        nights: points.len(),
        state: match watch.grade {
            _ if !alive => Watched::Retired,
            _ if missing > 0 => Watched::Missing,
            _ if collected.standing == Standing::Stopped => Watched::Stopped,
            Grade::Full | Grade::Weak if watch.blind => Watched::TooNoisy,
            grade => Watched::of(grade),
        },
        missing,
        alive,
        noise_percent: watch.noise.map(percent),
        level: (date(watch.since), watch.history),
        centre: value(watch.centre),
        accepted: value(watch.accepted),
        scale_percent: percent(watch.scale),
        sees_percent: watch.sees.map(|drop| percent(-sign * drop).abs()),
        alerts: alerts.collect(),
        repeat: watch.repeat.filter(|_| alive && missing == 0).map(|repeat| sign * repeat.z),
        suspicion: None,
        behind: None,
        unanswered: collected.unanswered,
        points,
        place: collected.place,
    };
    if let Some(found) = watch.suspicious.as_ref().filter(|_| alive) {
        series.flickers(found, false, "");
    }
    series
}

/// Grouped by what they have in common.
pub(super) fn changes(
    everything: &Everything,
    passing: &Passing<'_>,
    series: &[Series],
    replaced: &[Replaced],
) -> Vec<Change> {
    // All series of a place are one, whatever the hardware, settings and name of the test.
    let mut labels = Labels::default();
    for place in &everything.places {
        labels.add(place.members.iter().flat_map(|&at| words(everything, at)).collect());
    }
    let alerts: Vec<(usize, usize)> =
        series.iter().enumerate().flat_map(|(at, one)| (0..one.alerts.len()).map(move |alert| (at, alert))).collect();
    let moved = |&(at, alert): &(usize, usize)| {
        let alert = &series[at].alerts[alert];
        let size = alert.size();
        Member { series: series[at].place, day: alert.day, effect: if alert.way == Way::Better { size } else { -size } }
    };
    let mut alone: Vec<bool> = vec![true; alerts.len()];
    let mut changes = Vec::new();
    for Cause { name, day, members, .. } in labels.causes(&alerts.iter().map(moved).collect::<Vec<_>>()) {
        members.iter().for_each(|&member| alone[member] = false);
        let members: Vec<(usize, usize)> = members.into_iter().map(|member| alerts[member]).collect();
        let changed: BTreeSet<usize> = members.iter().map(|(at, _)| series[*at].place).collect();
        // What was not measured then neither changed nor stayed.
        let then = |&place: &usize| changed.contains(&place) || was_measured(everything, place, day);
        let of: Vec<usize> = labels.carrying(&name).filter(then).collect();
        let name = if name == EVERY { of_links(everything, series, &changed, &of) } else { name };
        changes.push(change(everything, series, name, day, (changed.len(), of.len()), members));
    }
    for (&(at, alert), _) in alerts.iter().zip(alone).filter(|(_, alone)| *alone) {
        let one = &series[at];
        let name = format!("{}, {}", one.kind, one.link);
        changes.push(change(everything, series, name, one.alerts[alert].day, (1, 1), vec![(at, alert)]));
    }
    let mut behind: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for one in series {
        if let Some(part) = &one.behind {
            *behind.entry((part, &one.kind)).or_default() += 1;
        }
    }
    for change in &mut changes {
        let parts: BTreeSet<(&str, &str)> =
            change.members.iter().map(|(at, _)| (&*series[*at].link, &*series[*at].kind)).collect();
        let explained: usize = parts.iter().filter_map(|part| behind.get(part)).sum();
        if explained > 0 {
            change.sentence += &format!("; it explains {explained} more series");
        }
    }
    for change in &mut changes {
        change.parts = moves::beside(everything, passing, replaced, &change.members, series);
        change.parts.iter().for_each(|words| change.sentence += &format!("; {words}"));
    }
    changes
}

fn words(everything: &Everything, at: usize) -> BTreeSet<String> {
    let one = &everything.series[at];
    let subject = &everything.subjects[one.subject];
    match &one.part {
        Some(part) => part.labels(&subject.test, everything.groups_of.get(&one.line)),
        // Pairs measured now and then would hide how much of a host changed.
        None if one.rotating => [subject.flow.name()].into(),
        None => Labels::words(subject, &everything.groups),
    }
}

fn was_measured(everything: &Everything, place: usize, day: i64) -> bool {
    let around = |at: &usize| {
        let (first, last) = everything.series[*at].ends();
        (first - NEARBY..=last + NEARBY).contains(&day)
    };
    everything.places[place].members.iter().any(around)
}

/// `every link` only if each of them changed, otherwise their number.
fn of_links(everything: &Everything, series: &[Series], changed: &BTreeSet<usize>, of: &[usize]) -> String {
    let last = |place: &usize| everything.places[*place].members.last().map(|at| &series[*at]);
    let links = |places: &mut dyn Iterator<Item = &usize>| -> BTreeSet<&str> {
        places.filter_map(last).map(|one| one.link.as_str()).collect()
    };
    let (some, all) = (links(&mut changed.iter()), links(&mut of.iter()));
    let noun = if of.iter().filter_map(last).any(|one| one.part) { "parts" } else { "links" };
    if some.len() == all.len() { EVERY.to_owned() } else { format!("{} of {} {noun}", some.len(), all.len()) }
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
    let effects = by_metric.into_iter().filter_map(|(metric, all)| {
        // A missing value has no size: the others give it, if there are any.
        let some: Vec<f64> = all.iter().copied().filter(|percent| !reason::is_nothing(*percent)).collect();
        Some((metric, median(if some.is_empty() { &all } else { &some }).ok()?))
    });
    let near = |epoch: &&super::Epoch| (epoch.day - day).abs() <= NEARBY;
    let mut change = Change {
        name,
        since: date(day),
        day,
        way: members.first().map_or(Way::Worse, |member| alert(member).way),
        state: members.iter().map(|member| alert(member).state).min().unwrap_or(State::Open),
        series: counts,
        effects: effects.collect(),
        epochs: everything
            .trend
            .epochs
            .iter()
            .filter(near)
            .map(|epoch| format!("{}: {}", epoch.date, epoch.what))
            .collect(),
        parts: Vec::new(),
        sentence: String::new(),
        members,
    };
    change.sentence = reason::change(&change, series);
    change
}
