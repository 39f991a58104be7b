//! A trend as plain data, ready to print, in reading order.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use railgauge_analysis::{
    status::Status,
    trend::{Change, How, Missing, Series, State, Taken, Trend, Watched, Way, date, day},
    words::{self, are, count, number, some, with_unit},
};
use serde::Serialize;

use crate::{
    chart::{
        ChartError,
        series::{Drawing, Mark, series},
    },
    view::{Figure, Table, columns},
};

const DRAWN: usize = 16;
const LISTED: usize = 12;
const CHANGES: usize = 200;
/// Runs named in a remark.
const NAMED: usize = 5;
const ROWS: usize = 200;
/// False alerts a series-year on the most restless kind of noise tested (docs/methods.md).
const FALSE_ALERTS: f64 = 0.15;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrendView {
    pub status: Status,
    pub word: &'static str,
    pub sentence: String,
    /// The open changes for the worse, their common factors and the first of them, in a sentence.
    pub bad: String,
    pub span: String,
    pub remarks: Vec<String>,
    pub totals: Vec<(String, String)>,
    pub open: Vec<ChangeView>,
    pub left: Vec<ChangeView>,
    pub over: Vec<ChangeView>,
    pub more: usize,
    pub missing: Table,
    pub missing_all: usize,
    pub doubts: Table,
    pub more_doubts: usize,
    /// Replaced parts, latest first.
    pub parts: Table,
    pub more_parts: usize,
    pub epochs: Table,
    pub kinds: Table,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeView {
    pub class: &'static str,
    pub way: &'static str,
    pub name: String,
    pub sentence: String,
    pub epochs: Vec<String>,
    pub figure: Option<Figure>,
    /// Largest change first.
    pub series: Table,
    pub more: usize,
}

fn bad(open: &[ChangeView], changes: &[Change]) -> String {
    let mut worse = open.iter().zip(changes).filter(|(_, change)| change.way == Way::Worse);
    let Some((first, _)) = worse.next() else { return String::new() };
    let more = match worse.count() {
        0 => String::new(),
        more => format!(" And {}.", count(more, "more change")),
    };
    format!("{}: {}.{more}", first.name, first.sentence)
}

/// # Errors
/// A chart cannot be rendered.
pub fn view(trend: &Trend) -> Result<TrendView, ChartError> {
    let listed = &trend.changes[..trend.changes.len().min(CHANGES)];
    let views = listed.iter().enumerate().map(|(at, change)| change_view(trend, change, at < DRAWN));
    let views = views.collect::<Result<Vec<ChangeView>, ChartError>>()?;
    // The changes are in the order of their states.
    let until = |state: State| listed.partition_point(|change| change.state <= state);
    let (open, left) = (until(State::Open), until(State::Left));
    Ok(TrendView {
        status: trend.status,
        word: trend.word,
        sentence: trend.sentence.clone(),
        bad: bad(&views[..open], listed),
        span: span(trend),
        remarks: remarks(trend),
        totals: trend.totals.iter().map(|total| (total.kind.clone(), total.sentence.clone())).collect(),
        open: views[..open].to_vec(),
        left: views[open..left].to_vec(),
        over: views[left..].to_vec(),
        more: trend.changes.len() - listed.len(),
        missing: missing(trend),
        missing_all: trend.missing.len(),
        doubts: doubts(trend),
        more_doubts: (trend.repeats + trend.unanswered + trend.stopped + trend.suspicious + trend.too_noisy)
            .saturating_sub(ROWS),
        parts: parts(trend),
        more_parts: trend.replaced.len().saturating_sub(ROWS),
        epochs: epochs(trend),
        kinds: kinds(trend),
    })
}

fn span(trend: &Trend) -> String {
    let (runs, nights) = trend.runs;
    let left = match trend.unreadable.len() {
        0 => String::new(),
        left => format!(" ({left} more left out)"),
    };
    // Without a run there is no first night.
    let dates = match &trend.span {
        (from, to) if from.is_empty() || to.is_empty() => String::new(),
        (from, to) => format!(", {from} to {to}"),
    };
    format!("{} series, {} with {}{left}{dates}", trend.series.len(), count(nights, "night"), count(runs, "run"))
}

fn remarks(trend: &Trend) -> Vec<String> {
    let mut remarks = Vec::new();
    let alone = trend.changes.iter().filter(|change| change.series.0 == 1).count();
    if alone > 0 {
        let expected = are((trend.series_years * FALSE_ALERTS).round().max(1.0) as usize, "false alert");
        let (changes, years) = (count(alone, "change"), number(trend.series_years));
        remarks.push(format!("{changes} of a single series: in {years} series-years up to {expected} to be expected."));
    }
    let weak: Vec<&Series> = trend.series.iter().filter(|series| series.state == Watched::Weakly).collect();
    let sees: Vec<f64> = weak.iter().filter_map(|series| series.sees_percent).collect();
    if let Ok(sees) = railgauge_stats::robust::median(&sees) {
        remarks.push(format!(
            "{} weakly watched, with fewer than 28 nights: the median one shows a change of {} % within ten nights.",
            are(weak.len(), "series"),
            number(sees)
        ));
    }
    remarks.extend(trend.idle.iter().cloned());
    let gone =
        |(host, series, last): &(String, usize, String)| format!("{host} ({}, until {last})", count(*series, "series"));
    let corrupt = |(run, cases): &(String, usize)| format!("{run} ({})", count(*cases, "case"));
    let judged = if trend.undated { "the last night is in doubt" } else { "its night is the one it says" };
    for (title, all) in [
        ("hosts that left the plan", trend.gone.iter().map(gone).collect::<Vec<_>>()),
        ("runs left out", trend.unreadable.iter().map(run_words).collect()),
        ("wrong bytes arrived in, the newest first", trend.corrupt.iter().rev().map(corrupt).collect()),
        ("nothing has a value in", trend.silent.clone()),
        ("no run was made on", trend.gaps.clone()),
        (&format!("dated out of order, {judged}"), trend.disorder.iter().map(run_words).collect()),
    ] {
        if !all.is_empty() {
            remarks.push(format!("{title}: {}", some(&all, NAMED)));
        }
    }
    remarks
}

/// Most errors name the place themselves.
fn run_words((directory, what): &(String, String)) -> String {
    if what.contains(directory.as_str()) { what.clone() } else { format!("{directory}: {what}") }
}

fn change_view(trend: &Trend, change: &Change, drawn: bool) -> Result<ChangeView, ChartError> {
    let most = change.members.first().map(|(at, _)| &trend.series[*at]);
    let figure = most.filter(|_| drawn).map(|series| figure(trend, series)).transpose()?;
    let columns = columns("test, metric, size | link | since | why | now");
    let row = |(at, alert): &(usize, usize)| {
        let (series, alert) = (&trend.series[*at], &trend.series[*at].alerts[*alert]);
        let now = match alert.state {
            State::Open if series.missing > 0 => format!("no value since {}", series.span.1),
            State::Open => with_unit(series.metric, series.centre),
            State::Left => left(alert.taken.as_ref(), series.metric.unit()),
            _ => alert.ended(),
        };
        vec![series.kind.clone(), series.link.clone(), alert.since.clone(), alert.reason.clone(), now]
    };
    Ok(ChangeView {
        class: match (change.state, change.way) {
            (State::Open, Way::Worse) => "fail",
            (State::Open, Way::Better) => "pass",
            _ => "idle",
        },
        way: change.way.word(),
        name: change.name.clone(),
        sentence: change.sentence.clone(),
        epochs: change.epochs.clone(),
        figure,
        series: Table { columns, rows: change.members.iter().take(LISTED).map(row).collect() },
        more: change.members.len().saturating_sub(LISTED),
    })
}

fn left(taken: Option<&Taken>, unit: &str) -> String {
    match taken.map(|taken| (taken.before, taken.now, &taken.date)) {
        Some((before, Some(now), date)) => {
            format!("{} {unit} in its place since {date}, {} {unit} before", number(now), number(before))
        }
        Some((_, None, date)) => format!("no value after {date}"),
        None => "no recent nights".to_owned(),
    }
}

/// All nights of the series' place: the level before a change may be that of a predecessor.
fn figure(trend: &Trend, of: &Series) -> Result<Figure, ChartError> {
    let place = || trend.series.iter().filter(|series| series.place == of.place);
    // On the night of an exchange the later series counts.
    let nights: BTreeMap<i64, f64> = place().flat_map(|series| series.points.iter().copied()).collect();
    let points: Vec<(i64, f64)> = nights.into_iter().collect();
    let marks = place().flat_map(|series| &series.alerts).flat_map(|alert| {
        let worse = alert.way == Way::Worse;
        // Where other hardware ended it, its first night starts the level since.
        let ended = alert.taken.as_ref().filter(|taken| alert.state == State::Ended && taken.how == How::Hardware);
        let back = alert.back().or_else(|| day(&ended?.date).ok());
        let back = back.map(|day| Mark { day, worse: !worse });
        [Some(Mark { day: alert.day, worse }), back].into_iter().flatten()
    });
    let drawing = Drawing {
        title: format!("{}, {}", of.metric.word().replace('_', " "), of.metric.unit()),
        points: &points,
        marks: marks.collect(),
        epochs: trend.epochs.iter().map(|epoch| epoch.day).collect(),
        date,
    };
    let legend = [
        ("k-dot-main", "a night"),
        ("k-level", "median of a level"),
        ("k-worse", "change for the worse"),
        ("k-good", "change for the better"),
        ("k-epoch", "accepted or configuration change"),
    ];
    let legend = legend.map(|(class, text)| (class.to_owned(), text.to_owned())).to_vec();
    Ok(Figure { title: format!("{}, {}", of.kind, of.link), svg: series(&drawing)?, legend })
}

fn missing(trend: &Trend) -> Table {
    let columns = columns("link | #values | last value | #nights [without] | for example");
    let mut links: IndexMap<_, (&str, usize)> = IndexMap::new();
    for Missing { kind, link, last, nights, .. } in &trend.missing {
        links.entry((link, last, nights)).or_insert((kind, 0)).1 += 1;
    }
    let row = |((link, last, nights), (kind, n)): ((&String, &Option<String>, &usize), (&str, usize))| {
        let last = last.as_deref().unwrap_or("never");
        vec![link.clone(), n.to_string(), last.to_owned(), nights.to_string(), kind.to_owned()]
    };
    Table { columns, rows: links.into_iter().take(ROWS).map(row).collect() }
}

/// Those to be repeated first.
fn doubts(trend: &Trend) -> Table {
    let columns = columns("test, metric, size | link | why");
    let row = |series: &Series, why: String| vec![series.kind.clone(), series.link.clone(), why];
    let repeats = trend.series.iter().filter_map(|series| {
        let off = number(series.repeat?);
        Some(row(series, format!("off by {off} standard deviations on the last night: repeat it now")))
    });
    let suspected =
        trend.series.iter().filter_map(|series| Some(row(series, series.suspicion.as_ref()?.reason.clone())));
    let unanswered = trend.series.iter().filter_map(|series| {
        let (lost, runs) = series.unanswered?;
        Some(row(series, format!("failed or had no value in {lost} of {} of the last night", count(runs, "run"))))
    });
    let noisy = trend.series.iter().filter(|series| series.state == Watched::TooNoisy);
    let noisy = noisy.map(|series| row(series, noise(series)));
    let stopped = trend.series.iter().filter(|series| series.state == Watched::Stopped).map(|series| {
        let last = &series.span.1;
        row(series, format!("no value since {last}: the edited plan measures it no more and still has its hosts"))
    });
    Table { columns, rows: repeats.chain(unanswered).chain(stopped).chain(suspected).chain(noisy).take(ROWS).collect() }
}

fn noise(series: &Series) -> String {
    let most = series.scale_percent;
    let all = series.noise_percent.unwrap_or(most);
    let few = if all > 2.0 * most {
        format!(", although most lie within {} %: some are far off", words::percent(most))
    } else {
        String::new()
    };
    let all = words::percent(all);
    format!("too noisy to judge: nights spread by {all} %{few}; half the rate would not be seen")
}

fn parts(trend: &Trend) -> Table {
    let columns = columns("since | what | where");
    let row = |one: &railgauge_analysis::trend::Replaced| vec![one.date.clone(), one.words(), one.host.clone()];
    Table { columns, rows: trend.replaced.iter().rev().take(ROWS).map(row).collect() }
}

fn epochs(trend: &Trend) -> Table {
    let columns = columns("since | what | where");
    let row = |epoch: &railgauge_analysis::trend::Epoch| {
        let hosts = match epoch.hosts.as_slice() {
            [] => "everywhere".to_owned(),
            hosts => railgauge_model::plan::hostlist::listed(hosts.iter().map(String::as_str)),
        };
        vec![epoch.date.clone(), epoch.what.clone(), hosts]
    };
    Table { columns, rows: trend.epochs.iter().take(ROWS).map(row).collect() }
}

fn kinds(trend: &Trend) -> Table {
    let mut kinds: IndexMap<&str, Vec<&Series>> = IndexMap::new();
    for series in trend.series.iter().filter(|series| series.alive) {
        kinds.entry(&series.kind).or_default().push(series);
    }
    let columns = columns(
        "test, metric, size | #series | #watched | #weakly | #level, median | #spread of nights [%] | \
         #changes | #open",
    );
    let middle = |values: Vec<f64>| railgauge_stats::robust::median(&values).ok();
    let row = |all: &Vec<&Series>| {
        let first = all.first()?;
        let alerts = || all.iter().flat_map(|series| &series.alerts);
        let watched = |state| all.iter().filter(|series| series.state == state).count();
        Some(vec![
            first.kind.clone(),
            all.len().to_string(),
            watched(Watched::Fully).to_string(),
            watched(Watched::Weakly).to_string(),
            with_unit(first.metric, middle(all.iter().map(|s| s.centre).collect())?),
            // One night has no spread.
            middle(all.iter().filter(|s| s.noise_percent.is_some()).map(|s| s.scale_percent).collect())
                .map_or_else(|| "–".to_owned(), words::percent),
            alerts().count().to_string(),
            alerts().filter(|alert| alert.state == State::Open).count().to_string(),
        ])
    };
    Table { columns, rows: kinds.values().filter_map(row).collect() }
}
