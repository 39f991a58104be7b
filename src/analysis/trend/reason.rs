//! Alerts and changes in sentences that a person on call understands.

use super::{Alert, Change, Rule, Series, State, Watched, Way};
use crate::analysis::words::{count, number, percent, signed};

/// Why there is an alert.
pub(super) fn alert(alert: &Alert) -> String {
    let Alert { raised, nights: (before, since), strength, .. } = alert;
    let moved = moved(alert.percent);
    let interval =
        alert.interval.map_or_else(String::new, |(low, high)| format!(" ({} to {} %)", signed(low), signed(high)));
    let strength = number(*strength);
    match alert.rule {
        Rule::Fast => format!(
            "{moved}{interval} against the {before} nights before; the night of {raised} and its repeats are {strength} \
             standard deviations off"
        ),
        Rule::Fellows => format!(
            "{} than the median of its like, {strength} times what stands out, since its first night; {before} of its like, \
             {}",
            apart(alert.percent),
            count(*since, "night")
        ),
        Rule::Intermittent => format!(
            "{} on {before} of {since} nights, with good nights between them; {strength} times what alerts, seen on {raised}",
            apart(alert.percent)
        ),
        Rule::Slow | Rule::Young => format!(
            "{moved}{interval}: {} against the {before} before, {strength} times what alerts, seen on {raised}",
            count(*since, "night")
        ),
    }
}

/// What changed, since when, and whether it still is so.
pub(super) fn change(change: &Change, series: &[Series]) -> String {
    let some = |&(at, alert): &(usize, usize)| series[at].alerts[alert].rule == Rule::Intermittent;
    let nights = if change.members.iter().all(some) { " on some nights" } else { "" };
    let effects: Vec<String> = change
        .effects
        .iter()
        .map(|(metric, percent)| format!("{} {}{nights}", metric.word().replace('_', " "), moved(*percent)))
        .collect();
    let of = match change.series {
        (1, 1) => String::new(),
        (changed, all) => format!("; {changed} of {all} series"),
    };
    let open = change.members.iter().filter(|(at, alert)| series[*at].alerts[*alert].state == State::Open).count();
    let state = match (change.state, change.members.first()) {
        (State::Open, _) if open == change.members.len() => "still so".to_owned(),
        (State::Open, _) => format!("{open} of them are still so"),
        (State::WentAway, Some((at, alert))) => {
            format!("went away on {}", series[*at].alerts[*alert].end.as_deref().unwrap_or("an unknown day"))
        }
        (State::Overtaken, _) => "overtaken by another change".to_owned(),
        (State::Accepted, _) => "accepted by a declared epoch".to_owned(),
        _ => "no recent nights".to_owned(),
    };
    format!("{} since {}{of}; {state}", effects.join(", "), change.since)
}

/// The trend in a sentence; `missing` cases lack a value of the last night.
pub(super) fn sentence(series: &[Series], changes: &[Change], (missing, left): (usize, usize), torn: bool) -> String {
    let number_of = |state: Watched| series.iter().filter(|series| series.state == state).count();
    let alive = series.iter().filter(|series| series.alive).count();
    let open = |way: Way| changes.iter().filter(|change| change.state == State::Open && change.way == way).count();
    let mut text = format!(
        "Of {alive} series {} are watched{}: {} for the worse, {} for the better are still so, {} are over.",
        number_of(Watched::Fully),
        match number_of(Watched::Weakly) {
            0 => String::new(),
            weakly => format!(" and {weakly} weakly, for want of nights"),
        },
        count(open(Way::Worse), "change"),
        open(Way::Better),
        changes.iter().filter(|change| change.state != State::Open).count() - left,
    );
    if left > 0 {
        text += &format!(
            " {} for the worse stood when the plan was last measured: an edited plan begins new series, --epoch accepts them.",
            count(left, "change")
        );
    }
    let young = number_of(Watched::TooYoung);
    if young > 0 {
        text += &format!(" {young} are too young to be watched.");
    }
    if missing > 0 {
        text += &format!(
            " {} of the last night {} missing.",
            count(missing, "value"),
            if missing == 1 { "is" } else { "are" }
        );
    }
    if torn {
        text += " The last run cannot be read.";
    }
    let suspicious = series.iter().filter(|series| series.suspicion.is_some()).count();
    if suspicious > 0 {
        text += &format!(" {suspicious} may be intermittent.");
    }
    let noisy = number_of(Watched::TooNoisy);
    if noisy > 0 {
        let verb = if noisy == 1 { "is" } else { "are" };
        text += &format!(" {noisy} {verb} too noisy to tell: not even half the rate would be seen.");
    }
    let repeat = series.iter().filter(|series| series.repeat.is_some()).count();
    if repeat > 0 {
        text += &format!(" {repeat} of the last night should be repeated at once.");
    }
    text
}

/// Why a series may be intermittent: low nights of all nights since a date, and by how many percent.
pub(super) fn suspicion((low, nights): (usize, usize), effect: f64, since: &str) -> String {
    format!("{} on {low} of {nights} nights since {since}: too few to be sure that it is intermittent", apart(effect))
}

fn apart(change: f64) -> String {
    format!("{} by {} %", if change < 0.0 { "lower" } else { "higher" }, percent(change.abs()))
}

fn moved(change: f64) -> String {
    format!("{} by {} %", if change < 0.0 { "fell" } else { "rose" }, percent(change.abs()))
}
