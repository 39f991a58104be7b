//! Nights on which several series of a host, a rail, a group, or of everything are low at once: each of them alone may be chance.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::schedule::Flow;
use railgauge_stats::{
    changepoint::{self, Joint, Mark, Several, WINDOW, joint},
    robust::median,
};

use super::{Everything, Rule, Series, Way, alerts::shown, parts::sign};
use crate::history::{Subject, common};

type Marks = BTreeMap<i64, Mark>;

struct JointSeries {
    label: String,
    series: Vec<usize>,
    /// Days of the joint nights, and the number of nights since the first of them.
    days: (Vec<i64>, usize),
    joint: Joint,
}

/// Adds an alert, or a suspicion if the evidence is weak, to every series that was low on at least half of the nights
/// on which others of its label were; `marks` are those of the nights of each series. Only compares links of one test,
/// metric and size, because several metrics of one link repeat each other.
pub(super) fn look(everything: &Everything, series: &mut [Series], marks: &[Vec<(i64, Mark)>]) {
    let mut kinds: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, (one, collected)) in series.iter().zip(&everything.series).enumerate() {
        if one.alive && collected.part.is_none() {
            kinds.entry((&one.kind, &one.plan)).or_default().push(at);
        }
    }
    let labelled: Vec<_> = kinds.into_values().map(|of| (labels(everything, &of), of)).collect();
    let tried = labelled.iter().map(|(labels, _)| labels.len()).sum();
    let mut all: Vec<JointSeries> = Vec::new();
    for (labels, of) in labelled {
        let days = days(series, &of);
        let first = days.first().copied().unwrap_or(i64::MAX);
        let recent = |at: usize| &marks[at][marks[at].partition_point(|(day, _)| *day < first)..];
        let known: BTreeMap<usize, Marks> = of.iter().map(|&at| (at, told(&series[at], recent(at)))).collect();
        let mut found: Vec<JointSeries> =
            labels.into_iter().filter_map(|(members, label)| judge(label, members, &days, &known, tried)).collect();
        // The best explanation comes first, and decides for its series.
        found.sort_by(|a, b| a.joint.chance.total_cmp(&b.joint.chance));
        let mut spoken: BTreeSet<usize> = BTreeSet::new();
        for JointSeries { series, days, .. } in &mut found {
            let low = |at: usize| days.0.iter().filter(|day| known[&at].get(day) == Some(&Mark::Low)).count();
            series.retain(|&at| 2 * low(at) >= days.0.len() && spoken.insert(at));
        }
        all.extend(found);
    }
    all.iter().for_each(|found| tell(series, found));
}

/// What at least two series of a kind have in common, in words, by those series. Of several words for the same series
/// the first counts: a host before its one NIC.
fn labels(everything: &Everything, of: &[usize]) -> BTreeMap<Vec<usize>, String> {
    let mut members: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for &at in of {
        let Subject { flow, cell, .. } = &everything.subjects[everything.series[at].subject];
        for word in
            common(flow, cell.transport, &everything.groups).into_iter().chain(outward(flow, &everything.groups))
        {
            members.entry(word).or_default().push(at);
        }
    }
    members.into_iter().rev().filter(|(_, series)| series.len() > 1).map(|(word, series)| (series, word)).collect()
}

/// Groups that a link leaves, in words: what a leaf switch shares with the rest of the network.
fn outward<'a>(flow: &'a Flow, groups: &'a BTreeMap<String, Vec<String>>) -> impl Iterator<Item = String> + 'a {
    let hosts = flow.hosts();
    let leaves = move |members: &Vec<String>| {
        let inside = hosts.iter().filter(|host| members.iter().any(|member| **member == ****host)).count();
        0 < inside && inside < hosts.len()
    };
    groups.iter().filter(move |(_, members)| leaves(members)).map(|(name, _)| format!("links out of group {name}"))
}

/// The last nights with a value of any of these series: other nights are not evidence about a part.
fn days(series: &[Series], of: &[usize]) -> Vec<i64> {
    let days: BTreeSet<i64> = of.iter().flat_map(|&at| series[at].points.iter().map(|(day, _)| *day)).collect();
    let days: Vec<i64> = days.into_iter().collect();
    days[days.len().saturating_sub(WINDOW)..].to_vec()
}

/// The marks of a series without nights of a change for the worse that another rule reports.
fn told(one: &Series, marks: &[(i64, Mark)]) -> Marks {
    let worse = |day: i64| {
        one.alerts.iter().any(|alert| {
            let ends = alert.back().unwrap_or(i64::MAX);
            alert.way == Way::Worse && alert.rule != Rule::Intermittent && (alert.day..ends).contains(&day)
        })
    };
    marks.iter().copied().filter(|(day, _)| !worse(*day)).collect()
}

fn judge(
    label: String,
    series: Vec<usize>,
    days: &[i64],
    known: &BTreeMap<usize, Marks>,
    tried: usize,
) -> Option<JointSeries> {
    let night = |day: &i64| {
        let marks = series.iter().filter_map(|at| known[at].get(day));
        marks.fold(Several::default(), |night, mark| Several {
            of: night.of + 1,
            low: night.low + usize::from(*mark == Mark::Low),
        })
    };
    let joint = joint(&days.iter().map(night).collect::<Vec<_>>(), tried)?;
    let since = days.len() - joint.nights.first()?;
    let days = (joint.nights.iter().map(|&at| days[at]).collect(), since);
    Some(JointSeries { label, series, days, joint })
}

fn tell(series: &mut [Series], found: &JointSeries) {
    let JointSeries { label, series: members, days: (days, since), joint } = found;
    let (Some(&first), Some(&last)) = (days.first(), days.last()) else { return };
    for &at in members {
        let one = &mut series[at];
        if one.is_worse() {
            continue;
        }
        let low: Vec<f64> = one.points.iter().filter(|(day, _)| days.contains(day)).map(|(_, value)| *value).collect();
        // None of them may have a value.
        let effect = median(&low).map_or(f64::NEG_INFINITY, |low| sign(one.metric) * (low / one.centre).ln());
        let nights = (days.len(), *since);
        let all = shown(Rule::Intermittent, (first, last), effect, joint.strength, nights);
        let all = changepoint::Alert { lost: days.len() - low.len(), ..all };
        one.flickers(&all, joint.sure, &format!("; together with others of {label}"));
    }
}
