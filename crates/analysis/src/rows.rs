//! Makes rows of cases: one per metric of a case, including cases that were not measured.

use std::{collections::HashMap, sync::Arc};

use railgauge_model::{
    journal::event::{LinkRecord, Sample},
    plan::{
        headline, metrics_of,
        model::{Test, is_loss},
    },
    schedule::Cell,
};
use railgauge_stats::robust::median;
use railgauge_wire::{Family, HostFacts, Metric, Reads, Side};

use super::{
    journal::Journal,
    parallel, percentile,
    row::{CaseColumns, CellColumns, Phase, Row, Texts},
    row_ceiling::RowCeilings,
    together,
    value::{self, Direction},
    words,
};
use crate::case::CaseResult;

/// The ceiling of a row in its unit.
type Ceiling<'c> = dyn Fn(&CaseResult<'_>, Metric) -> Option<f64> + Sync + 'c;

type Facts<'j> = Box<dyn Fn(&str) -> Option<&'j HostFacts> + Sync + 'j>;

/// With ceilings, in the order of the cases; within a case in the order of [`metrics_of`].
pub fn rows(journal: &Journal, results: &[CaseResult<'_>]) -> Vec<Row> {
    Maker::new(journal, results).rows(results, |_, _| true)
}

/// Without ceilings, for readers of values: the settling of suspects, and a history that is read again. The search for
/// parts needs [`rows`], because a ceiling may decide which part is bad.
pub(crate) fn rows_without_ceilings(journal: &Journal, results: &[CaseResult<'_>]) -> Vec<Row> {
    all(journal, results, &|_, _| None, &|_, _| true)
}

/// The rows needed for the verdicts and the page, in the order of [`rows`]: the metric of every test and of its limits,
/// and all rows of tests whose cases share something. Other metrics of pairs are only summed by test ([`Maker::value`])
/// and stored in the frame: a run may have millions of cases, and rows take the most memory.
pub fn judged_rows(journal: &Journal, results: &[CaseResult<'_>]) -> Vec<Row> {
    Maker::new(journal, results).rows(results, is_judged)
}

fn is_judged(test: &Test, metric: Metric) -> bool {
    metric == headline(test.metric, test.op)
        || !matches!(metric.family(), Family::Flow | Family::Latency)
        || test.expect.iter().any(|wanted| wanted.metric == metric)
}

pub struct Maker<'j> {
    journal: &'j Journal,
    ceilings: RowCeilings<Facts<'j>>,
}

impl<'j> Maker<'j> {
    /// All flows of a round must be among `results`.
    pub fn new<'r>(journal: &'j Journal, results: impl IntoIterator<Item = &'r CaseResult<'r>>) -> Self {
        let facts: Facts<'j> = Box::new(|host| journal.hosts.get(host).map(|up| &up.facts));
        Self { journal, ceilings: RowCeilings::new(facts, results.into_iter()) }
    }

    pub fn rows(&self, results: &[CaseResult<'_>], wanted: impl Fn(&Test, Metric) -> bool + Sync) -> Vec<Row> {
        all(self.journal, results, &|result, metric| self.ceilings.of(result, metric), &wanted)
    }

    /// `None` without a row of the metric.
    pub fn value(&self, result: &CaseResult<'_>, metric: Metric) -> Option<(Option<f64>, Option<f64>)> {
        let measured = Measured::of(result, metric)?;
        Some((median(&measured.values).ok(), self.ceilings.of(result, metric)))
    }
}

fn all(
    journal: &Journal,
    results: &[CaseResult<'_>],
    ceiling: &Ceiling<'_>,
    wanted: &(dyn Fn(&Test, Metric) -> bool + Sync),
) -> Vec<Row> {
    let tool = format!("railgauge {}", journal.version);
    parallel::parts(results, |results| {
        let (mut texts, mut rows) = (Texts::default(), Vec::with_capacity(results.len()));
        let mut cells = HashMap::new();
        for result in results {
            let of = cells.entry(shared_by(journal, result));
            let of =
                Arc::clone(of.or_insert_with_key(|key| Arc::new(of_cell(journal, result, key, &tool, &mut texts))));
            let of = Arc::new(of_all(result, of));
            let metrics = metrics(result).into_iter().filter(|metric| wanted(result.test, *metric));
            rows.extend(of_case(result, metrics, &of, ceiling));
        }
        rows
    })
}

fn metrics(result: &CaseResult<'_>) -> Vec<Metric> {
    let (cell, test) = (&result.case.cell, result.test);
    metrics_of(cell.metric, cell.op, test.flows_at_once(), test.beside.as_ref())
}

struct Measured {
    values: Vec<f64>,
    senseless: Option<String>,
}

impl Measured {
    /// `None` without a row of the metric.
    fn of(result: &CaseResult<'_>, metric: Metric) -> Option<Self> {
        if !together::has_row(result, metric) {
            return None;
        }
        let mut values = Vec::new();
        let mut senseless = None;
        for (repeat, sample) in &result.samples {
            match of_repeat(result, metric, *repeat, sample) {
                Ok(value) => values.extend(value),
                Err(why) => senseless = Some(format!("{} (repeat {repeat}): {why}", result.case.flow.from.host)),
            }
        }
        // A passive responder spends nothing, not all NICs count, and few flows are measured alone: no row, instead of a row that seems
        // to be missing.
        let is_optional = matches!(metric.reads(), Reads::Spent(Side::Responder, _))
            || metric.is_optional() && matches!(metric.reads(), Reads::Collective(_));
        if values.is_empty() && senseless.is_none() && is_optional {
            return None;
        }
        Some(Self { values, senseless })
    }
}

fn of_case<'r>(
    result: &'r CaseResult<'r>,
    metrics: impl Iterator<Item = Metric> + 'r,
    of: &'r Arc<CaseColumns>,
    ceiling: &'r Ceiling<'_>,
) -> impl Iterator<Item = Row> {
    let error = result.error();
    metrics.filter_map(move |metric| {
        let Measured { values, senseless } = Measured::of(result, metric)?;
        // Why the flow alone is not a reference.
        let no_loss = result.part.as_ref().and_then(|part| part.alone.as_ref()?.distrusted.clone());
        let no_loss = no_loss.filter(|_| is_loss(metric) && values.is_empty());
        let absent = (values.is_empty() && no_loss.is_none() && !result.samples.is_empty() && senseless.is_none())
            .then(|| {
                let host = &result.case.flow.from.host;
                if percentile::carried_by(metric, result) {
                    format!("{host}: measure: the sample holds no {metric}")
                } else {
                    format!("{host}: measure: {}", percentile::too_few(metric, result))
                }
            });
        // A missing value in a sample is already an objection to the case.
        let own = [senseless, absent, no_loss].into_iter().flatten().filter(|_| result.lacks.absent.is_empty());
        let words: Vec<String> = error.clone().into_iter().chain(own).collect();
        Some(Row {
            of: Arc::clone(of),
            metric,
            better: metric.better(),
            n: u32::try_from(values.len()).unwrap_or(u32::MAX),
            value: median(&values).ok(),
            value_min: values.iter().copied().reduce(f64::min).into(),
            value_max: values.iter().copied().reduce(f64::max).into(),
            ceiling: ceiling(result, metric),
            error: (!words.is_empty()).then(|| words.join("; ").into()),
        })
    })
}

fn of_repeat(
    result: &CaseResult<'_>,
    metric: Metric,
    repeat: u32,
    sample: &Sample,
) -> Result<Option<f64>, value::Senseless> {
    let cell = &result.case.cell;
    match cell.manner {
        Some(_) => value::of_group(metric, sample, cell, result.case.flow.ranks()),
        None if result.part.is_some() && matches!(metric.reads(), Reads::Round) => {
            Ok(together::sum(result, repeat, metric))
        }
        None => value::of(metric, sample, direction(result, repeat, sample)),
    }
}

pub fn repeats(result: &CaseResult<'_>, metric: Metric) -> Vec<f64> {
    by_repeat(result, metric).map(|(_, value)| value).collect()
}

pub(crate) fn by_repeat(result: &CaseResult<'_>, metric: Metric) -> impl Iterator<Item = (u32, f64)> {
    let of = move |(repeat, sample): &(u32, &Sample)| {
        Some((*repeat, of_repeat(result, metric, *repeat, sample).ok().flatten()?))
    };
    result.samples.iter().filter_map(of)
}

/// Key of cases with equal [`CellColumns`].
#[derive(PartialEq, Eq, Hash)]
struct Key<'j> {
    test: &'j str,
    cell: *const Cell,
    ranks: u32,
    link: Option<*const LinkRecord>,
    measured: bool,
    gpus: [Option<u32>; 2],
    env: String,
    phase: Phase,
}

fn shared_by<'j>(journal: &Journal, result: &CaseResult<'j>) -> Key<'j> {
    let case = result.case;
    Key {
        test: &case.test,
        cell: &raw const *case.cell,
        ranks: case.flow.ranks(),
        link: result.link.map(std::ptr::from_ref),
        measured: !result.samples.is_empty(),
        gpus: [gpu(result, true), gpu(result, false)],
        env: env(result),
        phase: if (case.id as usize) < journal.cases.len() { Phase::Test } else { Phase::Confirmation },
    }
}

fn of_cell(journal: &Journal, of: &CaseResult<'_>, key: &Key<'_>, tool: &str, texts: &mut Texts) -> CellColumns {
    let (cell, link) = (&of.case.cell, of.link);
    let gpu_path = match (cell.memory.has_gpu(), link) {
        (false, _) => "none",
        (true, link) => link.map_or("", |link| link.gpu_path.word()),
    };
    CellColumns {
        run_id: texts.shared(&journal.run_id),
        plan: texts.shared(&journal.plan.name),
        test: texts.shared(key.test),
        op: texts.shared(cell.op.word()),
        size_bytes: cell.size,
        ranks: key.ranks,
        qps: if cell.only.is_some() { 1 } else { cell.qps },
        transport: texts.shared(link.filter(|_| key.measured).map_or("", |link| link.transport.word())),
        link_layer: texts.shared(link.map_or("", |link| link.link_layer.word())),
        src_memory: texts.shared(cell.memory.from.word()),
        dst_memory: texts.shared(cell.memory.to.word()),
        gpu_path: texts.shared(gpu_path),
        src_device: texts.shared(link.map_or("", |link| &link.from_device)),
        src_gpu: key.gpus[0],
        dst_device: texts.shared(link.map_or("", |link| &link.to_device)),
        dst_gpu: key.gpus[1],
        env: texts.shared(&key.env),
        phase: key.phase,
        tool: texts.shared(tool),
    }
}

fn of_all(result: &CaseResult<'_>, of: Arc<CellColumns>) -> CaseColumns {
    let case = result.case;
    let (verified_bytes, wrong) = result.checked();
    CaseColumns {
        of,
        case: case.id,
        round: case.round,
        started_at: result.started_at().into(),
        src_host: Arc::clone(&case.flow.from.host),
        dst_host: Arc::clone(&case.flow.to.host),
        rail: case.flow.from.rail,
        verified_bytes,
        wrong,
    }
}

/// Of the first or last rank or end.
fn gpu(result: &CaseResult<'_>, first: bool) -> Option<u32> {
    let (_, sample) = result.samples.last()?;
    let rank = if first { sample.ranks.first() } else { sample.ranks.last() };
    if let Some(rank) = rank {
        return rank.gpu;
    }
    let name = if first { "gpu" } else { "gpu_remote" };
    result.link?.settings.get(name)?.parse().ok()
}

/// How a collective works on its data, if no column says it, and its cell of the environment matrix; the number of a queue pair
/// that is used alone, from 1; how write latency was measured, and the devices' byte order guarantees; the value of the test, which is
/// last because it may contain spaces.
fn env(result: &CaseResult<'_>) -> String {
    let applied = result.case.cell.applied.as_ref().map(|value| format!("value={value}"));
    let words = [Some(manner_of(result)).filter(|words| !words.is_empty()), applied];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn manner_of(result: &CaseResult<'_>) -> String {
    let case = result.case;
    if let Some(method) = result.test.knobs.write_latency {
        let order = result.link.and_then(|link| link.write_order).map(|order| format!(" order={}", order.word()));
        return format!("write_latency={}{}", method.word(), order.unwrap_or_default());
    }
    if let Some((flows, beside)) = case.cell.neighbours.zip(result.test.beside.as_ref()) {
        if let Some(command) = &beside.command {
            return format!("beside=command beside_on={}", command.on.word());
        }
        return format!("beside=tcp beside_flows={flows} beside_direction={}", beside.direction.word());
    }
    if let Some(only) = case.cell.only {
        return format!("queue_pair={}", only + 1);
    }
    let Some(manner) = &case.cell.manner else { return String::new() };
    let reduction = manner.reduction.map(|word| format!("reduction={word}"));
    let algorithm = manner.algorithm.map(|word| format!("algorithm={word}"));
    let step = manner.training.as_ref().map(words::step);
    let words = [Some(format!("datatype={}", manner.datatype)), reduction, algorithm, step].into_iter().flatten();
    words.chain(manner.env.iter().map(|(name, value)| format!("{name}={value}"))).collect::<Vec<_>>().join(" ")
}

pub(super) fn direction(result: &CaseResult<'_>, repeat: u32, sample: &Sample) -> Direction {
    match (&result.part, result.test.bidirectional) {
        (Some(_), _) => together::direction(result, repeat, sample),
        (None, true) => Direction::Both(sample.offset.as_deref().copied()),
        (None, false) => Direction::One,
    }
}
