//! Links that were bad, always or on some nights, since their first night: their own nights cannot show it, those of their peers do.

use std::{
    collections::{BTreeMap, HashMap},
    mem::{Discriminant, discriminant},
};

use railgauge_stats::{
    Refusal,
    changepoint::{Mark, OTHERS, Out, intermittent, low_among, stand_out, upper_spread},
    robust::median,
};

use super::{
    Everything, Options, Part, Rule, Series,
    alerts::{of_alert, rules, shown},
    parts::sign,
};

/// Fewest nights of a series for a comparison with others.
const NIGHTS: usize = 3;
/// Last nights that are searched for those below the peers.
const RECENT: usize = 60;

/// Test, metric and size; plan; and class of part.
type SeriesKind = (String, String, Option<Discriminant<Part>>);

/// Adds an alert to every series far below its peers in the same nights, on all nights or on some. A series with a
/// later declared epoch is accepted, except for intermittent nights since; one that changed already has an alert.
///
/// # Errors
/// A statistic refuses the nights, which is a bug.
pub(super) fn hold(everything: &Everything, series: &mut [Series], options: &Options) -> Result<(), Refusal> {
    let least = rules(options).least;
    let accepted = options.epochs.iter().map(|(day, _)| *day).max().unwrap_or(i64::MIN);
    for members in kinds(everything, series).into_values() {
        for side in [true, false] {
            let like: Vec<(usize, bool)> = members.iter().copied().filter(|(_, together)| *together == side).collect();
            // Too few of one distance are compared with all.
            let of = if like.len() > OTHERS { &like } else { &members };
            let own: Vec<bool> = of.iter().map(|(_, together)| *together == side).collect();
            let of: Vec<usize> = of.iter().map(|(at, _)| *at).collect();
            levels(series, &of, &own, least, accepted);
            flickers(series, &of, &own, least, accepted)?;
        }
    }
    Ok(())
}

/// By key, each with whether both of its hosts are of one group.
fn kinds(everything: &Everything, series: &[Series]) -> HashMap<SeriesKind, Vec<(usize, bool)>> {
    let mut kinds: HashMap<SeriesKind, Vec<(usize, bool)>> = HashMap::new();
    for (at, (one, collected)) in series.iter().zip(&everything.series).enumerate() {
        let flow = &everything.subjects[collected.subject].flow;
        let hosts = flow.hosts();
        // Two hosts of one named group have another distance than two of different groups.
        let inside =
            |group: &Vec<String>| hosts.iter().all(|host| group.iter().any(|member| member.as_str() == &***host));
        let together = collected.part.is_none() && everything.groups.values().any(inside);
        let class = collected.part.as_ref().map(discriminant);
        if one.alive && one.nights >= NIGHTS && flow.members.is_empty() {
            kinds.entry((one.kind.clone(), one.plan.clone(), class)).or_default().push((at, together));
        }
    }
    kinds
}

fn levels(series: &mut [Series], of: &[usize], own: &[bool], least: f64, accepted: i64) {
    let level = |&at: &usize| sign(series[at].metric) * series[at].centre.ln();
    let out: Vec<Option<Out>> = stand_out(&of.iter().map(level).collect::<Vec<f64>>(), least);
    for ((&at, out), _) in of.iter().zip(out).zip(own).filter(|(_, own)| **own) {
        let one = &mut series[at];
        let first = one.points.first().map_or(i64::MIN, |(day, _)| *day);
        let Some(out) = out.filter(|_| first >= accepted && !one.is_worse()) else { continue };
        let last = one.points.last().map_or(first, |(day, _)| *day);
        let nights = (of.len() - 1, one.nights);
        let found = shown(Rule::Peers, (first, last), out.effect, out.excess, nights);
        one.alerts.push(of_alert(&found, one.metric, true, &[]));
    }
}

type Told = (usize, (f64, f64));

fn flickers(series: &mut [Series], of: &[usize], own: &[bool], least: f64, accepted: i64) -> Result<(), Refusal> {
    let mut nights: BTreeMap<i64, Vec<Told>> = BTreeMap::new();
    for (number, &at) in of.iter().enumerate() {
        let one = &series[at];
        let recent = &one.points[one.points.len().saturating_sub(RECENT)..];
        let since = recent.iter().filter(|(day, _)| *day >= accepted);
        let values: Vec<(i64, f64)> = since.map(|(day, value)| (*day, sign(one.metric) * value.ln())).collect();
        if values.len() < NIGHTS {
            continue;
        }
        let spread = upper_spread(&values.iter().map(|(_, value)| *value).collect::<Vec<f64>>())?;
        for (day, value) in values {
            nights.entry(day).or_default().push((number, (value, spread)));
        }
    }
    let mut marks: Vec<Vec<(i64, Mark, f64)>> = vec![Vec::new(); of.len()];
    for (day, night) in nights {
        let values: Vec<(f64, f64)> = night.iter().map(|(_, value)| *value).collect();
        for ((number, _), (mark, away)) in night.iter().zip(low_among(&values, least).into_iter().flatten()) {
            marks[*number].push((day, mark, away));
        }
    }
    for ((&at, nights), _) in of.iter().zip(marks).zip(own).filter(|(_, own)| **own) {
        let one = &mut series[at];
        let found = intermittent(&nights.iter().map(|(_, mark, _)| *mark).collect::<Vec<Mark>>());
        let Some(found) = found.filter(|_| !one.is_worse()) else { continue };
        let since = &nights[found.since..];
        let low: Vec<f64> = since.iter().filter(|(_, mark, _)| *mark == Mark::Low).map(|(_, _, away)| *away).collect();
        let (effect, first) = (median(&low)?, since[0].0);
        let last = nights.last().map_or(first, |(day, ..)| *day);
        let all = shown(Rule::Intermittent, (first, last), effect, found.strength, found.nights);
        one.flickers(&all, found.sure, "");
    }
    Ok(())
}
