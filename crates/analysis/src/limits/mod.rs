//! Values compared with the limits of the plan: what breaks one, and what cannot be compared.

mod over_sizes;
mod peers;

use std::collections::HashSet;

use foldhash::HashMap;
use railgauge_model::plan::{
    Plan,
    model::{Expectation, Limit, Misfit, Scale, Source, Test, is_loss},
};

use self::{over_sizes::OverSizes, peers::Peers};
use crate::{
    baseline::Held,
    case::{CaseResult, State},
    ceiling::DISPROVED,
    journal::Journal,
    percentile,
    reason::{Id, Reason, Value},
    row::Row,
    together::{Loss, Subjects, is_telling},
};

pub(crate) use peers::AT_LEAST;

/// A case with its row of the metric.
pub(crate) type Scoped<'r> = (&'r CaseResult<'r>, &'r Row);

pub(crate) struct Judged<'r> {
    pub(crate) result: &'r CaseResult<'r>,
    pub(crate) row: &'r Row,
    /// That of the row, or the mean over sizes.
    pub(crate) value: f64,
    pub(crate) limit: f64,
    /// Whether the limit is the lowest good value; otherwise the highest.
    pub(crate) at_least: bool,
    /// Value over limit, or limit over value where lower is better: under 1 is a violation.
    pub(crate) quality: f64,
    pub(crate) violates: bool,
}

/// One expectation of the plan over the cases in its scope.
pub(crate) struct Judgement<'r> {
    pub(crate) scope: Vec<Scoped<'r>>,
    /// Worst first.
    pub(crate) judged: Vec<Judged<'r>>,
    /// Judged ones that are also trusted.
    pub(crate) trusted: usize,
    pub(crate) missing: Vec<Scoped<'r>>,
    pub(crate) doubtful: Vec<Scoped<'r>>,
    /// Without a limit to compare with, and why.
    pub(crate) unlimited: Vec<(Reason, &'r Row)>,
    pub(crate) wrong: Vec<Scoped<'r>>,
}

impl<'r> Judgement<'r> {
    /// `results` and `rows` are those of its test.
    pub(crate) fn new(
        journal: &Journal,
        test: &Test,
        wanted: &Expectation,
        results: &[&'r CaseResult<'r>],
        rows: &[&'r Row],
    ) -> Self {
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
        let over_sizes = OverSizes::of(wanted.source.as_ref(), &scope);
        let of_source = |(source, misfit)| other_than_source(source, misfit);

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
                    let value = applies(wanted, *one).and_then(|()| over_sizes.value(*one).map_err(of_source));
                    let compare = |value: Option<f64>| {
                        value.map(|value| held_against(wanted.limit, *one, value, (&peers, &held)))
                    };
                    match value.map(compare).and_then(Option::transpose) {
                        Ok(one) => {
                            trusted += usize::from(one.is_some() && !is_doubtful);
                            judged.extend(one);
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
        Self { scope, judged, trusted, missing, doubtful, unlimited, wrong }
    }

    fn fails(&self) -> bool {
        !self.wrong.is_empty() || self.judged.iter().any(|one| one.violates)
    }
}

/// The cases and rows of a test.
pub(crate) fn of_test<'r>(
    test: &Test,
    results: &'r [CaseResult<'r>],
    rows: &'r [Row],
) -> (Vec<&'r CaseResult<'r>>, Vec<&'r Row>) {
    let results = results.iter().filter(|result| *result.case.test == *test.name).collect();
    (results, rows.iter().filter(|row| *row.test == test.name).collect())
}

pub(crate) fn is_broken(journal: &Journal, test: &Test, results: &[CaseResult<'_>], rows: &[Row]) -> bool {
    let (results, rows) = of_test(test, results, rows);
    test.expect.iter().any(|wanted| Judgement::new(journal, test, wanted, &results, &rows).fails())
}

pub(crate) fn error(row: &Row) -> String {
    row.error.as_deref().unwrap_or("no reason was recorded").to_owned()
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

/// Whether a published limit is for values of this scale, size and statistic.
fn applies(wanted: &Expectation, (result, row): Scoped<'_>) -> Result<(), Box<Reason>> {
    let Some(source) = &wanted.source else { return Ok(()) };
    let flow = &result.case.flow;
    let hosts: HashSet<&str> = flow.members.iter().chain([&flow.from, &flow.to]).map(|port| &*port.host).collect();
    let ranks = Some(row.ranks).filter(|_| !result.case.cell.transport.is_within_host());
    let scale = Scale::of(u32::try_from(hosts.len()).ok(), &result.test.memory, ranks);
    source.misfit(row.metric, scale, &[row.size_bytes]).map_or(Ok(()), |misfit| Err(other_than_source(source, misfit)))
}

fn other_than_source(source: &Source, misfit: Misfit) -> Box<Reason> {
    let other = Reason::new(Id::OtherThanSource).with("system", &source.system);
    Box::new(other.with("observed", misfit.here).with("required", misfit.published))
}

fn held_against<'r>(
    limit: Limit,
    (result, row): Scoped<'r>,
    value: f64,
    (peers, held): (&Option<Peers>, &Option<Held<'_>>),
) -> Result<Judged<'r>, Box<Reason>> {
    let number = |value| Value::Number(value, row.metric.unit());
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
            let centre = peers.as_ref().and_then(|peers| peers.centre(result, row)).ok_or(few)?;
            (centre * if higher { 1.0 - percent / 100.0 } else { 1.0 + percent / 100.0 }, higher)
        }
        Limit::WithinPercentOfBaseline(percent) => {
            let held = held.as_ref().ok_or(Reason::new(Id::NoBaseline))?;
            (held.limit(result, row, percent)?, higher)
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
        let loss = Loss::of(result, row.metric).ok_or_else(|| Reason::new(Id::NoScatter).with("repeats", row.n))?;
        let (low, high) = loss.interval;
        let known = if value > limit { low > limit } else { high <= limit };
        if !known {
            let within = Reason::new(Id::WithinNoise).with("observed", number(value));
            return Err(Box::new(within.with("low", number(low)).with("high", number(high))));
        }
    }
    let (violates, quality) = if floor { (value < limit, value / limit) } else { (value > limit, limit / value) };
    Ok(Judged { result, row, value, limit, at_least: floor, quality, violates })
}

/// Whether a loss rests on fewer repeats than planned, because the flow lacks a number in some, alone or with the incast.
fn lacks_repeats(result: &CaseResult<'_>, row: &Row) -> bool {
    let measured = || Loss::of(result, row.metric).map_or(0, |loss| loss.repeats);
    is_loss(row.metric) && measured() < result.repeats as usize
}
