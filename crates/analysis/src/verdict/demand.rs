//! Compares one expectation of the plan with the rows in its scope.

use std::collections::{BTreeSet, HashSet};

use foldhash::HashMap;
use railgauge_model::plan::{
    Plan, metrics_of,
    model::{Expectation, Limit, Test, is_loss},
};

use railgauge_wire::remedy::Remedy;
use serde_json::json;

use super::{
    Broken, Kind, OFFENDERS, Offender, Status, Tally, Verdict, broken, members, more_peers,
    peers::{AT_LEAST, Peers},
    reason::{Id, Reason, Reasons, Value},
    scope::Scope,
};
use crate::{
    baseline::Held,
    ceiling::DISPROVED,
    gpus,
    journal::Journal,
    localise::Searched,
    percentile,
    results::{CaseResult, State},
    row::Row,
    together::{Loss, Subjects, is_telling},
    words,
};

pub(super) type Scoped<'r> = (&'r CaseResult<'r>, &'r Row);

struct Judged<'r> {
    result: &'r CaseResult<'r>,
    row: &'r Row,
    limit: f64,
    /// Value over limit, or limit over value where lower is better: under 1 is a violation.
    quality: f64,
    violates: bool,
}

/// `results` and `rows` are those of its test.
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
    let compared_with = |(result, row): &Scoped<'_>| row.value.is_some() && result.state.is_trusted();
    let peers = match wanted.limit {
        Limit::WithinPercentOfPeers(_) => Some(Peers::new(of_metric().filter(compared_with))),
        _ => None,
    };
    let held = match wanted.limit {
        Limit::WithinPercentOfBaseline(_) => Held::new(journal, test),
        _ => None,
    };
    let scope = in_scope(&journal.plan, wanted, results, of_metric());

    let mut judged = Vec::new();
    // Judged ones that are also trusted.
    let mut trusted = 0;
    let (mut missing, mut doubtful, mut unlimited, mut wrong) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for one @ (result, row) in &scope {
        match result.state {
            State::Wrong => wrong.push(*one),
            State::NoValue => missing.push(*one),
            _ if row.value.is_none() => missing.push(*one),
            State::Impossible | State::Unverified => doubtful.push(*one),
            State::Contaminated if !(is_loss(row.metric) && is_telling(result)) => doubtful.push(*one),
            state => {
                let is_doubtful = state == State::Short || lacks_repeats(result, row);
                match held_against(wanted.limit, *one, peers.as_ref(), held.as_ref()) {
                    Ok(one) => {
                        trusted += usize::from(!is_doubtful);
                        judged.push(one);
                    }
                    Err(why) => unlimited.push((*why, *row)),
                }
                if is_doubtful {
                    doubtful.push(*one);
                }
            }
        }
    }
    judged.sort_by(|a, b| b.violates.cmp(&a.violates).then(a.quality.total_cmp(&b.quality)));
    let violating = judged.iter().filter(|one| one.violates).count();

    let of = scope.len();
    let unjudged = Unjudged { missing: &missing, doubtful: &doubtful, unlimited: &unlimited, of };
    let not_run = !scope.is_empty() && scope.iter().all(|(result, _)| result.state == State::NotRun);
    let mut reason = Reasons::default();
    let status = if !wrong.is_empty() || violating > 0 {
        reason.extend(wrong.first().map(|one| blamed(Id::WrongBytes, *one, (wrong.len(), of))));
        if let Some(one) = judged.first().filter(|one| one.violates) {
            reason.push(compared(Id::Broken, wanted, one).with("cases", violating).with("of", of));
        }
        reason.extend(unjudged.reasons());
        Status::Fail
    } else if scope.is_empty() {
        reason.push(no_match(test, wanted));
        Status::Inconclusive
    } else if not_run {
        reason.push(Reason::new(Id::NoneRun).with("of", of).with("error", error(scope[0].1)));
        Status::NotRun
    } else if !(missing.is_empty() && doubtful.is_empty() && unlimited.is_empty()) {
        reason.extend(unjudged.reasons());
        if trusted > 0 {
            reason.push(Reason::new(Id::OthersKept).with("cases", trusted));
        }
        Status::Inconclusive
    } else {
        let kept = Reason::new(Id::Kept);
        reason.push(judged.first().map_or(kept, |one| compared(Id::Kept, wanted, one)).with("of", of));
        Status::Pass
    };
    reason.extend(
        held.as_ref()
            .and_then(Held::set_up)
            .map(|difference| Reason::new(Id::SetUpDifferently).with("difference", Value::data(&difference))),
    );
    reason.extend(held.as_ref().and_then(Held::other_parts).map(|parts| {
        let hosts: Vec<&String> = parts.replaced.iter().map(|one| &one.host).collect();
        Reason::new(Id::OtherParts).hosts(hosts).with("parts", Value::data(&parts))
    }));
    if let Limit::PercentOfCeiling(_) = wanted.limit {
        reason.extend(members::missing(journal, results, &scope));
    }
    let broken = (violating > 0)
        .then(|| {
            let least = 1.0 - journal.plan.localise.least_percent / 100.0;
            let is_near = judged.iter().all(|one| !one.violates || one.quality >= least);
            let judged = held_to(&judged);
            Broken::of(&broken::Held { scope: &scope, judged: &judged, wrong: &wrong, missing: &missing, is_near })
        })
        .flatten();
    let lonely = unlimited.iter().filter(|(why, _)| why.id == Id::FewPeers);
    let of_worst = judged.first().filter(|one| one.violates).and_then(|one| gpus::remedy(one.result));
    let remedy = of_worst
        .map(Remedy::from)
        .or_else(|| more_peers::remedy(wanted, lonely.filter_map(|(_, row)| Some((row.size_bytes, row.value?)))));
    Verdict {
        remedy,
        scope: Scope::of(wanted).to_string(),
        narrowed: Scope::of(wanted).narrowed(),
        line: Some(wanted.line),
        metric: Some(wanted.metric),
        unit: Some(wanted.metric.unit().to_owned()),
        worst: judged.first().map(|one| Offender::new(one.result, one.row, Some(one.limit))),
        offenders: offenders(&wrong, &judged),
        broken,
        breaking: judged.iter().filter(|one| one.violates).map(|one| one.row.case).collect(),
        tally: Tally {
            in_scope: of,
            judged: judged.len(),
            violating: violating + wrong.len(),
            doubtful: doubtful.len(),
            missing: missing.len(),
            unlimited: unlimited.len(),
        },
        ..Verdict::new(Kind::Expectation, &test.name, demand(wanted), status, reason)
    }
}

impl Verdict {
    /// With the scope, unless it is the whole test: `bandwidth at least 90 Gb/s (group leaf1)`.
    pub fn demanded(&self) -> String {
        let narrowed = self.narrowed.iter().flat_map(Scope::parts);
        let of: Vec<String> = narrowed.chain(self.view.as_ref().map(Searched::to_string)).collect();
        if of.is_empty() { self.demand.clone() } else { format!("{} ({})", self.demand, of.join(", ")) }
    }
}

struct Unjudged<'s, 'r> {
    missing: &'s [Scoped<'r>],
    doubtful: &'s [Scoped<'r>],
    unlimited: &'s [(Reason, &'r Row)],
    of: usize,
}

impl Unjudged<'_, '_> {
    fn reasons(&self) -> impl Iterator<Item = Reason> {
        let Self { missing, doubtful, unlimited, of } = *self;
        let cases = |id, cases: usize| Reason::new(id).with("cases", cases).with("of", of);
        let not_measured =
            missing.first().map(|(_, row)| cases(Id::NotMeasured, missing.len()).with("error", error(row)));
        let not_trusted = doubtful.first().map(|one| blamed(Id::NotTrusted, *one, (doubtful.len(), of)));
        let first = unlimited.first();
        let without = first.map(|(why, _)| cases(Id::Unlimited, unlimited.len()).with("why", Value::data(why)));
        [not_measured, not_trusted, without].into_iter().flatten()
    }
}

/// What was compared with its limit, in the order of the cases, and whether it breaks it.
fn held_to<'r>(judged: &[Judged<'r>]) -> Vec<(Scoped<'r>, bool)> {
    let mut all: Vec<(Scoped<'r>, bool)> = judged.iter().map(|one| ((one.result, one.row), one.violates)).collect();
    all.sort_by_key(|((_, row), _)| (row.size_bytes, row.case));
    all
}

fn offenders(wrong: &[Scoped<'_>], judged: &[Judged<'_>]) -> Vec<Offender> {
    let slow = judged.iter().filter(|one| one.violates).map(|one| Offender::new(one.result, one.row, Some(one.limit)));
    wrong.iter().map(|(result, row)| Offender::new(result, row, None)).chain(slow).take(OFFENDERS).collect()
}

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

fn held_against<'r>(
    limit: Limit,
    (result, row): Scoped<'r>,
    peers: Option<&Peers>,
    held: Option<&Held<'_>>,
) -> Result<Judged<'r>, Box<Reason>> {
    let number = |value| Value::Number(value, row.metric.unit());
    let value = row.value.ok_or_else(|| Reason::new(Id::NoValue).with("error", error(row)))?;
    let higher = row.better == railgauge_wire::terms::Better::Higher;
    let (limit, floor) = match limit {
        Limit::AtLeast(limit) => (limit, true),
        Limit::AtMost(limit) => (limit, false),
        Limit::PercentOfCeiling(percent) => {
            let ceiling = row.ceiling.ok_or(Reason::new(Id::NoCeiling))?;
            if value > DISPROVED * ceiling {
                let above = Reason::new(Id::AboveCeiling).about(format!("{} → {}", row.src_host, row.dst_host));
                return Err(Box::new(above.with("observed", number(value)).with("required", number(ceiling))));
            }
            (ceiling * percent / 100.0, true)
        }
        Limit::WithinPercentOfPeers(percent) => {
            let few = Reason::new(Id::FewPeers).with("required", AT_LEAST);
            let centre = peers.and_then(|peers| peers.centre(result, row)).ok_or(few)?;
            (centre * if higher { 1.0 - percent / 100.0 } else { 1.0 + percent / 100.0 }, higher)
        }
        Limit::WithinPercentOfBaseline(percent) => {
            let held = held.ok_or(Reason::new(Id::NoBaseline))?;
            let refused = |refusal| Reason::new(Id::Baseline).with("refusal", Value::data(&refusal));
            (held.limit(result, row, percent).map_err(refused)?, higher)
        }
    };
    // Too few operations do not support a percentile. It only exceeds its limit for certain if the median does.
    if !percentile::carried_by(row.metric, result) && !percentile::above_for_certain(row.metric, result, limit) {
        let few = Value::data(&percentile::too_few(row.metric, result));
        return Err(Box::new(Reason::new(Id::TooFewOperations).with("few", few)));
    }
    // If a loss is within the noise of the repeats, its side of the limit is unknown.
    if is_loss(row.metric) {
        // What the ports of one machine share is outside the fabric.
        let shared = result.part.as_ref().and_then(|part| part.alone.as_ref()).map(|alone| &alone.one_machine);
        if let Some(hosts) = shared.filter(|hosts| !hosts.is_empty()) {
            return Err(Box::new(Reason::new(Id::OneMachine).all(hosts.clone())));
        }
        let loss = Loss::of(result).ok_or_else(|| Reason::new(Id::NoScatter).with("repeats", row.n))?;
        let (low, high) = loss.interval;
        let known = if value > limit { low > limit } else { high <= limit };
        if !known {
            let within = Reason::new(Id::WithinNoise).with("observed", number(value));
            return Err(Box::new(within.with("low", number(low)).with("high", number(high))));
        }
    }
    let (violates, quality) = if floor { (value < limit, value / limit) } else { (value > limit, limit / value) };
    Ok(Judged { result, row, limit, quality, violates })
}

/// Whether a loss rests on fewer repeats than planned, because the flow lacks a number in some, alone or with the incast.
fn lacks_repeats(result: &CaseResult<'_>, row: &Row) -> bool {
    let measured = || Loss::of(result).map_or(0, |loss| loss.repeats);
    is_loss(row.metric) && measured() < result.repeats as usize
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

fn no_match(test: &Test, wanted: &Expectation) -> Reason {
    if metrics_of(test.metric, test.op, test.flows_at_once(), test.beside.as_ref()).contains(&wanted.metric) {
        Reason::new(Id::NothingInScope).with("scope", Value::data(&Scope::of(wanted)))
    } else {
        Reason::new(Id::NotYielded).with("metric", wanted.metric.to_string())
    }
}

fn error(row: &Row) -> String {
    row.error.as_deref().unwrap_or("no reason was recorded").to_owned()
}

/// The problem of the first of these cases.
fn blamed(id: Id, one: Scoped<'_>, (cases, of): (usize, usize)) -> Reason {
    Reason::new(id).row(one).with("error", error(one.1)).with("cases", cases).with("of", of)
}

fn gpus_of(result: &CaseResult<'_>) -> Option<String> {
    let gpus = result.samples.iter().flat_map(|(_, sample)| &sample.gpus);
    let hosts: BTreeSet<&str> = gpus.map(|gpu| gpu.host.as_str()).collect();
    let told = |host: &&str| {
        let (words, _) = gpus::told(std::iter::once(result), host)?;
        Some(if hosts.len() > 1 { format!("{host}: {words}") } else { words })
    };
    let told: Vec<String> = hosts.iter().filter_map(told).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// In the unit of the plan.
fn compared(id: Id, wanted: &Expectation, one: &Judged<'_>) -> Reason {
    let shown = |value: f64, text: String| Value::Shown(value, wanted.metric.unit(), text);
    let limit = words::limit(wanted).unwrap_or_else(|| words::held_against(wanted, one.limit));
    let reason = Reason::new(id).row((one.result, one.row)).with("required", shown(one.limit, limit));
    let Some(value) = one.row.value else { return reason };
    let share = value / one.limit;
    reason
        .with("observed", shown(value, words::held_against(wanted, value)))
        .with("share", Value::Data(json!(share), words::share_of(share)))
        .with("gpus", one.violates.then(|| gpus_of(one.result)).flatten())
}
