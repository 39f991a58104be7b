//! Values by size, drawn: one figure per metric and variant.

use std::collections::BTreeMap;

use railgauge_stats::robust::median;
use railgauge_wire::terms::{Metric, TestMetric};

use super::{Data, Figure, headline};
use crate::{
    analysis::{frame::Spread, outliers::Link, percentile, words::count},
    report::chart::curve::{Point, curve},
};

/// How many times the lowest ceiling the highest must be for the line to be called the lowest.
const UNLIKE: f64 = 1.01;

/// The figures of a test; none where it has only one size.
pub(super) fn curves(data: &Data<'_>) -> Result<Vec<Figure>, String> {
    let shown: &[Metric] = match (data.test.metric, data.test.op.is_collective()) {
        (TestMetric::Bandwidth, false) if data.test.at_once() => &[Metric::Bandwidth, Metric::TotalBandwidth],
        (TestMetric::Bandwidth, false) => &[Metric::Bandwidth, Metric::MessageRate],
        (TestMetric::Bandwidth, true) => &[Metric::Busbw],
        (TestMetric::Latency, _) => &[Metric::LatencyP50, Metric::LatencyP99],
        (TestMetric::Step, _) => &[Metric::StepTime, Metric::StepExposed],
    };
    let mut figures = Vec::new();
    for variant in data.own_variants() {
        for &metric in shown {
            figures.extend(figure(data, metric, variant)?);
        }
    }
    Ok(figures)
}

fn figure(data: &Data<'_>, metric: Metric, variant: u32) -> Result<Option<Figure>, String> {
    let of = data.spreads.iter().filter(|spread| spread.metric == metric && spread.variant == variant);
    let most = of.clone().map(|spread| spread.measured).max().unwrap_or(0);
    // One link among two is not the worst of anything.
    let outlier = worst(data, variant).filter(|_| metric == headline(data.test) && most > 2);
    let value = |size: u64| {
        let flow = &outlier?.result.case.flow;
        let here = |link: &&Link<'_>| (data.variant(link.result), link.cell.1) == (variant, size);
        data.out.links.iter().filter(here).find(|link| link.result.case.flow == *flow)?.value
    };
    let most_carry = percentile::carries_quantile(0.05, most as usize);
    let mut points: Vec<Point> = of
        .filter(|spread| data.carried(metric, (variant, spread.size_bytes)))
        .filter_map(|spread| {
            let ceiling = spread.ceiling.filter(|_| metric == Metric::Bandwidth || metric.is_sum()).map(|(low, _)| low);
            let worst = value(spread.size_bytes);
            let quantiles = spread.quantiles?;
            Some(Point { size: spread.size_bytes, quantiles, inner: most_carry, ceiling, worst })
        })
        .collect();
    points.sort_by_key(|point| point.size);
    if points.len() < 2 {
        return Ok(None);
    }
    let what = match (data.test.op.is_collective(), data.test.at_once(), metric.is_sum()) {
        (true, ..) => "group",
        (.., true) => "round",
        (_, true, _) => "flow",
        _ => "link",
    };
    let mut legend = vec![("k-main".to_owned(), format!("median of {}", count(most as usize, what)))];
    if most > 1 {
        if most_carry {
            legend.push(("k-inner".to_owned(), "5 % to 95 % of them".to_owned()));
        }
        legend.push(("k-outer".to_owned(), "slowest to fastest".to_owned()));
    }
    if let Some(link) = outlier {
        legend.push(("k-worst".to_owned(), format!("slowest: {}", link.result.link_name())));
    }
    if points.iter().any(|point| point.ceiling.is_some()) {
        let here = |spread: &&&Spread| (spread.metric, spread.variant) == (metric, variant);
        let unlike = |spread: &&Spread| spread.ceiling.is_some_and(|(low, high)| high > UNLIKE * low);
        let unlike = data.spreads.iter().filter(here).any(unlike);
        legend.push(("k-limit".to_owned(), if unlike { "lowest ceiling" } else { "ceiling" }.to_owned()));
    }
    let name = metric.title();
    let title = match data.variant_words(variant) {
        "" => format!("{name} by message size"),
        words => format!("{name} by message size, {words}"),
    };
    Ok(Some(Figure { title, svg: curve(metric, &points)?, legend }))
}

/// The link with the worst median deviation among those of one variant, if it is worse than the centre.
fn worst<'d>(data: &'d Data<'_>, variant: u32) -> Option<&'d Link<'d>> {
    let mut flows: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for link in data.out.links.iter().filter(|link| data.variant(link.result) == variant) {
        flows.entry(&link.result.case.flow).or_default().extend(link.deviation);
    }
    let medians = flows.into_iter().filter_map(|(flow, all)| Some((flow, median(&all).ok()?)));
    let (flow, _) = medians.filter(|(_, middle)| *middle < 0.0).min_by(|a, b| a.1.total_cmp(&b.1))?;
    data.out.links.iter().find(|link| link.result.case.flow == *flow)
}
