//! Summaries of the values of all links of every test, by metric, size and variant.

use railgauge_model::plan::{metrics_of, model::Test};
use railgauge_wire::terms::Metric;

use super::Variants;
use crate::analysis::{
    frame::{self, FrameError, Spread, Valued},
    parallel,
    results::CaseResult,
    rows::Maker,
};

/// In the order of their first cases; within a case in the order of the metrics. `results` are those of the test.
///
/// # Errors
/// They cannot be summarised.
pub(super) fn of_test(
    test: &Test,
    results: &[&CaseResult<'_>],
    maker: &Maker<'_>,
    variants: &Variants,
) -> Result<Vec<Spread>, FrameError> {
    let metrics = results.first().map(|first| &first.case.cell);
    let metrics = metrics
        .map(|cell| metrics_of(cell.metric, cell.op, test.flows_at_once(), test.beside.as_ref()))
        .unwrap_or_default();
    let mut all = Vec::new();
    // One by one: a run may have millions of cases.
    for metric in metrics {
        all.extend(frame::spreads(&test.name, metric, valued(results, metric, maker, variants))?);
    }
    all.sort_by_key(|spread| spread.first);
    Ok(all)
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
