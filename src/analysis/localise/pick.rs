//! Which rows a test is judged by, and what they mean to the judgement.

use railgauge_stats::localise::Pair;
use railgauge_wire::terms::{Better, Metric};

use super::names::Names;
use crate::analysis::{
    results::{CaseResult, State},
    row::Row,
    rows::direction,
    value,
};

/// A case and its row of the metric that counts.
pub(in crate::analysis) type Picked<'r> = Vec<(&'r CaseResult<'r>, &'r Row)>;

/// The metrics by which pairs are judged, the first that a test has.
const METRICS: [Metric; 3] = [Metric::Bandwidth, Metric::LatencyP50, Metric::MessageRate];
/// Degrees of freedom from which on the noise of repeats is worth something.
const ENOUGH: usize = 10;

/// Rows of one metric and one cell: the largest message for bandwidth, the smallest otherwise; most queue pairs. `None`
/// for a test without any of the metrics.
pub(super) fn pick<'r>(rows: &[(&'r CaseResult<'r>, &'r Row)]) -> Option<Picked<'r>> {
    let metric = METRICS.into_iter().find(|metric| rows.iter().any(|(_, row)| row.metric == *metric))?;
    let of_metric = || rows.iter().filter(|(_, row)| row.metric == metric);
    let sizes = of_metric().map(|(_, row)| row.size_bytes);
    let size = if metric == Metric::Bandwidth { sizes.max() } else { sizes.min() }?;
    let qps = of_metric().map(|(_, row)| row.qps).max()?;
    Some(of_metric().filter(|(_, row)| (row.size_bytes, row.qps) == (size, qps)).copied().collect())
}

/// A row as a pair: from the end that sends the bytes to the one that receives them. `None` if its value must not be
/// trusted.
pub(super) fn pair(names: &Names, result: &CaseResult<'_>, row: &Row) -> Option<Pair> {
    let value = logarithm(result, row)?;
    let flow = &result.case.flow;
    let (mut from, mut to) = (names.port(&flow.from)?, names.port(&flow.to)?);
    if result.case.cell.op.pulls() {
        std::mem::swap(&mut from, &mut to);
    }
    Some(Pair { from, to, path: 0, value })
}

/// The logarithm of a value on the scale of the judgement, on which higher is better. `None` if the value must not be trusted.
pub(super) fn logarithm(result: &CaseResult<'_>, row: &Row) -> Option<f64> {
    let log = row.value.filter(|value| *value > 0.0 && value.is_finite() && trusted(result))?.ln();
    Some(if row.better == Better::Higher { log } else { -log })
}

/// Whether a case's value says something of the link: measured, whole, undisturbed.
pub(super) fn trusted(result: &CaseResult<'_>) -> bool {
    matches!(result.state, State::Measured | State::Short)
}

/// Standard deviation of a pair's value as its own repeats show it, on the scale of logarithms, for the median over the
/// repeats; `None` without enough repeats. Between pairs it can only be larger.
pub(in crate::analysis) fn noise(picked: &Picked<'_>) -> Option<f64> {
    scatter(picked).filter(|(_, freedom)| *freedom >= ENOUGH).map(|(noise, _)| noise)
}

/// The same however few repeats there are, with its degrees of freedom; `None` without any.
pub(super) fn scatter(picked: &Picked<'_>) -> Option<(f64, usize)> {
    let (mut squares, mut freedom, mut repeats) = (0.0, 0, 0);
    for (result, row) in picked.iter().filter(|(result, _)| trusted(result)) {
        let of = |repeat, sample| value::of(row.metric, sample, direction(result, repeat, sample));
        let logs: Vec<f64> = result
            .samples
            .iter()
            .filter_map(|(repeat, sample)| of(*repeat, sample).ok().flatten().filter(|v| *v > 0.0).map(f64::ln))
            .collect();
        if logs.len() < 2 {
            continue;
        }
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        squares += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        freedom += logs.len() - 1;
        repeats = repeats.max(logs.len());
    }
    let median_over_mean = if repeats > 2 { 1.2533 } else { 1.0 };
    (freedom > 0).then(|| ((squares / freedom as f64 / repeats as f64).sqrt() * median_over_mean, freedom))
}
