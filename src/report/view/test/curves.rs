//! Values by size, drawn: one figure per metric and variant.

use railgauge_wire::terms::{Aim, Metric};

use super::{
    Data, Figure,
    deviation::{Link, worst},
    headline,
};
use crate::{
    analysis::words::count,
    report::chart::curve::{Point, curve},
};

/// The figures of a test; none where it has only one size.
pub(super) fn curves(data: &Data<'_>, links: &[Link<'_>]) -> Result<Vec<Figure>, String> {
    let shown: &[Metric] = match (data.test.aim, data.test.op.is_collective()) {
        (Aim::Bandwidth, false) if data.test.at_once() => &[Metric::Bandwidth, Metric::TotalBandwidth],
        (Aim::Bandwidth, false) => &[Metric::Bandwidth, Metric::MessageRate],
        (Aim::Bandwidth, true) => &[Metric::Busbw],
        (Aim::Latency, _) => &[Metric::LatencyP50, Metric::LatencyP99],
        (Aim::Step, _) => &[Metric::StepTime, Metric::StepExposed],
    };
    let mut figures = Vec::new();
    for variant in data.own_variants() {
        for &metric in shown {
            figures.extend(figure(data, links, metric, variant)?);
        }
    }
    Ok(figures)
}

fn figure(data: &Data<'_>, links: &[Link<'_>], metric: Metric, variant: u32) -> Result<Option<Figure>, String> {
    let of = data.spreads.iter().filter(|spread| spread.metric == metric && spread.variant == variant);
    let most = of.clone().map(|spread| spread.measured).max().unwrap_or(0);
    // One link among two is not the worst of anything.
    let outlier = worst(links, variant).filter(|_| metric == headline(data.test) && most > 2);
    let value = |size: u64| {
        let flow = &outlier?.result.case.flow;
        links.iter().find(|link| link.cell == (variant, size) && link.result.case.flow == *flow)?.value
    };
    let mut points: Vec<Point> = of
        .filter_map(|spread| {
            let ceiling = spread.ceiling.filter(|_| metric == Metric::Bandwidth || metric.is_sum()).map(|(low, _)| low);
            let worst = value(spread.size_bytes);
            Some(Point { size: spread.size_bytes, quantiles: spread.quantiles?, ceiling, worst })
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
        legend.push(("k-inner".to_owned(), "5 % to 95 % of them".to_owned()));
        legend.push(("k-outer".to_owned(), "slowest to fastest".to_owned()));
    }
    if let Some(link) = outlier {
        legend.push(("k-worst".to_owned(), format!("slowest: {}", link.result.link_name())));
    }
    if points.iter().any(|point| point.ceiling.is_some()) {
        legend.push(("k-limit".to_owned(), "ceiling".to_owned()));
    }
    let name = match metric {
        Metric::Bandwidth => "Bandwidth",
        Metric::MessageRate => "Message rate",
        Metric::TotalBandwidth => "Bandwidth of all flows",
        Metric::LatencyP50 => "Latency, median (p50)",
        Metric::LatencyP99 => "Latency, 99th percentile (p99)",
        Metric::Busbw => "Bus bandwidth",
        metric => metric.word(),
    };
    let title = match data.variant_words(variant) {
        "" => format!("{name} by message size"),
        words => format!("{name} by message size, {words}"),
    };
    Ok(Some(Figure { title, svg: curve(metric, &points)?, legend }))
}
