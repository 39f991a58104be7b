use std::collections::BTreeMap;

use railgauge_stats::Refusal;

use super::{
    Change, Missing, Options, Replaced, Series, State, Trend, Watched, Way, alerts,
    assemble::Everything,
    behind, calendar, date, epochs,
    history::History,
    judge, last, moves,
    parts::Part,
    presence::Collected,
    reason::{self, Found},
};
use crate::status::Status;

const VERSION: u32 = 4;

/// # Errors
/// A statistic refuses the input, which is a bug.
pub fn trend(history: History, options: &Options) -> Result<Trend, Refusal> {
    let everything = history.finish(options);
    let mut series = judge::watch_all(&everything, options)?;
    let replaced = moves::replaced(&everything, &series);
    moves::follow(&everything, &replaced, &mut series);
    let mut changes = judge::changes(&everything, &series, &replaced);
    last::repaired(&everything, &mut changes, &mut series);
    behind::calm(&everything, &mut series, &alerts::rules(options))?;
    Ok(sum(everything, series, (changes, replaced), options))
}

fn sum(
    everything: Everything,
    series: Vec<Series>,
    (changes, replaced): (Vec<Change>, Vec<Replaced>),
    options: &Options,
) -> Trend {
    let missing = missing(&everything, &series);
    let number_of = |what: &dyn Fn(&Series) -> bool| series.iter().filter(|series| what(series)).count();
    // A pair of a rotating plan is only measured now and then: its hosts and NICs are watched in its place, and so is
    // what stays in a group.
    let now_and_then = |one: &Collected| one.part.as_ref().is_none_or(|part| matches!(part, Part::Within(_)));
    let pairs = everything.series.iter().map(|one| one.rotating && now_and_then(one));
    let (own, rotating): (Vec<_>, Vec<_>) =
        series.iter().zip(pairs).filter(|(series, _)| series.state == Watched::TooYoung).partition(|(_, pair)| !pair);
    let found = Found {
        missing: missing.len(),
        left: changes.iter().filter(|change| change.state == State::Left).count(),
        repeats: number_of(&|series| series.repeat.is_some()),
        unanswered: number_of(&|series| series.unanswered.is_some()),
        stopped: number_of(&|series| series.state == Watched::Stopped),
        suspicious: number_of(&|series| series.suspicion.is_some()),
        too_noisy: number_of(&|series| series.state == Watched::TooNoisy),
        too_young: own.len(),
        rotating: rotating.len(),
    };
    let watched = series.iter().any(|series| matches!(series.state, Watched::Fully | Watched::Weakly));
    let Found { missing: absent, left, repeats, unanswered, stopped, suspicious, too_noisy, too_young, .. } = found;
    let series_tell = watched && repeats + unanswered + stopped + suspicious + too_noisy + too_young == 0;
    let untold = everything.torn || everything.undated || everything.lacking.is_some();
    let unsure = left + absent > 0 || untold || !series_tell;
    // A fault that no later run measured remains one.
    let reported = everything.reported.iter().map(|one| one.status).max().unwrap_or(Status::Pass);
    let status = match () {
        () if reported == Status::Fail => Status::Fail,
        () if changes.iter().any(|change| change.way == Way::Worse && change.state == State::Open) => Status::Fail,
        () if unsure || reported != Status::Pass => Status::Inconclusive,
        () => Status::Pass,
    };
    let gone = gone(&everything, &series);
    let nights = &everything.nights;
    let ends = nights.first().zip(nights.last()).map(|(first, last)| (date(*first), date(*last)));
    let nights_watched: usize = series.iter().map(|series| series.nights).sum();
    Trend {
        version: VERSION,
        status,
        exit_code: status.exit_code(),
        sentence: reason::sentence(&series, &changes, &found, &everything),
        least_percent: options.least_percent,
        runs: everything.runs,
        span: ends.unwrap_or_default(),
        gaps: calendar::gaps(nights).into_iter().map(date).collect(),
        unreadable: everything.unreadable,
        missing,
        torn: everything.torn,
        silent: everything.silent,
        corrupt: everything.corrupt,
        lacking: everything.lacking,
        reported: everything.reported,
        idle: epochs::idle(&options.epochs, nights),
        disorder: everything.disorder,
        undated: everything.undated,
        repeats,
        unanswered,
        too_young,
        too_noisy,
        stopped,
        gone,
        suspicious,
        totals: reason::totals(&series),
        changes,
        epochs: everything.epochs,
        replaced,
        shared: everything.shared,
        series_years: nights_watched as f64 / 365.25,
        series,
    }
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
