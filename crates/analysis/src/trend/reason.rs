//! Alerts and changes in sentences for a person on call.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::plan::hostlist;
use railgauge_stats::robust::median;

use super::{Alert, Change, How, Reported, Rule, Series, State, Total, Trend, Watched, Way};
use crate::{
    status::Status,
    words::{are, be, count, number, percent, signed},
};

/// For nights that count as low because they have no value.
const NO_VALUE: &str = "failed or had no value";

/// Links named for a change that is mostly over.
const NAMED: usize = 2;

/// Percentage points, and share of a change, by which a level differs from that after the change.
const OTHER: f64 = 1.0;
const OTHER_SHARE: f64 = 0.1;

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
    let state = match (change.state, in_state(change, series, change.state).next()) {
        (State::Open | State::Left, _) if in_state(change, series, change.state).count() < all => {
            let left = if change.state == State::Open { now(change, series) } else { left(change, series) };
            parted(change, series, &left)
        }
        (State::Open, _) => format!("still open{}", now(change, series)),
        (State::Left, _) => left(change, series),
        (state, first) => match taken(change, series).filter(|_| state == State::Ended) {
            Some(what) => format!("over: {what}"),
            None => first.map_or_else(String::new, |(at, alert)| series[at].alerts[alert].ended()),
        },
    };
    format!("{} since {}{of}; {state}", effects.join(", "), change.since)
}

impl Alert {
    /// How it ended, in words.
    pub fn ended(&self) -> String {
        match (self.state, &self.end) {
            (State::WentAway, Some(end)) => format!("went away on {end}"),
            (State::Overtaken, Some(end)) => format!("overtaken on {end}"),
            (State::Accepted, Some(end)) => format!("accepted on {end}"),
            (State::Accepted, None) => "the plan waives it".to_owned(),
            _ => "no recent nights".to_owned(),
        }
    }
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

/// Status, heading and sentence, by the gravest finding.
pub(super) fn conclude(trend: &mut Trend) {
    let is_bad = |one: &&Reported| one.status == Status::Fail;
    // A fault that no later run measured remains one.
    let failed = [
        ("worse", open(trend, Way::Worse) > 0),
        (
            "a component is faulty",
            trend.reported.iter().filter(is_bad).any(|of| of.components.iter().any(|one| one.state == "faulty")),
        ),
        ("the last run failed", trend.reported.iter().any(|one| is_bad(&one))),
    ];
    let mut doubts = doubts(trend);
    doubts.retain(|(n, ..)| *n > 0);
    (trend.status, trend.word) = match (failed.iter().find(|(_, is)| *is), doubts.first()) {
        (Some((word, _)), _) => (Status::Fail, *word),
        (_, Some((_, word, _))) => (Status::Inconclusive, *word),
        (None, None) => (Status::Pass, "steady"),
    };
    trend.exit_code = trend.status.exit_code();
    trend.sentence = sentence(trend) + &doubts.into_iter().map(|(.., text)| text).collect::<String>();
    if trend.rotating > 0 {
        let (pairs, are) = (trend.rotating, be(trend.rotating));
        trend.sentence +=
            &format!(" {pairs} {are} of single pairs, whose hosts and NICs are monitored in their place.");
    }
}

/// What leaves the answer open, the gravest first: how often, a heading, and a sentence.
fn doubts(trend: &Trend) -> Vec<(usize, &'static str, String)> {
    const MISSING: &str = "values are missing";
    const DOUBT: &str = "in doubt";
    const FEW: &str = "not enough nights";
    let Trend { repeats, unanswered, stopped, suspicious, too_noisy, too_young, .. } = trend;
    let (missing, left, (lost, of)) =
        (trend.missing.len(), of_state(trend, State::Left), trend.lacking.unwrap_or_default());
    let undated = " The last night is in doubt: the date of a run cannot be right.";
    let reported = trend.reported.iter().filter(|one| one.status != Status::Pass).count();
    let watched = trend.series.iter().any(|series| matches!(series.state, Watched::Fully | Watched::Weakly));
    vec![
        (missing, MISSING, format!(" {} of the last night {} missing.", count(missing, "value"), be(missing))),
        (lost, MISSING, format!(" {lost} of {} gave no value: their result is unknown.", count(of, "run"))),
        (trend.torn.into(), MISSING, " The last run cannot be read.".to_owned()),
        (trend.undated.into(), "a date is wrong", undated.to_owned()),
        (reported, "the last run is not a pass", String::new()),
        (*repeats, "to be repeated", format!(" {repeats} low when last measured: repeat them at once.")),
        (*unanswered, DOUBT, format!(" {unanswered} failed or had no value in a run of the last night.")),
        (*stopped, DOUBT, format!(" {stopped} stopped: the plan was edited and still has their hosts.")),
        (*suspicious, DOUBT, format!(" {suspicious} may be intermittent.")),
        (
            left,
            "not known to be over",
            format!(" {} not known to be over: --epoch accepts it.", are(left, "regression")),
        ),
        (*too_noisy, "too noisy to judge", format!(" {too_noisy} {} too noisy to judge.", be(*too_noisy))),
        (*too_young, FEW, format!(" {too_young} {} too young: before 7 nights only limits count.", be(*too_young))),
        ((!watched).into(), FEW, String::new()),
    ]
}

fn of_state(trend: &Trend, state: State) -> usize {
    trend.changes.iter().filter(|change| change.state == state).count()
}

fn open(trend: &Trend, way: Way) -> usize {
    trend.changes.iter().filter(|change| change.state == State::Open && change.way == way).count()
}

fn sentence(trend: &Trend) -> String {
    let number_of = |state: Watched| trend.series.iter().filter(|series| series.state == state).count();
    let alive = trend.series.iter().filter(|series| series.alive).count();
    let over = trend.changes.len() - of_state(trend, State::Open) - of_state(trend, State::Left);
    let mut text = String::new();
    for one in trend.reported.iter().filter(|one| one.status != Status::Pass) {
        text += &format!("after the last run, {}: {}. ", one.directory, one.sentence.trim_end_matches('.'));
    }
    text + &format!(
        "{} of {alive} series monitored{}: {}, {}, {over} resolved.",
        number_of(Watched::Fully),
        match number_of(Watched::Weakly) {
            0 => String::new(),
            weakly => format!(" and {weakly} weakly, for want of nights"),
        },
        count(open(trend, Way::Worse), "open regression"),
        count(open(trend, Way::Better), "open improvement"),
    )
}

/// Why a series may be intermittent.
pub(super) fn suspicion(found: &Alert) -> String {
    let Alert { nights: (low, nights), since, .. } = found;
    let what = some_nights(*low, found.lost, found.percent);
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
        let (some, all) = series;
        let sentence =
            format!("{} altogether, in several changes since {since}; {some} of {all} series", moved(percent));
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
