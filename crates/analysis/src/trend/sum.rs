use std::collections::BTreeMap;

use railgauge_stats::Refusal;

use super::{
    Collected, Everything, History, Missing, Options, Part, Passing, Series, Trend, Watched, alerts, behind, judge,
    last, moves, reason,
};

const VERSION: u32 = 5;

/// # Errors
/// A statistic refuses the input, which is a bug.
pub fn trend(history: History, options: &Options) -> Result<Trend, Refusal> {
    let everything = history.finish(options);
    let mut series = judge::watch_all(&everything, options)?;
    let passing = Passing::new(&everything);
    let replaced = moves::replaced(&everything, &passing, &series);
    moves::follow(&everything, &passing, &replaced, &mut series);
    let mut changes = judge::changes(&everything, &passing, &series, &replaced);
    last::repaired(&everything, &mut changes, &mut series);
    changes.sort_by_key(|change| (change.state, change.way, change.series.0 == 1, std::cmp::Reverse(change.day)));
    behind::calm(&everything, &mut series, &alerts::rules(options))?;
    let number_of = |what: &dyn Fn(&Series) -> bool| series.iter().filter(|series| what(series)).count();
    // A pair of a rotating plan is only measured now and then: its hosts and NICs are watched in its place, and so is
    // what stays in a group.
    let now_and_then = |one: &Collected| one.part.as_ref().is_none_or(|part| matches!(part, Part::Within(_)));
    let pairs = everything.series.iter().map(|one| one.rotating && now_and_then(one));
    let young: Vec<bool> =
        series.iter().zip(pairs).filter(|(one, _)| one.state == Watched::TooYoung).map(|(_, pair)| pair).collect();
    let rotating = young.iter().filter(|pair| **pair).count();
    let mut trend = Trend {
        version: VERSION,
        least_percent: options.least_percent,
        missing: missing(&everything, &series),
        repeats: number_of(&|series| series.repeat.is_some()),
        unanswered: number_of(&|series| series.unanswered.is_some()),
        too_young: young.len() - rotating,
        rotating,
        too_noisy: number_of(&|series| series.state == Watched::TooNoisy),
        stopped: number_of(&|series| series.state == Watched::Stopped),
        gone: gone(&everything, &series),
        suspicious: number_of(&|series| series.suspicion.is_some()),
        totals: reason::totals(&series),
        series_years: series.iter().map(|series| series.nights).sum::<usize>() as f64 / 365.25,
        changes,
        replaced,
        series,
        ..everything.trend
    };
    reason::conclude(&mut trend);
    Ok(trend)
}

fn gone(everything: &Everything, series: &[Series]) -> Vec<(String, usize, String)> {
    let mut hosts: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let ended = everything.series.iter().zip(series).filter(|(one, _)| one.part.is_none());
    for (one, series) in ended {
        for host in one.gone.iter() {
            let known = hosts.entry(host.clone()).or_default();
            known.0 += 1;
            known.1 = known.1.clone().max(series.span.1.clone());
        }
    }
    hosts.into_iter().map(|(host, (series, last))| (host, series, last)).collect()
}

/// The longest missing first.
fn missing(everything: &Everything, series: &[Series]) -> Vec<Missing> {
    let silent = series.iter().filter(|series| series.missing > 0).map(|series| Missing {
        kind: series.kind.clone(),
        link: series.link.clone(),
        metric: series.metric,
        last: Some(series.span.1.clone()),
        nights: series.missing,
    });
    let never = everything.never.iter().map(|&(subject, metric, nights)| Missing {
        kind: everything.subjects[subject].kind(metric),
        link: everything.subjects[subject].flow.name(),
        metric,
        last: None,
        nights,
    });
    let mut missing: Vec<Missing> = silent.chain(never).collect();
    missing.sort_by_key(|missing| std::cmp::Reverse(missing.nights));
    missing
}
