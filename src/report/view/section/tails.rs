//! Distributions of single latencies: all links together, and the link with the longest tail.

use std::collections::BTreeMap;

use railgauge_wire::{
    terms::{Metric, TestMetric},
    unit::Nanoseconds,
};

use super::{Data, Figure};
use crate::{
    analysis::{
        percentile,
        results::{CaseResult, State},
        words::count,
    },
    report::chart::distribution::{Histogram, distribution},
};

/// One figure for the smallest and one for the largest size, per variant; none for a bandwidth test.
pub(super) fn tails(data: &Data<'_>) -> Result<Vec<Figure>, String> {
    if data.test.metric != TestMetric::Latency {
        return Ok(Vec::new());
    }
    let sizes = || data.results.iter().map(|result| result.case.cell.size);
    let mut ends: Vec<u64> = [sizes().min(), sizes().max()].into_iter().flatten().collect();
    ends.dedup();
    let mut figures = Vec::new();
    for variant in data.own_variants() {
        for &bytes in &ends {
            figures.extend(figure(data, variant, bytes)?);
        }
    }
    Ok(figures)
}

fn figure(data: &Data<'_>, variant: u32, bytes: u64) -> Result<Option<Figure>, String> {
    let trusted = |result: &&&CaseResult<'_>| {
        let cell = (data.variant(result), result.case.cell.size);
        cell == (variant, bytes) && matches!(result.state, State::Measured | State::Short)
    };
    let results: Vec<&&CaseResult<'_>> = data.results.iter().filter(trusted).collect();
    let all = merged(results.iter().map(|result| **result));
    let tail = |result: &CaseResult<'_>| {
        let histogram = merged([result]);
        let total = histogram.iter().map(|(_, n)| *n).fold(0, u64::saturating_add);
        let mut reached = 0;
        histogram.iter().find_map(|(edge, n)| {
            reached = n.saturating_add(reached);
            (reached as f64 >= 0.99 * total as f64).then_some(*edge)
        })
    };
    // Whose tail is the longest can be said only of tails that the samples carry.
    let carried = results.iter().filter(|result| percentile::carried_by(Metric::LatencyP99, result));
    let worst = carried.max_by_key(|result| tail(result));
    if all.is_empty() {
        return Ok(None);
    }
    let operations = all.iter().map(|(_, n)| *n).fold(0, u64::saturating_add);
    let title = data.cell_words((variant, bytes));
    let noun = if data.test.op.is_collective() { "group" } else { "link" };
    let mut legend = vec![(
        "k-main".to_owned(),
        format!("all {}, {}", count(results.len(), noun), count(operations as usize, "operation")),
    )];
    legend.extend(worst.map(|worst| ("k-worst".to_owned(), format!("largest p99: {}", worst.link_name()))));
    let svg = distribution(&all, &worst.map(|worst| merged([**worst])).unwrap_or_default())?;
    let samples = results.iter().flat_map(|result| &result.samples);
    // Part of every sample, and never taken off.
    let clock = match samples.filter_map(|(_, sample)| sample.initiator.latency.as_ref()).map(|l| l.timer).max() {
        Some(timer) if !timer.is_zero() => format!("; reading the clock, {timer} ns, is part of each"),
        _ => String::new(),
    };
    Ok(Some(Figure { title: format!("Distribution of latencies at {title}{clock}"), svg, legend }))
}

/// The histograms of all samples of these cases as one.
fn merged<'a>(results: impl IntoIterator<Item = &'a CaseResult<'a>>) -> Histogram {
    let mut buckets: BTreeMap<Nanoseconds, u64> = BTreeMap::new();
    let samples = results.into_iter().flat_map(|result| result.samples.iter());
    for (edge, n) in samples.filter_map(|(_, sample)| sample.initiator.latency.as_ref()).flat_map(|l| &l.histogram) {
        let sum = buckets.entry(*edge).or_default();
        *sum = sum.saturating_add(*n);
    }
    buckets.into_iter().collect()
}
