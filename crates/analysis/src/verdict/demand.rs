//! Compares one expectation of the plan with the rows in its scope.

use std::{collections::BTreeSet, sync::Arc};

use foldhash::{HashMap, HashMapExt};
use railgauge_model::{
    journal::event::{FlowAccount, Sample},
    plan::{
        metrics_of,
        model::{Expectation, Limit, Source, Test},
    },
};
use railgauge_wire::{
    Bytes, Metric,
    remedy::{self, Entry, Remedy},
};
use serde_json::json;

use super::{Kind, OFFENDERS, Offender, Scope, Tally, Verdict};
use crate::{
    case::{CaseResult, State},
    flows, gpus,
    journal::Journal,
    limits::{Judged, Judgement, Scoped, error, of_test},
    localise::Searched,
    nics,
    reason::{Id, Reason, Reasons, Value},
    row::Row,
    status::Status,
    words,
};

/// What the NIC of a host that carried least must have carried of the one that carried most, in percent: an idle NIC and two ranks on one
/// NIC are far below, channels of different lengths above. We know of no published figure.
const BALANCED: f64 = 50.0;
/// NCCL gives shorter messages fewer channels, and so fewer NICs.
const LARGE: Bytes = Bytes::from_mib(64);

/// The expectations of a test: those of the plan, and where the NICs of hosts were read and the plan says nothing of them, that all
/// carried their part at the largest size.
pub(super) fn expectations(test: &Test, rows: &[&Row]) -> Vec<Expectation> {
    let mut all = test.expect.clone();
    let largest = test.sizes.iter().copied().max().filter(|size| *size >= LARGE);
    let is_read = rows.iter().any(|row| row.metric == Metric::NicBalance && Some(row.size_bytes) == largest);
    if let Some(size) = largest.filter(|_| is_read && all.iter().all(|wanted| wanted.metric != Metric::NicBalance)) {
        all.push(Expectation {
            metric: Metric::NicBalance,
            limit: Limit::AtLeast(BALANCED),
            written: None,
            sizes: Some((size, size)),
            rails: Vec::new(),
            group: None,
            source: None,
            line: 0,
        });
    }
    all
}

/// A limit of the plan with which a value was compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    pub demand: Arc<str>,
    /// In the metric's unit.
    pub limit: f64,
    /// Whether the limit is the lowest good value; otherwise the highest.
    pub at_least: bool,
}

/// By case and metric. `rows` are those of `results`.
pub fn applied(journal: &Journal, results: &[CaseResult<'_>], rows: &[Row]) -> HashMap<(u64, Metric), Vec<Applied>> {
    let mut all: HashMap<(u64, Metric), Vec<Applied>> = HashMap::new();
    for test in &journal.plan.tests {
        let (results, rows) = of_test(test, results, rows);
        // A mean over sizes is compared with the limit, and no case has it as a value.
        let is_of_case = |wanted: &Expectation| !wanted.source.as_ref().is_some_and(Source::is_mean_of_sizes);
        for wanted in expectations(test, &rows).into_iter().filter(is_of_case) {
            let demand: Arc<str> = demand(&wanted).into();
            for one in Judgement::new(journal, test, &wanted, &results, &rows).judged {
                let applied = Applied { demand: Arc::clone(&demand), limit: one.limit, at_least: one.at_least };
                all.entry((one.row.case, wanted.metric)).or_default().push(applied);
            }
        }
    }
    all
}

/// `results` and `rows` are those of its test.
pub(super) fn judge<'r>(
    journal: &Journal,
    test: &Test,
    wanted: &Expectation,
    results: &[&'r CaseResult<'r>],
    rows: &[&'r Row],
) -> Verdict {
    let all = Judgement::new(journal, test, wanted, results, rows);
    let Judgement { scope, judged, missing, doubtful, unlimited, wrong, .. } = &all;
    let violating = judged.iter().filter(|one| one.violates).count();

    let of = scope.len();
    let not_run = !scope.is_empty() && scope.iter().all(|(result, _)| result.state == State::NotRun);
    let mut reason = Reasons::default();
    let status = if !wrong.is_empty() || violating > 0 {
        reason.extend(wrong.first().map(|one| blamed(Id::WrongBytes, *one, (wrong.len(), of))));
        if let Some(one) = judged.first().filter(|one| one.violates) {
            reason.push(compared(Id::Broken, wanted, one).with("cases", violating).with("of", of));
        }
        reason.extend(unjudged(&all));
        Status::Fail
    } else if scope.is_empty() {
        reason.push(no_match(test, wanted));
        Status::Inconclusive
    } else if not_run {
        reason.push(Reason::new(Id::NoneRun).with("of", of).with("error", error(scope[0].1)));
        Status::NotRun
    } else if !(missing.is_empty() && doubtful.is_empty() && unlimited.is_empty()) {
        reason.extend(unjudged(&all));
        if all.trusted > 0 {
            reason.push(Reason::new(Id::OthersKept).with("cases", all.trusted));
        }
        Status::Inconclusive
    } else {
        let kept = Reason::new(Id::Kept);
        reason.push(judged.first().map_or(kept, |one| compared(Id::Kept, wanted, one)).with("of", of));
        Status::Pass
    };
    let of_worst = judged.first().filter(|one| one.violates).and_then(|one| gpus::remedy(one.result));
    let few_peers = unlimited.iter().any(|(why, _)| why.id == Id::FewPeers);
    let remedy = of_worst.or_else(|| of_limit(judged)).or_else(|| few_peers.then_some(remedy::MORE_PEERS));
    Verdict {
        remedy: remedy.map(Remedy::from),
        scope: Scope::of(wanted).to_string(),
        narrowed: Scope::of(wanted).narrowed(),
        expectation: (wanted.line > 0).then(|| wanted.clone()),
        line: (wanted.line > 0).then_some(wanted.line),
        metric: Some(wanted.metric),
        unit: Some(wanted.metric.unit().to_owned()),
        source: wanted.source.clone(),
        worst: judged.first().map(offender),
        offenders: offenders(wrong, judged),
        compared: judged.iter().map(|one| (one.row.case, one.violates)).collect(),
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
        self.scoped(&self.demand)
    }

    /// `write-bw`, `write-bw (group leaf1)`.
    pub fn narrowed_test(&self) -> String {
        self.scoped(&self.test)
    }

    fn scoped(&self, text: &str) -> String {
        let narrowed = self.narrowed.iter().flat_map(Scope::parts);
        let of: Vec<String> = narrowed.chain(self.view.as_ref().map(Searched::to_string)).collect();
        if of.is_empty() { text.to_owned() } else { format!("{text} ({})", of.join(", ")) }
    }
}

/// What could not be compared with the limit.
fn unjudged(Judgement { scope, missing, doubtful, unlimited, .. }: &Judgement<'_>) -> impl Iterator<Item = Reason> {
    let of = scope.len();
    let cases = |id, cases: usize| Reason::new(id).with("cases", cases).with("of", of);
    let not_measured = missing.first().map(|(_, row)| cases(Id::NotMeasured, missing.len()).with("error", error(row)));
    let not_trusted = doubtful.first().map(|one| blamed(Id::NotTrusted, *one, (doubtful.len(), of)));
    let first = unlimited.first();
    let without = first.map(|(why, _)| cases(Id::Unlimited, unlimited.len()).with("why", Value::data(why)));
    [not_measured, not_trusted, without].into_iter().flatten()
}

/// For a limit that was broken; `None` where it was kept.
fn of_limit(judged: &[Judged<'_>]) -> Option<Entry> {
    let violating = judged.iter().filter(|one| one.violates).count();
    let worst = judged.first().filter(|one| one.violates)?;
    let case = worst.result.case;
    Some(match violating {
        _ if worst.row.metric == Metric::NicBalance => remedy::NIC_BALANCE,
        1 => remedy::LIMIT_BROKEN_BY_ONE,
        all if all == judged.len() => remedy::LIMIT_BROKEN_BY_ALL,
        _ if case.cell.transport.is_within_host() => remedy::LIMIT_BROKEN_WITHIN_HOSTS,
        _ if case.flow.members.is_empty() => remedy::BROKEN_LIMIT,
        _ => remedy::LIMIT_BROKEN_BY_GROUPS,
    })
}

fn offender(one: &Judged<'_>) -> Offender {
    Offender { value: Some(one.value), ..Offender::new(one.result, one.row, Some(one.limit)) }
}

fn offenders(wrong: &[Scoped<'_>], judged: &[Judged<'_>]) -> Vec<Offender> {
    let slow = judged.iter().filter(|one| one.violates).map(offender);
    wrong.iter().map(|(result, row)| Offender::new(result, row, None)).chain(slow).take(OFFENDERS).collect()
}

/// `bandwidth at least 90 Gb/s`.
fn demand(wanted: &Expectation) -> String {
    let over_sizes = wanted.source.as_ref().is_some_and(Source::is_mean_of_sizes);
    let metric = if over_sizes { format!("mean {} over sizes", wanted.metric) } else { wanted.metric.to_string() };
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

/// Of the sample with the lowest balance.
fn nics_of(result: &CaseResult<'_>) -> Option<String> {
    let balance = |sample: &&Sample| nics::worst(sample).map_or(f64::INFINITY, |(_, balance)| balance);
    let samples = result.samples.iter().map(|(_, sample)| *sample);
    samples.min_by(|a, b| balance(a).total_cmp(&balance(b))).and_then(nics::words)
}

/// The worst flow of all samples.
fn flow_of(metric: Metric, result: &CaseResult<'_>) -> Option<String> {
    let of = match metric {
        Metric::TogetherOverAlone => FlowAccount::over_alone,
        Metric::TogetherOverShare => FlowAccount::over_share,
        _ => return None,
    };
    let samples = result.samples.iter().map(|(_, sample)| *sample);
    let all = samples.filter_map(|sample| flows::worst(sample, of).map(|(flow, value)| (value, sample, flow)));
    all.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, sample, flow)| flows::words(sample, flow))
}

/// In the unit of the plan.
fn compared(id: Id, wanted: &Expectation, one: &Judged<'_>) -> Reason {
    let shown = |value: f64, text: String| Value::Shown(value, wanted.metric.unit(), text);
    let limit = words::limit(wanted).unwrap_or_else(|| words::held_against(wanted, one.limit));
    let reason = Reason::new(id).row((one.result, one.row)).with("required", shown(one.limit, limit));
    let value = one.value;
    let share = value / one.limit;
    reason
        .with("observed", shown(value, words::held_against(wanted, value)))
        .with("share", Value::Data(json!(share), words::share_of(share)))
        .with("gpus", one.violates.then(|| gpus_of(one.result)).flatten())
        .with("flow", one.violates.then(|| flow_of(wanted.metric, one.result)).flatten())
        .with("nics", (one.row.metric == Metric::NicBalance).then(|| nics_of(one.result)).flatten())
}
