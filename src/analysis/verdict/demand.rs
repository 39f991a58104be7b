//! One expectation of the plan, held against the rows in its scope.

use std::collections::{HashMap, HashSet};

use railgauge_model::plan::{
    Plan, metrics_of,
    model::{Expectation, Limit, Test},
};

use super::{
    Kind, OFFENDERS, Offender, Status, Tally, Verdict,
    peers::{AT_LEAST, Peers},
};
use crate::analysis::{
    baseline::Held,
    ceiling::DISPROVED,
    journal::Journal,
    percentile,
    results::{CaseResult, State},
    row::Row,
    together::Subjects,
    words::{self, count, sizes},
};

/// A row and the case it belongs to.
type Scoped<'r> = (&'r CaseResult<'r>, &'r Row);

/// A row that was held against its limit.
struct Judged<'r> {
    result: &'r CaseResult<'r>,
    row: &'r Row,
    limit: f64,
    /// Value over limit, or limit over value where lower is better: under 1 is a violation.
    quality: f64,
    violates: bool,
}

/// Why a row has no ceiling.
const NO_CEILING: &str = "no ceiling is known for the link (its rate is not reported, or it is emulated in software)";

/// What is said of a ceiling that a value passes.
fn disproved(value: f64, ceiling: f64, row: &Row) -> String {
    let [value, ceiling] = [value, ceiling].map(|value| format!("{} {}", words::number(value), row.unit));
    format!(
        "{} → {} reached {value}, and its ceiling was reckoned to be {ceiling}: the rate of the link or its slot was read wrong \
         (docs/ceilings.md; what was read is in facts.json)",
        row.src_host, row.dst_host
    )
}

/// Judges one expectation. `results` and `rows` are those of its test.
pub(super) fn judge<'r>(
    journal: &Journal,
    test: &Test,
    wanted: &Expectation,
    results: &[&'r CaseResult<'r>],
    rows: &[&'r Row],
) -> Verdict {
    let by_case: HashMap<u64, &CaseResult<'_>> = results.iter().map(|result| (result.case.id, *result)).collect();
    let of_metric = || {
        let rows = rows.iter().filter(|row| row.metric == wanted.metric);
        rows.filter_map(|row| Some((*by_case.get(&row.case)?, *row)))
    };
    let trusted =
        |(result, row): &Scoped<'_>| row.value.is_some() && matches!(result.state, State::Measured | State::Short);
    let peers = match wanted.limit {
        Limit::WithinPercentOfPeers(_) => Some(Peers::new(of_metric().filter(trusted))),
        _ => None,
    };
    let held = match wanted.limit {
        Limit::WithinPercentOfBaseline(_) => Held::new(journal, test),
        _ => None,
    };
    let scope = in_scope(&journal.plan, wanted, results, of_metric());

    let mut judged = Vec::new();
    let (mut missing, mut doubtful, mut unlimited, mut wrong) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for one @ (result, row) in &scope {
        match result.state {
            State::Wrong => wrong.push(*one),
            State::NoValue => missing.push(*one),
            _ if row.value.is_none() => missing.push(*one),
            State::Impossible | State::Contaminated | State::Unverified => doubtful.push(*one),
            state => {
                match held_against(wanted.limit, *one, peers.as_ref(), held.as_ref()) {
                    Ok(one) => judged.push(one),
                    Err(why) => unlimited.push(why),
                }
                if state == State::Short {
                    doubtful.push(*one);
                }
            }
        }
    }
    judged.sort_by(|a, b| b.violates.cmp(&a.violates).then(a.quality.total_cmp(&b.quality)));
    let violating = judged.iter().filter(|one| one.violates).count();

    let total = count(scope.len(), "case");
    let not_run = !scope.is_empty() && scope.iter().all(|(result, _)| result.state == State::NotRun);
    let mut reasons = Vec::new();
    let status = if !wrong.is_empty() || violating > 0 {
        if let Some(one) = wrong.first() {
            reasons.push(format!("{} of {total} delivered wrong bytes: {}", wrong.len(), named(one)));
        }
        if let Some(one) = judged.first().filter(|one| one.violates) {
            reasons.push(format!("{violating} of {total} broke it; worst: {}", compared(wanted, one)));
        }
        Status::Fail
    } else if scope.is_empty() {
        reasons.push(no_match(test, wanted));
        Status::Inconclusive
    } else if not_run {
        reasons.push(format!("none of its {total} was run: {}", error(scope[0].1)));
        Status::NotRun
    } else if !(missing.is_empty() && doubtful.is_empty() && unlimited.is_empty()) {
        if let Some((_, row)) = missing.first() {
            reasons.push(format!("{} of {total} not measured: {}", missing.len(), error(row)));
        }
        if let Some(one) = doubtful.first() {
            reasons.push(format!("{} of {total} not to be trusted: {}", doubtful.len(), named(one)));
        }
        if let Some(why) = unlimited.first() {
            reasons.push(format!("{} of {total} cannot be held against it: {why}", unlimited.len()));
        }
        if !judged.is_empty() {
            reasons.push(format!("the other {} kept it", judged.len()));
        }
        Status::Inconclusive
    } else {
        let nearest =
            judged.first().map_or_else(String::new, |one| format!("; nearest to it: {}", compared(wanted, one)));
        let all = if scope.len() == 1 { "" } else { "all " };
        reasons.push(format!("{all}{total} kept it{nearest}"));
        Status::Pass
    };
    reasons.extend(held.map(|held| held.words()).filter(|words| !words.is_empty()));
    Verdict {
        kind: Kind::Expectation,
        waived: false,
        key: None,
        holdings: Vec::new(),
        parts: Vec::new(),
        test: test.name.clone(),
        demand: demand(wanted),
        scope: scope_words(wanted),
        line: Some(wanted.line),
        metric: Some(wanted.metric),
        unit: Some(wanted.metric.unit().to_owned()),
        status,
        reason: reasons.join("; "),
        worst: judged.first().map(|one| Offender::new(one.result, one.row, Some(one.limit))),
        offenders: offenders(&wrong, &judged),
        tally: Tally {
            in_scope: scope.len(),
            judged: judged.len(),
            violating: violating + wrong.len(),
            doubtful: doubtful.len(),
            missing: missing.len(),
        },
    }
}

fn offenders(wrong: &[Scoped<'_>], judged: &[Judged<'_>]) -> Vec<Offender> {
    let slow = judged.iter().filter(|one| one.violates).map(|one| Offender::new(one.result, one.row, Some(one.limit)));
    wrong.iter().map(|(result, row)| Offender::new(result, row, None)).chain(slow).take(OFFENDERS).collect()
}

/// The rows among these that an expectation is about.
fn in_scope<'r>(
    plan: &Plan,
    wanted: &Expectation,
    results: &[&'r CaseResult<'r>],
    rows: impl Iterator<Item = Scoped<'r>>,
) -> Vec<Scoped<'r>> {
    let all = wanted.rails.is_empty() && wanted.group.is_none();
    let subjects = if all { Subjects::default() } else { Subjects::new(results) };
    let hosts = |group: &String| plan.groups.get(group).into_iter().flatten().map(String::as_str).collect();
    let group: Option<HashSet<&str>> = wanted.group.as_ref().map(hosts);
    let is_member = |host: &str| group.as_ref().is_none_or(|hosts| hosts.contains(host));
    let of_size = |row: &Row| wanted.sizes.is_none_or(|(from, to)| (from..=to).contains(&row.size_bytes));
    rows.filter(|(_, row)| of_size(row))
        .filter(|(result, row)| all || subjects.are_within((result, row.metric, row.rail), &wanted.rails, is_member))
        .collect()
}

/// Holds a measured row against its limit, or says why there is none for it.
fn held_against<'r>(
    limit: Limit,
    (result, row): Scoped<'r>,
    peers: Option<&Peers>,
    held: Option<&Held<'_>>,
) -> Result<Judged<'r>, String> {
    let value = row.value.ok_or_else(|| error(row).to_owned())?;
    let higher = row.better == railgauge_wire::terms::Better::Higher;
    let (limit, floor) = match limit {
        Limit::AtLeast(limit) => (limit, true),
        Limit::AtMost(limit) => (limit, false),
        Limit::PercentOfCeiling(percent) => {
            let ceiling = row.ceiling.ok_or(NO_CEILING)?;
            if value > DISPROVED * ceiling {
                return Err(disproved(value, ceiling, row));
            }
            (ceiling * percent / 100.0, true)
        }
        Limit::WithinPercentOfPeers(percent) => {
            let few = || format!("fewer than {AT_LEAST} other links of the same size and rail were measured");
            let centre = peers.and_then(|peers| peers.centre(result, row)).ok_or_else(few)?;
            (centre * if higher { 1.0 - percent / 100.0 } else { 1.0 + percent / 100.0 }, higher)
        }
        Limit::WithinPercentOfBaseline(percent) => {
            let held = held.ok_or("the plan has no baseline")?;
            (held.limit(result, row, percent)?, higher)
        }
    };
    // What too few operations carry is no percentile. It is above its limit for certain only where the median is.
    if !percentile::carried_by(row.metric, result) && !percentile::above_for_certain(row.metric, result, limit) {
        return Err(percentile::too_few(row.metric, result));
    }
    let (violates, quality) = if floor { (value < limit, value / limit) } else { (value > limit, limit / value) };
    Ok(Judged { result, row, limit, quality, violates })
}

/// `bandwidth at least 90 Gb/s`.
fn demand(wanted: &Expectation) -> String {
    let metric = wanted.metric;
    let limit = words::limit(wanted).unwrap_or_default();
    match wanted.limit {
        Limit::AtLeast(_) => format!("{metric} at least {limit}"),
        Limit::AtMost(_) => format!("{metric} at most {limit}"),
        Limit::PercentOfCeiling(percent) => format!("{metric} at least {percent} % of the ceiling"),
        Limit::WithinPercentOfPeers(percent) => {
            format!("{metric} not worse than the median of its peers by more than {percent} %")
        }
        Limit::WithinPercentOfBaseline(percent) => {
            format!("{metric} not worse than the baseline by more than {percent} %")
        }
    }
}

/// `64 KiB to 8 MiB, rails 0, 1, group leaf1`.
fn scope_words(wanted: &Expectation) -> String {
    let mut words = Vec::new();
    words.push(wanted.sizes.map_or_else(|| "all sizes".to_owned(), sizes));
    match wanted.rails.as_slice() {
        [] => {}
        [rail] => words.push(format!("rail {rail}")),
        rails => words.push(format!("rails {}", rails.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))),
    }
    words.extend(wanted.group.as_ref().map(|group| format!("group {group}")));
    words.join(", ")
}

fn no_match(test: &Test, wanted: &Expectation) -> String {
    if metrics_of(test.metric, test.op, test.at_once()).contains(&wanted.metric) {
        format!("no case lies within its scope ({}), so nothing was judged", scope_words(wanted))
    } else {
        format!("this test does not yield {}, so nothing was judged", wanted.metric)
    }
}

fn error(row: &Row) -> &str {
    row.error.as_deref().unwrap_or("no reason was recorded")
}

fn named((result, row): &Scoped<'_>) -> String {
    format!("{}: {}", Offender::new(result, row, None).place(), error(row))
}

/// `gpu01 → gpu02, rail 0, 64 KiB: 45.20 Gb/s, 50.2 % of the limit of 90 Gb/s`, in the plan's own unit.
fn compared(wanted: &Expectation, one: &Judged<'_>) -> String {
    let value = one.row.value.map_or_else(String::new, |value| words::held_against(wanted, value));
    let place = Offender::new(one.result, one.row, None).place();
    let limit = words::limit(wanted).unwrap_or_else(|| words::held_against(wanted, one.limit));
    let share = match one.row.value.map(|value| value / one.limit).filter(|share| share.is_finite()) {
        Some(share) if share > 2.0 => format!(", {}", words::share(share)),
        Some(share) => format!(", {} of", words::share(share)),
        None => ", against".to_owned(),
    };
    format!("{place}: {value}{share} the limit of {limit}")
}
