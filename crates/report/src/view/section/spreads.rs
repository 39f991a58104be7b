//! Summaries of the values of all links of every test, by metric, size and variant.

use std::collections::HashMap;

use railgauge_analysis::{case::CaseResult, parallel, rows::Maker};
use railgauge_model::plan::{metrics_of, model::Test};
use railgauge_stats::robust::quantile_sorted;
use railgauge_wire::{Bytes, Metric};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spread {
    pub metric: Metric,
    pub size_bytes: Bytes,
    pub variant: u32,
    pub links: u32,
    pub measured: u32,
    /// Smallest, 5th percentile, median, 95th percentile and largest value.
    pub quantiles: Option<[f64; 5]>,
    /// Smallest and largest; `None` if unknown.
    pub ceiling: Option<(f64, f64)>,
    /// Median of the values in parts of their ceilings.
    pub share: Option<f64>,
    first: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub variant: u32,
    /// Whether the value of the case counts: wrong or disturbed ones are excluded.
    pub trusted: bool,
}

pub(super) struct Variants {
    pub labels: Vec<String>,
    marks: Vec<Mark>,
}

impl Variants {
    pub(super) fn new(results: &[CaseResult<'_>]) -> Self {
        let mut known: HashMap<(&str, String), u32> = HashMap::new();
        let mut labels = Vec::new();
        let mut marks = Vec::with_capacity(results.len());
        for result in results {
            let label = result.variant();
            let variant = *known.entry((&*result.case.test, label.clone())).or_insert_with(|| {
                labels.push(label);
                u32::try_from(labels.len() - 1).unwrap_or(u32::MAX)
            });
            marks.push(Mark { variant, trusted: result.state.is_trusted() });
        }
        Self { labels, marks }
    }

    pub(super) fn of(&self, result: &CaseResult<'_>) -> u32 {
        self.mark(result).variant
    }

    pub(super) fn mark(&self, result: &CaseResult<'_>) -> Mark {
        let mark = usize::try_from(result.case.id).ok().and_then(|case| self.marks.get(case)).copied();
        mark.unwrap_or(Mark { variant: u32::MAX, trusted: false })
    }
}

/// In the order of their first cases; within a case in the order of the metrics. `results` are those of the test.
pub(super) fn of_test(test: &Test, results: &[&CaseResult<'_>], maker: &Maker<'_>, variants: &Variants) -> Vec<Spread> {
    let metrics = results.first().map(|first| &first.case.cell);
    let metrics = metrics
        .map(|cell| metrics_of(cell.metric, cell.op, test.flows_at_once(), test.beside.as_ref()))
        .unwrap_or_default();
    // One by one: a run may have millions of cases.
    let of_metric = |metric| spreads(metric, valued(results, metric, maker, variants));
    let mut all: Vec<Spread> = metrics.into_iter().flat_map(of_metric).collect();
    all.sort_by_key(|spread| spread.first);
    all
}

#[derive(Debug, Clone, Copy)]
struct Valued {
    case: u64,
    size_bytes: Bytes,
    mark: Mark,
    /// In the metric's unit.
    value: Option<f64>,
    /// In the metric's unit.
    ceiling: Option<f64>,
}

/// Cases per batch of values.
const CASES: usize = 1 << 16;

fn valued(
    results: &[&CaseResult<'_>],
    metric: Metric,
    maker: &Maker<'_>,
    variants: &Variants,
) -> impl Iterator<Item = Valued> {
    let of = move |result: &&CaseResult<'_>| {
        let (value, ceiling) = maker.value(result, metric)?;
        Some(Valued {
            case: result.case.id,
            size_bytes: result.case.cell.size,
            mark: variants.mark(result),
            value,
            ceiling,
        })
    };
    results.chunks(CASES).flat_map(move |some| parallel::map(some, of)).flatten()
}

struct Group {
    first: u64,
    links: u32,
    values: Vec<f64>,
    shares: Vec<f64>,
    ceiling: Option<(f64, f64)>,
}

impl Group {
    fn take(&mut self, case: &Valued) {
        self.links = self.links.saturating_add(1);
        let value = case.value.filter(|_| case.mark.trusted);
        self.values.extend(value);
        self.shares.extend(value.zip(case.ceiling).map(|(value, ceiling)| value / ceiling));
        if let Some(ceiling) = case.ceiling {
            let (low, high) = self.ceiling.unwrap_or((ceiling, ceiling));
            self.ceiling = Some((low.min(ceiling), high.max(ceiling)));
        }
    }

    fn spread(mut self, metric: Metric, (size_bytes, variant): (Bytes, u32)) -> Spread {
        self.values.sort_unstable_by(f64::total_cmp);
        self.shares.sort_unstable_by(f64::total_cmp);
        let quantile = |part| quantile_sorted(&self.values, part).ok();
        let quantiles: Vec<f64> = [0.0, 0.05, 0.5, 0.95, 1.0].into_iter().filter_map(quantile).collect();
        Spread {
            metric,
            size_bytes,
            variant,
            links: self.links,
            measured: u32::try_from(self.values.len()).unwrap_or(u32::MAX),
            quantiles: quantiles.try_into().ok(),
            ceiling: self.ceiling,
            share: quantile_sorted(&self.shares, 0.5).ok().filter(|share| share.is_finite()),
            first: self.first,
        }
    }
}

/// One per size and variant.
fn spreads(metric: Metric, cases: impl Iterator<Item = Valued>) -> Vec<Spread> {
    let mut groups: HashMap<(Bytes, u32), Group> = HashMap::new();
    for case in cases {
        let begin = || Group { first: case.case, links: 0, values: Vec::new(), shares: Vec::new(), ceiling: None };
        groups.entry((case.size_bytes, case.mark.variant)).or_insert_with(begin).take(&case);
    }
    groups.into_iter().map(|(key, group)| group.spread(metric, key)).collect()
}
