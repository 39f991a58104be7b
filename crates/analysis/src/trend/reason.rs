//! Alerts and changes in sentences for a person on call.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::plan::hostlist;
use railgauge_stats::robust::median;

use super::{Alert, Change, How, Rule, Series, State, Total, Watched, Way, assemble::Everything};
use crate::{
    status::Status,
    words::{be, count, number, percent, signed},
};

/// For nights that count as low because they have no value.
const NO_VALUE: &str = "failed or had no value";

/// Links named for a change that is mostly over.
const NAMED: usize = 2;

/// Percentage points, and share of a change, by which a level differs from that after the change.
const OTHER: f64 = 1.0;
const OTHER_SHARE: f64 = 0.1;

pub(super) struct Found {
    pub missing: usize,
    pub left: usize,
    /// Series whose last night must be repeated.
    pub repeats: usize,
    pub unanswered: usize,
    pub stopped: usize,
    pub suspicious: usize,
    pub too_noisy: usize,
    pub too_young: usize,
    /// Of pairs that a rotating plan measures now and then.
    pub rotating: usize,
}

pub(super) fn alert(alert: &Alert) -> String {
    let Alert { raised, nights: (before, since), strength, .. } = alert;
    let moved = moved(alert.percent);
    let interval =
        alert.interval.map_or_else(String::new, |(low, high)| format!(" ({} to {} %)", signed(low), signed(high)));
    let strength = number(*strength);
    match alert.rule {
        Rule::Drift => {
            format!("{moved} over {}, {strength} times what alerts, seen on {raised}", count(*since, "night"))
        }
        Rule::Peers => format!(
            "{} than the median of its peers, {strength} times what alerts, since its first night; {before} peers, \
             {}",
            apart(alert.percent),
            count(*since, "night")
        ),
        Rule::Intermittent => format!(
            "{} of {since} nights, with good nights between them; {strength} times what alerts, seen on {raised}",
            some_nights(*before, alert.lost, alert.percent)
        ),
        Rule::Step => format!(
            "{moved}{interval}: {} against the {before} before, {strength} times what alerts, seen on {raised}",
            count(*since, "night")
        ),
    }
}

pub(super) fn change(change: &Change, series: &[Series]) -> String {
    let some = |&(at, alert): &(usize, usize)| series[at].alerts[alert].rule == Rule::Intermittent;
    let by_peers = change.members.iter().all(|&(at, alert)| series[at].alerts[alert].rule == Rule::Peers);
    let nights = if change.members.iter().all(some) { " on some nights" } else { "" };
    let effects: Vec<String> = change
        .effects
        .iter()
        .map(|(metric, percent)| {
            let word = metric.word().replace('_', " ");
            // A series that was low from its first night on did not move: it is compared with its peers.
            if by_peers {
                format!("{word} is {} than that of its peers", apart(*percent))
            } else {
                format!("{word} {}{nights}", moved(*percent))
            }
        })
        .collect();
    let of = match change.series {
        (1, 1) => String::new(),
        (changed, all) => format!("; {changed} of {all} series"),
    };
    let all = change.members.len();
    let state = match (change.state, change.members.first()) {
        (State::Open | State::Left, _) if in_state(change, series, change.state).count() < all => {
            let left = if change.state == State::Open { now(change, series) } else { left(change, series) };
            parted(change, series, &left)
        }
        (State::Open, _) => format!("still open{}", now(change, series)),
        (State::WentAway, Some((at, alert))) => {
            format!("went away on {}", series[*at].alerts[*alert].end.as_deref().unwrap_or("an unknown day"))
        }
        (State::Left, _) => left(change, series),
        (State::Overtaken, _) => "overtaken by another change".to_owned(),
        (State::Accepted, _)
            if in_state(change, series, State::Accepted).any(|(at, alert)| series[at].alerts[alert].end.is_none()) =>
        {
            "the plan waives it".to_owned()
        }
        (State::Accepted, _) => "accepted by a declared epoch".to_owned(),
        _ => match taken(change, series) {
            Some(what) => format!("over: {what}"),
            None => "no recent nights".to_owned(),
        },
    };
    format!("{} since {}{of}; {state}", effects.join(", "), change.since)
}

fn in_state(change: &Change, series: &[Series], state: State) -> impl Iterator<Item = (usize, usize)> {
    change.members.iter().copied().filter(move |(at, alert)| series[*at].alerts[*alert].state == state)
}

/// For a change with series in different states: the number of open ones, with their names if they are few.
fn parted(change: &Change, series: &[Series], stands: &str) -> String {
    let of = |state: State| in_state(change, series, state).count();
    let (open, left) = (of(State::Open), of(State::Left));
    let standing: BTreeSet<&str> =
        in_state(change, series, change.state).map(|(at, _)| series[at].link.as_str()).collect();
    let names = if standing.len() <= NAMED {
        format!(" ({})", standing.into_iter().collect::<Vec<_>>().join(", "))
    } else {
        String::new()
    };
    let over = change.members.len() - open - left;
    let mut parts = Vec::new();
    if over > 0 {
        parts.push(format!("{over} of them {} over", be(over)));
    }
    if open > 0 {
        parts.push(format!("{open} {} still open{names}{stands}", be(open)));
    }
    match left {
        0 => {}
        left if open > 0 => parts.push(format!("{left} {} not known to be over", be(left))),
        left => parts.push(format!("of {left}{names} {stands}")),
    }
    parts.join(", ")
}

/// The present level against the level before a change for the worse, where it differs from that after the change.
fn now(change: &Change, series: &[Series]) -> String {
    // The level before the first open change is the last good one.
    let first = |(at, alert): &&(usize, usize)| {
        let alert = &series[*at].alerts[*alert];
        standing(&series[*at]).map(|other| other.day).min() == Some(alert.day)
    };
    let of_first = || change.members.iter().filter(first);
    let Some(metric) = of_first().map(|(at, _)| series[*at].metric).next() else { return String::new() };
    let of_metric = || of_first().filter(|(at, _)| series[*at].metric == metric);
    let then = median(&of_metric().map(|(at, alert)| series[*at].alerts[*alert].percent).collect::<Vec<f64>>());
    let now = median(&of_metric().filter_map(|(at, _)| against_good(&series[*at])).collect::<Vec<f64>>());
    match (then, now) {
        (Ok(then), Ok(now)) if (now - then).abs() > OTHER.max(then.abs() * OTHER_SHARE) => {
            let way = if now < 0.0 { "below" } else { "above" };
            format!(", {} % {way} the level before it now", percent(now.abs()))
        }
        _ => String::new(),
    }
}

fn total(change: f64, since: &str, (some, all): (usize, usize)) -> String {
    format!("{} altogether, in several changes since {since}; {some} of {all} series", moved(change))
}

/// How the series of a change ended, and the levels before and after: nothing shows that it is over.
fn left(change: &Change, series: &[Series]) -> String {
    let mut text = taken(change, series).unwrap_or_else(|| "its series ended".to_owned());
    let members = || in_state(change, series, State::Left);
    let kinds: BTreeSet<&str> = members().map(|(at, _)| series[at].kind.as_str()).collect();
    let all = || members().filter_map(|(at, alert)| series[at].alerts[alert].taken.as_ref());
    let before = median(&all().map(|taken| taken.before).collect::<Vec<f64>>());
    let now = median(&all().filter_map(|taken| taken.now).collect::<Vec<f64>>());
    if let (1, Ok(before), Ok(now), Some((at, _))) = (kinds.len(), before, now, members().next()) {
        let unit = series[at].metric.unit();
        text += &format!(": {} {unit} before the change, {} {unit} now", number(before), number(now));
    }
    format!("{text}; not known to be over until --epoch accepts the level")
}

/// `None` where the end of the series decided nothing.
fn taken(change: &Change, series: &[Series]) -> Option<String> {
    // For an open change, replacements in closed series do not matter.
    let state = change.state;
    let of = |one: State| state != State::Left || one == State::Left;
    let all = || {
        let alerts = change.members.iter().map(|(at, alert)| &series[*at].alerts[*alert]);
        alerts.filter(|alert| of(alert.state)).filter_map(|alert| alert.taken.as_ref())
    };
    let how = all().map(|taken| taken.how).next()?;
    let same = || all().filter(|taken| taken.how == how);
    let date = same().map(|taken| taken.date.as_str()).min()?;
    let hosts: BTreeSet<&str> = same().flat_map(|taken| &taken.hosts).map(String::as_str).collect();
    let many = hosts.len() > 1;
    let hosts = hostlist::listed(hosts);
    Some(match how {
        How::Hardware => {
            let what = if many { "the hardware" } else { "hardware" };
            match same().filter_map(|taken| taken.after.as_deref()).min() {
                Some(after) => format!("{what} of {hosts} was replaced after {after}, by {date}"),
                None => format!("{what} of {hosts} was replaced, from {date} on"),
            }
        }
        How::Host if many => format!("hosts {hosts} are not in the plan after {date}, or renamed"),
        How::Host => format!("host {hosts} is not in the plan after {date}, or renamed"),
        How::Edit => match same().filter_map(|taken| taken.edit.as_deref()).next() {
            Some(edit) => format!("{edit}, on {date}"),
            None => format!("its plan was edited, on {date}"),
        },
        How::Plan => format!("its plan measured it on {date} for the last time"),
    })
}

pub(super) fn sentence(series: &[Series], changes: &[Change], found: &Found, everything: &Everything) -> String {
    let number_of = |state: Watched| series.iter().filter(|series| series.state == state).count();
    let alive = series.iter().filter(|series| series.alive).count();
    let open = |way: Way| changes.iter().filter(|change| change.state == State::Open && change.way == way).count();
    let (worse, better, fully) = (open(Way::Worse), open(Way::Better), number_of(Watched::Fully));
    let over = changes.iter().filter(|change| !matches!(change.state, State::Open | State::Left)).count();
    let mut text = String::new();
    for one in everything.reported.iter().filter(|one| one.status != Status::Pass) {
        text += &format!("after the last run, {}: {}. ", one.directory, one.sentence.trim_end_matches('.'));
    }
    text += &format!(
        "{fully} of {alive} series monitored{}: {}, {}, {over} resolved.",
        match number_of(Watched::Weakly) {
            0 => String::new(),
            weakly => format!(" and {weakly} weakly, for want of nights"),
        },
        count(worse, "open regression"),
        count(better, "open improvement"),
    );
    if found.left > 0 {
        text += &format!(
            " The recovery of {} is not confirmed: edits, new hardware and new names end none; --epoch accepts the new level.",
            count(found.left, "regression"),
        );
    }
    let young = found.too_young;
    if young > 0 {
        text += &format!(" {young} {} too young: before 7 nights there are only the limits of the plan.", be(young));
    }
    if found.rotating > 0 {
        let pairs = found.rotating;
        text += &format!(" {pairs} {} of single pairs, whose hosts and NICs are monitored in their place.", be(pairs));
    }
    if found.missing > 0 {
        text += &format!(" {} of the last night {} missing.", count(found.missing, "value"), be(found.missing));
    }
    if found.unanswered > 0 {
        text += &format!(" {} failed or had no value in a run of the last night.", found.unanswered);
    }
    if let Some((lost, of)) = everything.lacking {
        text += &format!(" {lost} of {} gave no value: what they would have shown is unknown.", count(of, "run"));
    }
    if everything.torn {
        text += " The last run cannot be read.";
    }
    if everything.undated {
        text += " The last night is in doubt: the date of a run cannot be right.";
    }
    if found.stopped > 0 {
        text += &format!(" {} stopped: the plan was edited and still has their hosts.", found.stopped);
    }
    if found.suspicious > 0 {
        text += &format!(" {} may be intermittent.", found.suspicious);
    }
    if found.too_noisy > 0 {
        let verb = be(found.too_noisy);
        text += &format!(" {} {verb} too noisy to judge: not even half the rate would be seen.", found.too_noisy);
    }
    if found.repeats > 0 {
        text += &format!(" {} of the last night must be repeated at once.", found.repeats);
    }
    text
}

/// Why a series may be intermittent: low nights of all nights since a date, those without a value, and the deviation of
/// the others in percent.
pub(super) fn suspicion((low, nights): (usize, usize), lost: usize, effect: f64, since: &str) -> String {
    let what = some_nights(low, lost, effect);
    format!("{what} of {nights} nights since {since}: too few to be sure that it is intermittent")
}

/// `lower by 50 % on 3`, `failed or had no value on 3`, or both.
fn some_nights(low: usize, lost: usize, effect: f64) -> String {
    match low - lost {
        0 => format!("{NO_VALUE} on {lost}"),
        low if lost == 0 => format!("{} on {low}", apart(effect)),
        low => format!("{} on {low}, {NO_VALUE} on {lost}", apart(effect)),
    }
}

/// Whether a change in percent represents a missing value.
pub(super) fn is_nothing(change: f64) -> bool {
    change <= -100.0 || change.is_infinite()
}

fn apart(change: f64) -> String {
    format!("{} by {} %", if change < 0.0 { "lower" } else { "higher" }, percent(change.abs()))
}

fn moved(change: f64) -> String {
    if is_nothing(change) {
        return NO_VALUE.to_owned();
    }
    format!("{} by {} %", if change < 0.0 { "fell" } else { "rose" }, percent(change.abs()))
}

/// Sums of several consecutive changes for the worse of one series, the largest first.
pub(super) fn totals(series: &[Series]) -> Vec<Total> {
    let mut kinds: BTreeMap<&str, Vec<&Series>> = BTreeMap::new();
    series.iter().filter(|one| one.alive).for_each(|one| kinds.entry(&one.kind).or_default().push(one));
    let of_kind = |(kind, all): (&str, Vec<&Series>)| {
        let several: Vec<&Series> = all.iter().copied().filter(|one| standing(one).count() > 1).collect();
        let percent = median(&several.iter().filter_map(|one| against_good(one)).collect::<Vec<f64>>()).ok()?;
        let since = several.iter().flat_map(|one| standing(one)).map(|alert| alert.since.as_str()).min()?;
        let series = (several.len(), all.len());
        let sentence = total(percent, since, series);
        Some(Total { kind: kind.to_owned(), since: since.to_owned(), percent, series, sentence })
    };
    let mut totals: Vec<Total> = kinds.into_iter().filter_map(of_kind).collect();
    totals.sort_by(|a, b| b.percent.abs().total_cmp(&a.percent.abs()));
    totals
}

fn standing(one: &Series) -> impl Iterator<Item = &Alert> {
    let of_level = |rule| matches!(rule, Rule::Step | Rule::Drift);
    one.alerts.iter().filter(move |a| a.way == Way::Worse && a.state == State::Open && of_level(a.rule))
}

/// Percent; `None` without a present level.
fn against_good(one: &Series) -> Option<f64> {
    (one.missing == 0).then(|| 100.0 * (one.centre / one.accepted - 1.0)).filter(|percent| percent.is_finite())
}
