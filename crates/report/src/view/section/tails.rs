//! Distributions of single latencies: all links together, and the link with the longest tail.

use std::collections::BTreeMap;

use railgauge_analysis::{
    case::CaseResult,
    percentile::{self, carries_quantile},
    words::{count, number},
};
use railgauge_wire::{Bytes, Metric, Nanoseconds, TestMetric};

use super::block::{Block, Data, Figure};
use crate::chart::{
    ChartError, Tip,
    layers::{Layer, Places, Room, layers},
    theme::{MAIN, WORST},
    ticks::{decades, nine, nines},
};

type Histogram = Vec<(Nanoseconds, u64)>;

/// One figure for the smallest and one for the largest size, per variant; none for a bandwidth test.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    if data.test.metric != TestMetric::Latency || data.test.transport.is_within_host() {
        return Ok(None);
    }
    let sizes = || data.results.iter().map(|result| result.case.cell.size);
    let mut ends: Vec<Bytes> = [sizes().min(), sizes().max()].into_iter().flatten().collect();
    ends.dedup();
    let mut figures = Vec::new();
    for variant in data.own_variants() {
        for &bytes in &ends {
            figures.extend(figure(data, variant, bytes)?);
        }
    }
    Ok((!figures.is_empty()).then(|| Block { heading: "Tails", figures, ..Block::default() }))
}

fn figure(data: &Data<'_>, variant: u32, bytes: Bytes) -> Result<Option<Figure>, ChartError> {
    let results: Vec<&CaseResult<'_>> = data.trusted_at((variant, bytes)).collect();
    let all = merged(results.iter().copied());
    let tail = |result: &CaseResult<'_>| {
        let histogram = merged([result]);
        let total = histogram.iter().map(|(_, n)| *n).fold(0, u64::saturating_add);
        let mut reached = 0;
        histogram.iter().find_map(|(edge, n)| {
            reached = n.saturating_add(reached);
            (reached as f64 >= 0.99 * total as f64).then_some(*edge)
        })
    };
    // The longest tail is only known among those that the samples support.
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
    let svg = distribution(&all, &worst.map(|worst| merged([*worst])).unwrap_or_default())?;
    let samples = results.iter().flat_map(|result| &result.samples);
    // Part of every sample, and never subtracted.
    let clock = match samples.filter_map(|(_, sample)| sample.initiator.latency.as_deref()).map(|l| l.timer).max() {
        Some(timer) if !timer.is_zero() => format!("; includes {timer} ns for reading the clock"),
        _ => String::new(),
    };
    Ok(Some(Figure { title: format!("Distribution of latencies at {title}{clock}"), svg, legend }))
}

fn merged<'a>(results: impl IntoIterator<Item = &'a CaseResult<'a>>) -> Histogram {
    let mut buckets: BTreeMap<Nanoseconds, u64> = BTreeMap::new();
    let samples = results.into_iter().flat_map(|result| result.samples.iter());
    for (edge, n) in samples.filter_map(|(_, sample)| sample.initiator.latency.as_deref()).flat_map(|l| &l.histogram) {
        let sum = buckets.entry(*edge).or_default();
        *sum = sum.saturating_add(*n);
    }
    buckets.into_iter().collect()
}

/// The share of operations by time, on a scale of nines that shows the tail: all links together, and the link with the longest tail.
///
/// # Errors
/// plotters fails.
fn distribution(all: &Histogram, worst: &Histogram) -> Result<String, ChartError> {
    let steps = [shares(all), shares(worst)];
    let edges = || steps.iter().flatten().map(|(time, _)| *time);
    let (least, most) = (edges().fold(f64::INFINITY, f64::min), edges().fold(0.0, f64::max));
    let top = steps.iter().flatten().map(|(_, share)| *share).filter(|share| *share < 1.0).fold(0.9, f64::max);
    let x = decades("latency, µs".to_owned(), least, most);
    let y = nines("share of operations, %".to_owned(), top);
    let operations = all.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
    let carried =
        |share: &f64| *share == 0.5 || carries_quantile(*share, usize::try_from(operations).unwrap_or(usize::MAX));
    let tips: Vec<Tip> = [0.5, 0.9, 0.99, 0.999]
        .into_iter()
        .filter(carried)
        .filter_map(|share| {
            let time = steps[0].iter().find(|(_, reached)| *reached >= share)?.0;
            let text = format!("all links: {} % within {} µs", share * 100.0, number(time));
            Some((time.log10(), nine(share).min(y.range.1), text))
        })
        .collect();
    let [all, worst] = steps.map(|steps| stairs(&steps, y.range.1));
    layers(
        Room::USUAL,
        "distribution of latencies",
        [&x, &y],
        &tips,
        &[Layer::Line(WORST, worst), Layer::Line(MAIN, all)],
    )
}

/// Microseconds, and the share of operations that took at most as long.
fn shares(histogram: &Histogram) -> Places {
    let total = histogram.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
    let mut reached = 0;
    histogram
        .iter()
        .map(|(edge, count)| {
            reached = count.saturating_add(reached);
            (edge.microseconds(), reached as f64 / total as f64)
        })
        .collect()
}

/// The line of a step function, cut off at the top of the chart after the last operation.
fn stairs(steps: &[(f64, f64)], top: f64) -> Places {
    let mut line = Vec::new();
    let mut level = 0.0;
    for (time, share) in steps {
        let place = time.max(1e-9).log10();
        line.push((place, level));
        level = nine(*share).min(top);
        line.push((place, level));
    }
    line
}
