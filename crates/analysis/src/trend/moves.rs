//! Effects of replacements: a change that came or went with a part names it, and a part that was slow in one slot and
//! is in another is the same change for the worse.

use std::collections::{BTreeSet, HashSet};

use super::{
    Alert, Everything, How, NEARBY, Passing, Replaced, Series, State, Way,
    calendar::{date, day},
    replaced::go_on,
    swapped::Elsewhere,
};
use crate::{
    history::{PartKind, Seated, Stay, Swap},
    words::count,
};

const NAMED: usize = 3;

/// In order of time.
pub(super) fn replaced(everything: &Everything, passing: &Passing<'_>, series: &[Series]) -> Vec<Replaced> {
    let night = |run: usize| everything.days.get(run).copied().unwrap_or_default();
    let one = |swap: &Swap| {
        let Swap { old, new, from, to } = swap;
        let (day, until_day) = (night(new.runs.0), night(old.runs.1));
        let elsewhere = |stay: &Stay, part: &str, run: usize, slow| Elsewhere {
            host: stay.host.clone(),
            part: part.to_owned(),
            date: date(night(run)),
            slow,
            stay: stay.clone(),
        };
        let slow = |stay: &Stay| passing.stood(series, stay, (night(stay.runs.0), night(stay.runs.1)));
        Replaced {
            date: date(day),
            day,
            until: date(until_day),
            until_day,
            host: new.host.clone(),
            kind: new.slot.kind,
            part: new.first_name().to_owned(),
            by: new.id.0,
            old: old.id.1.clone(),
            new: new.id.1.clone(),
            from: from.as_ref().map(|stay| elsewhere(stay, stay.name(), stay.runs.1, slow(stay))),
            to: to.as_ref().map(|stay| elsewhere(stay, stay.first_name(), stay.runs.0, None)),
            stay: new.clone(),
        }
    };
    everything.swaps.iter().map(one).collect()
}

/// A part that was bad in its old slot and is bad in its new one: the change persists, whatever is where. That it is bad in the new slot
/// follows from a change that came with it, or that has been open there since before and that the part did not end.
pub(super) fn follow(everything: &Everything, passing: &Passing<'_>, replaced: &[Replaced], series: &mut [Series]) {
    let bad = |one: &&Replaced| one.from.as_ref().is_some_and(|before| before.slow.is_some());
    for one in replaced.iter().filter(bad) {
        let part = one.stay.came();
        for at in passing.of_host(part.host) {
            if !passing.passes(*at, &part) {
                continue;
            }
            let stands = |alert: &Alert| {
                let by_hardware = alert.taken.as_ref().is_some_and(|taken| taken.how == How::Hardware);
                alert.way == Way::Worse && alert.state == State::Left && by_hardware && alert.day <= one.day + NEARBY
            };
            let members = &everything.places[series[*at].place].members;
            // What is not measured any more has an unknown state.
            let Some(&holder) = members.last().filter(|holder| series[**holder].alive) else { continue };
            while let Some(alert) = series[*at].alerts.iter().position(stands) {
                go_on(series, (*at, alert), holder);
            }
        }
    }
}

/// Replacements when a change came or went, or while it was open, in words: of parts on the path of at least half of its series.
pub(super) fn beside(
    everything: &Everything,
    passing: &Passing<'_>,
    replaced: &[Replaced],
    members: &[(usize, usize)],
    series: &[Series],
) -> Vec<String> {
    if replaced.is_empty() {
        return Vec::new();
    }
    let alerts = || members.iter().map(|(at, alert)| &series[*at].alerts[*alert]);
    let ends = alerts().filter(|alert| !matches!(alert.state, State::Open | State::Left));
    let days: BTreeSet<i64> =
        alerts().map(|alert| alert.day).chain(ends.filter_map(|alert| day(alert.end.as_deref()?).ok())).collect();
    // A replacement does not end an open change.
    let stands = alerts().filter(|alert| matches!(alert.state, State::Open | State::Left)).map(|alert| alert.day).min();
    let hosts: HashSet<&str> = members
        .iter()
        .flat_map(|(at, _)| everything.subjects[everything.series[*at].subject].flow.hosts())
        .map(|host| &**host)
        .collect();
    let is_near = |one: &Replaced| {
        let (first, last) = (one.day.min(one.until_day + 1) - NEARBY, one.day + NEARBY);
        days.range(first..=last).next().is_some()
    };
    let stood = |one: &Replaced| stands.is_some_and(|since| since < one.until_day.min(one.day));
    let most_pass = |part: &Seated<'_>| {
        let passing = members.iter().filter(|(at, _)| passing.passes(*at, part)).count();
        2 * passing >= members.len()
    };
    // A part that left a slot without a known successor matters for that slot, too.
    let emptied = |one: &Replaced| {
        is_near(one)
            && one.from.as_ref().is_some_and(|from| {
                hosts.contains(from.host.as_str())
                    && most_pass(&from.stay.left())
                    && !replaced.iter().any(|other| other.host == from.host && other.old == one.new)
            })
    };
    let is_of = |one: &&Replaced| hosts.contains(one.host.as_str()) && most_pass(&one.stay.came()) || emptied(one);
    let looked_at = replaced.iter().filter(|one| is_near(one) || stood(one));
    let found: Vec<&Replaced> = looked_at.filter(is_of).collect();
    // Another machine implies other parts.
    let machines = found.iter().filter(|one| one.kind == PartKind::Machine).map(|one| (one.host.as_str(), one.day));
    let machines: HashSet<(&str, i64)> = machines.collect();
    let within = |one: &&Replaced| one.kind != PartKind::Machine && machines.contains(&(one.host.as_str(), one.day));
    let mut told: Vec<&Replaced> = found.iter().copied().filter(|one| !within(one)).collect();
    // What came or went with it first, then the latest.
    told.sort_by_key(|one| (!is_near(one), std::cmp::Reverse(one.day)));
    let words = |one: &&Replaced| {
        let words = one.words();
        if is_near(one) { words } else { format!("{words}; that did not end it") }
    };
    let mut all: Vec<String> = told.iter().take(NAMED).map(words).collect();
    if told.len() > NAMED {
        all.push(format!("{} more were replaced since then or at about that time", count(told.len() - NAMED, "part")));
    }
    all
}
