//! The views of a test: which values of its cases are searched for parts.
//!
//! The usual view is first: the median over the repeats, of bandwidth at the largest message or of median latency at the smallest. A fault
//! may only show in another view: in the tail of the latency, in one repeat, at another size. Each of these is searched if values or groups
//! stand out at all, with a stricter threshold, because every view is another chance of a false alarm.

use std::{cmp::Reverse, collections::BTreeMap, fmt};

use foldhash::{HashMap, HashSet};
use jiff::Timestamp;
use railgauge_model::{
    journal::event::Started,
    plan::{headline, model::Test},
};
use railgauge_stats::{
    bisect,
    localise::{Findings, Pair, Suspect},
    robust::{Level, median, median_in_place, outlier_cut, quantile},
};
use railgauge_wire::{Better, Bytes, Metric};
use serde::Serialize;

use super::One;
use crate::{case::CaseResult, percentile, row::Row, rows, words::size};

const METRICS: [Metric; 2] = [Metric::Bandwidth, Metric::LatencyP50];
/// Degrees of freedom from which on the noise of repeats is usable.
const ENOUGH: usize = 10;
/// Least effect of one repeat, as a difference of logarithms: 20 % less.
const BAD_REPEAT: f64 = 0.223_143_551_314_209_7;
/// Least effect on the tail of a latency, which scatters by itself: 50 % longer.
const LONG_TAIL: f64 = 0.405_465_108_108_164_4;
/// Standard deviations, estimated from the lowest tenth of unsuspected values, for a single path: non-normal values have long tails.
const FAR: f64 = 6.0;
/// Standard deviations at which the lowest tenth of normal values ends.
const TENTH: f64 = 1.2816;
/// Most paths named for one repeat each: more are noise.
const FEW_PATHS: usize = 3;
/// Standard errors of a mean from which on a view is searched.
const LOOK: f64 = 4.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeats {
    #[default]
    Median,
    Worst,
}

impl Repeats {
    pub fn is_median(&self) -> bool {
        *self == Self::Median
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Searched {
    pub metric: Metric,
    pub repeats: Repeats,
    /// In bytes.
    pub size_bytes: Bytes,
}

/// `p99 latency at 8 B`, `worst repeat of bandwidth at 64 KiB`.
impl fmt::Display for Searched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repeats = if self.repeats.is_median() { "" } else { "worst repeat of " };
        write!(f, "{repeats}{} at {}", self.metric.name(), size(self.size_bytes))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct View<'r> {
    pub(super) metric: Metric,
    pub(super) repeats: Repeats,
    pub(super) cases: Vec<One<'r>>,
    pub(super) of: usize,
}

pub(super) type Rows<'r> = Vec<(&'r CaseResult<'r>, &'r Row)>;

/// The cases of a test at its reference, with their rows of its main metric.
pub(super) fn at_reference<'r>(test: &Test, results: &'r [CaseResult<'r>], rows: &'r [Row]) -> Rows<'r> {
    let metric = headline(test.metric, test.op);
    let of_test = rows.iter().filter(|row| *row.test == test.name && row.metric == metric);
    let all = of_test.filter_map(|row| Some((results.get(usize::try_from(row.case).ok()?)?, row)));
    all.filter(|(result, _)| result.case.cell.is_reference(test)).collect()
}

/// The usual one first; none for a test without any of the metrics.
pub(super) fn views<'r>(rows: &[(&'r CaseResult<'r>, &'r Row)]) -> Vec<View<'r>> {
    let headlines = rows.iter().map(|(result, _)| headline(result.test.metric, result.test.op));
    let Some(metric) = headlines.clone().next().filter(|metric| METRICS.contains(metric)) else { return Vec::new() };
    let mut cells: BTreeMap<(Bytes, u32), Rows<'r>> = BTreeMap::new();
    for (result, row) in rows.iter().filter(|(_, row)| row.metric == metric) {
        cells.entry((row.size_bytes, row.qps)).or_default().push((result, row));
    }
    let is_rate = metric.better() == Better::Higher;
    let Some(&usual) = (match is_rate {
        true => cells.keys().max(),
        false => cells.keys().min_by_key(|(size, qps)| (*size, Reverse(*qps))),
    }) else {
        return Vec::new();
    };
    let mut cells: Vec<((Bytes, u32), Rows<'r>)> = cells.into_iter().collect();
    cells.sort_by_key(|((size, qps), _)| (size.abs_diff(usual.0), qps.abs_diff(usual.1)));
    let mut views = Vec::new();
    for (_, rows) in &cells {
        views.push(View::new(metric, Repeats::Median, rows));
        if !is_rate {
            views.push(View::new(Metric::LatencyP99, Repeats::Median, rows));
        }
        if rows.iter().any(|(result, _)| result.samples.len() > 1) {
            views.push(View::new(metric, Repeats::Worst, rows));
        }
    }
    let of = views.len();
    views.iter_mut().for_each(|view| view.of = of);
    views
}

impl<'r> View<'r> {
    fn new(metric: Metric, repeats: Repeats, rows: &[(&'r CaseResult<'r>, &'r Row)]) -> Self {
        let one = |&(result, row): &(&'r CaseResult<'r>, &'r Row)| One {
            result,
            row,
            log: log(metric, repeats, result, row),
        };
        Self { metric, repeats, cases: rows.iter().map(one).collect(), of: 1 }
    }

    /// `least` is that of the plan.
    pub(super) fn least(&self, least: f64) -> f64 {
        match (self.repeats, self.metric) {
            (Repeats::Worst, _) => least.max(BAD_REPEAT),
            (_, Metric::LatencyP99) => least.max(LONG_TAIL),
            _ => least,
        }
    }

    /// Standard deviation of a case's value from its repeats; 0 without enough of them.
    pub(super) fn noise(&self) -> f64 {
        // The worst of several spreads as much as their median, or less.
        Scatter::noise(self.scatter())
    }

    pub(super) fn scatter(&self) -> Option<Scatter> {
        Scatter::of(self.metric, self.cases.iter().map(|one| one.result))
    }

    /// Number, logarithm of the value on the scale of the judgement, and start.
    pub(super) fn repeats_of(&self, one: &One<'r>) -> impl Iterator<Item = (u32, f64, Option<Timestamp>)> {
        let (result, metric) = (one.result, self.metric);
        let values = rows::by_repeat(result, metric).filter(|(_, value)| *value > 0.0);
        values.map(move |(repeat, value)| {
            let started =
                result.tries.iter().filter(|attempt| attempt.repeat == repeat).map(|attempt| &attempt.started_at);
            (repeat, on_scale(metric, value.ln()), started.max().and_then(Started::time))
        })
    }

    /// Whether anything may stand out: a value, or the mean of a host, a NIC, a rail, a path, or between two groups.
    pub(super) fn is_unusual(&self, pairs: &[Pair], groups: &[u32], least: f64) -> bool {
        let values: Vec<f64> = pairs.iter().map(|pair| pair.value).collect();
        let Ok(level) = Level::of(&values, 0.0) else { return false };
        let threshold = (outlier_cut(self.of * pairs.len(), Some(level.n)) * level.scale).max(least);
        let mut means: HashMap<(u8, u32, u32), (f64, f64)> = HashMap::default();
        for pair in pairs {
            let off = pair.value - level.centre;
            if off < -threshold {
                return true;
            }
            let (from, to) = (pair.from, pair.to);
            let group = |host: u32| groups.get(host as usize).copied().unwrap_or_default();
            let (a, b) = (from.host.min(to.host), from.host.max(to.host));
            let keys = [
                (0, from.host, 0),
                (1, to.host, 0),
                (2, from.host, from.rail),
                (2, to.host, to.rail),
                (3, from.rail, to.rail),
                (4, a, b),
                (5, group(a).min(group(b)), group(a).max(group(b))),
            ];
            for key in keys {
                let mean = means.entry(key).or_default();
                *mean = (mean.0 + off, mean.1 + 1.0);
            }
        }
        let is_off = |(sum, n): &(f64, f64)| -sum / n > least && -sum / n.sqrt() > LOOK * level.scale;
        means.values().any(is_off)
    }

    /// For an extra view: whether a part stands out by enough for the number of views.
    pub(super) fn counts(&self, findings: &Findings, pairs: &[Pair], least: f64) -> bool {
        let views = 2.0 * (self.of as f64).ln();
        let shown = findings.suspects.iter().filter(|suspect| !suspect.latent);
        let taken: HashSet<usize> = shown.flat_map(|suspect| suspect.evidence.pairs.iter().copied()).collect();
        let others = pairs.iter().zip(&findings.level_of).enumerate().filter(|(at, _)| !taken.contains(at));
        let off = others.map(|(_, (pair, &level))| pair.value - findings.levels[level].centre);
        let tenth = quantile(&off.collect::<Vec<_>>(), 0.1).unwrap_or_default();
        let far = |suspect: &&Suspect| {
            let is_link = suspect.part.is_link();
            let (needed, least) = match is_link {
                true => (findings.link_cut, least.max(FAR * -tenth / TENTH)),
                false => (findings.cut, least),
            };
            !suspect.latent && !suspect.instead && -suspect.effect > least && suspect.z.powi(2) > needed.powi(2) + views
        };
        let far: Vec<&Suspect> = findings.suspects.iter().filter(far).collect();
        let links = || findings.suspects.iter().filter(|suspect| suspect.part.is_link()).count();
        let is_noise = || {
            self.repeats == Repeats::Worst && far.iter().all(|suspect| suspect.part.is_link()) && links() > FEW_PATHS
        };
        !far.is_empty() && !is_noise()
    }

    /// Adds the share of bad repeats to every suspect of the worst repeats. `cases` are those of the searched pairs.
    pub(super) fn say_share(&self, findings: &mut Findings, cases: &[&One<'_>]) {
        let (levels, level_of) = (&findings.levels, &findings.level_of);
        let unknown = |suspect: &&mut Suspect| self.repeats == Repeats::Worst && suspect.share.is_none();
        for suspect in findings.suspects.iter_mut().filter(unknown) {
            let of = |&pair: &usize| {
                let level = levels[level_of[pair].min(levels.len() - 1)].centre + suspect.effect / 2.0;
                logs(cases[pair].result, self.metric).into_iter().map(move |log| log < level)
            };
            let bad: Vec<bool> = suspect.evidence.pairs.iter().flat_map(of).collect();
            suspect.share = Some(bad.iter().filter(|bad| **bad).count() as f64 / bad.len().max(1) as f64);
        }
    }
}

/// The logarithm of a case's value, on the scale of the judgement.
fn log(metric: Metric, repeats: Repeats, result: &CaseResult<'_>, row: &Row) -> Option<f64> {
    let value = match repeats {
        _ if metric != row.metric => {
            median(&rows::repeats(result, metric)).ok().filter(|_| percentile::carried_by(metric, result))
        }
        Repeats::Median => row.value,
        Repeats::Worst if metric.better() == Better::Higher => row.value_min.get(),
        Repeats::Worst => row.value_max.get(),
    };
    logarithm(result, metric, value)
}

/// On the scale of the judgement, on which higher is better. `None` if not trusted.
fn logarithm(result: &CaseResult<'_>, metric: Metric, value: Option<f64>) -> Option<f64> {
    let log = value.filter(|value| *value > 0.0 && value.is_finite() && result.state.is_trusted())?.ln();
    Some(on_scale(metric, log))
}

/// [`logarithm`] of a row's value.
pub(super) fn of_row(result: &CaseResult<'_>, row: &Row) -> Option<f64> {
    logarithm(result, row.metric, row.value)
}

fn on_scale(metric: Metric, log: f64) -> f64 {
    if metric.better() == Better::Higher { log } else { -log }
}

/// Cases with repeats from which on the median of their variances is used: a few scattered ones do not represent all.
const MANY: usize = 8;

/// On the scale of logarithms. Between cases the scatter can only be larger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scatter {
    one: f64,
    freedom: usize,
    repeats: usize,
}

impl Scatter {
    pub(crate) fn of<'r>(metric: Metric, cases: impl Iterator<Item = &'r CaseResult<'r>>) -> Option<Self> {
        let (mut squares, mut freedom, mut repeats, mut typical) = (0.0, 0, 0, Vec::new());
        for result in cases.filter(|result| result.state.is_trusted()) {
            let logs = logs(result, metric);
            if logs.len() < 2 {
                continue;
            }
            let (mean, free) = (logs.iter().sum::<f64>() / logs.len() as f64, logs.len() - 1);
            let square = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
            // The median of χ² over its degrees of freedom (Wilson & Hilferty 1931).
            typical.push(square / free as f64 / (1.0 - 2.0 / (9.0 * free as f64)).powi(3));
            squares += square;
            freedom += free;
            repeats = repeats.max(logs.len());
        }
        if freedom == 0 {
            return None;
        }
        let pooled = squares / freedom as f64;
        let typical = if typical.len() < MANY { pooled } else { median_in_place(&mut typical) };
        // More than half of rounded values may be equal.
        let variance = if typical > 0.0 { typical.min(pooled) } else { pooled };
        Some(Self { one: variance.sqrt(), freedom, repeats })
    }

    /// Standard deviation of the median over the repeats; 0 with too few.
    pub(crate) fn noise(scatter: Option<Self>) -> f64 {
        let known = scatter.filter(|scatter| scatter.freedom >= ENOUGH);
        known.map_or(0.0, |scatter| scatter.of_median().deviation)
    }

    pub(super) fn of_median(self) -> bisect::Repeats {
        let over_mean = if self.repeats > 2 { 1.2533 } else { 1.0 };
        bisect::Repeats { deviation: over_mean * self.of_mean().deviation, ..self.of_mean() }
    }

    pub(super) fn of_mean(self) -> bisect::Repeats {
        bisect::Repeats { deviation: self.one / (self.repeats as f64).sqrt(), freedom: self.freedom }
    }
}

pub(super) fn logs(result: &CaseResult<'_>, metric: Metric) -> Vec<f64> {
    let values = rows::repeats(result, metric).into_iter().filter(|value| *value > 0.0);
    values.map(|value| on_scale(metric, value.ln())).collect()
}
