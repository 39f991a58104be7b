//! Charts of values by size: one figure per metric and variant.

use std::collections::BTreeMap;

use railgauge_analysis::{outliers::Link, percentile, rows, words::{self, count, number, size}, case::CaseResult};
use railgauge_model::plan::model::{Expectation, Limit, Test};
use railgauge_stats::robust::median;
use railgauge_wire::{
    terms::{Metric, TestMetric},
    unit::Bytes,
};

use super::{Block, Data, Figure, headline, spreads::Spread};
use crate::chart::{
    ChartError, Tip,
    layers::{Layer, Places, layers},
    theme::{DEMAND, INK, INNER, LIMIT, MAIN, OUTER, WORST},
    ticks::{decades, from_zero, sizes},
};

/// Ratio of the highest to the lowest ceiling from which on the line is called the lowest.
const UNLIKE: f64 = 1.01;

/// One size of a metric: the median of all links, their spread, the worst link, and the ceiling.
struct Point {
    size: Bytes,
    /// Smallest, 5th percentile, median, 95th percentile and largest value.
    quantiles: [f64; 5],
    /// Whether the links are enough for the percentiles among these.
    inner: bool,
    ceiling: Option<f64>,
    worst: Option<f64>,
    repeats: Vec<f64>,
}

struct Demanded {
    words: String,
    places: Vec<(Bytes, f64)>,
}

/// Links up to which every repeat is a point of its own: for more the areas are enough.
const FEW: u32 = 6;

/// `None` with only one size.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let shown: &[Metric] = match (data.test.metric, data.test.op.is_collective()) {
        (TestMetric::Compute, _) => &[Metric::Compute],
        (TestMetric::Latency, _) if data.test.transport.is_within_host() => &[Metric::MemoryLatency],
        _ if data.test.transport.is_within_host() => &[Metric::MemoryBandwidth],
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
    Ok((!figures.is_empty()).then(|| Block { figures, ..Block::default() }))
}

fn figure(data: &Data<'_>, metric: Metric, variant: u32) -> Result<Option<Figure>, ChartError> {
    let of = data.spreads.iter().filter(|spread| spread.metric == metric && spread.variant == variant);
    // A single size has no curve, and a large run has millions of cases to search.
    if of.clone().count() < 2 {
        return Ok(None);
    }
    let most = of.clone().map(|spread| spread.measured).max().unwrap_or(0);
    // One link of two is not the worst of anything.
    let outlier = worst(data, variant).filter(|_| metric == headline(data.test) && most > 2);
    let value = |size: Bytes| {
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
            let here = |result: &&&CaseResult<'_>| {
                (data.variant(result), result.case.cell.size) == (variant, spread.size_bytes)
                    && result.state.is_trusted()
            };
            let cases = data.results.iter().filter(here);
            let all = cases.map(|result| rows::repeats(result, metric)).filter(|values| values.len() > 1).flatten();
            let repeats = if most <= FEW { all.collect() } else { Vec::new() };
            Some(Point { size: spread.size_bytes, quantiles, inner: most_carry, ceiling, worst, repeats })
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
    let demanded = demanded(data.test, metric, &points);
    legend.extend(demanded.iter().map(|demand| ("k-demand".to_owned(), demand.words.clone())));
    if points.iter().any(|point| !point.repeats.is_empty()) {
        legend.push(("k-speck".to_owned(), "every repeat".to_owned()));
    }
    let name = metric.title();
    let title = match data.variant_words(variant) {
        "" => format!("{name} by message size"),
        words => format!("{name} by message size, {words}"),
    };
    Ok(Some(Figure { title, svg: curve(metric, &points, &demanded)?, legend }))
}

/// Limits of the plan on a metric of all links, at the sizes shown. Limits on some rails or a group are left out: the curve has all links.
fn demanded(test: &Test, metric: Metric, points: &[Point]) -> Vec<Demanded> {
    let of_all = |wanted: &&Expectation| wanted.metric == metric && wanted.rails.is_empty() && wanted.group.is_none();
    let one = |wanted: &Expectation| {
        let about = |size: Bytes| wanted.sizes.is_none_or(|(from, to)| from <= size && size <= to);
        let at = |point: &Point| match wanted.limit {
            Limit::AtLeast(value) | Limit::AtMost(value) => Some(value),
            Limit::PercentOfCeiling(percent) => point.ceiling.map(|ceiling| ceiling * percent / 100.0),
            Limit::WithinPercentOfPeers(_) | Limit::WithinPercentOfBaseline(_) => None,
        };
        let here = points.iter().filter(|point| about(point.size));
        let places: Vec<(Bytes, f64)> = here.filter_map(|point| Some((point.size, at(point)?))).collect();
        let value = words::limit(wanted);
        let words = match wanted.limit {
            Limit::AtMost(limit) => format!("the plan's limit: at most {}", value.unwrap_or_else(|| number(limit))),
            Limit::PercentOfCeiling(percent) => format!("the plan's limit: {percent} % of the ceiling"),
            Limit::AtLeast(limit) => format!("the plan's limit: at least {}", value.unwrap_or_else(|| number(limit))),
            Limit::WithinPercentOfPeers(_) | Limit::WithinPercentOfBaseline(_) => String::new(),
        };
        (!places.is_empty()).then_some(Demanded { words, places })
    };
    test.expect.iter().filter(of_all).filter_map(one).collect()
}

/// Logarithmic if the values span more than a factor of thirty on an axis of times.
///
/// # Errors
/// plotters fails.
fn curve(metric: Metric, points: &[Point], demanded: &[Demanded]) -> Result<String, ChartError> {
    let unit = metric.unit();
    let ends = |pick: fn(&Point) -> f64| points.iter().map(pick);
    let limits = || demanded.iter().flat_map(|demand| &demand.places).map(|(_, value)| *value);
    let repeats = || points.iter().flat_map(|point| point.repeats.iter().copied());
    let values = || repeats().chain(limits());
    let most = ends(|p| p.quantiles[4].max(p.ceiling.unwrap_or(0.0))).chain(values()).fold(0.0, f64::max);
    let least = ends(|p| p.quantiles[0]).chain(values()).filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let title = format!("{}, {unit}", metric.word().replace('_', " "));
    let logarithmic = matches!(unit, "µs" | "ns") && most > 30.0 * least;
    let y = if logarithmic { decades(title, least, most) } else { from_zero(title, most) };
    let list: Vec<Bytes> = points.iter().map(|point| point.size).collect();
    let x = sizes("message size".to_owned(), &list);
    let up = |value: f64| if logarithmic { value.max(1e-9).log10() } else { value };
    let across = |bytes: Bytes| bytes.max(Bytes(1)).as_f64().log2();

    let line = |pick: &dyn Fn(&Point) -> Option<f64>| -> Places {
        points.iter().filter_map(|point| Some((across(point.size), up(pick(point)?)))).collect()
    };
    let area = |low: usize, high: usize| -> Places {
        let upper = line(&|point| Some(point.quantiles[high]));
        line(&|point| Some(point.quantiles[low])).into_iter().chain(upper.into_iter().rev()).collect()
    };
    let tips: Vec<Tip> = points
        .iter()
        .map(|point| {
            let [low, _, median, _, high] = point.quantiles.map(number);
            let text = format!("{}: median {median} {unit}, {low} to {high}", size(point.size));
            (across(point.size), up(point.quantiles[2]), text)
        })
        .collect();
    let mut drawn = vec![Layer::Area(OUTER, area(0, 4))];
    if points.iter().all(|point| point.inner) {
        drawn.push(Layer::Area(INNER, area(1, 3)));
    }
    let median = line(&|point| Some(point.quantiles[2]));
    drawn.extend([
        Layer::Dashes(LIMIT, line(&|point| point.ceiling)),
        Layer::Line(WORST, line(&|point| point.worst)),
        Layer::Line(MAIN, median.clone()),
        Layer::Dots(MAIN, median),
    ]);
    for demand in demanded {
        let places: Places = demand.places.iter().map(|(size, value)| (across(*size), up(*value))).collect();
        // One size has no line.
        drawn.push(if places.len() > 1 { Layer::Dashes(DEMAND, places) } else { Layer::Dots(DEMAND, places) });
    }
    let each = |point: &Point| point.repeats.iter().map(|value| (across(point.size), up(*value))).collect::<Vec<_>>();
    drawn.push(Layer::Specks(INK, points.iter().flat_map(each).collect()));
    layers(&format!("{metric} by message size"), [&x, &y], &tips, drawn)
}

/// By median deviation among those of one variant, if it is worse than the centre.
fn worst<'d>(data: &'d Data<'_>, variant: u32) -> Option<&'d Link<'d>> {
    let mut flows: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for link in data.out.links.iter().filter(|link| data.variant(link.result) == variant) {
        flows.entry(&link.result.case.flow).or_default().extend(link.deviation);
    }
    let medians = flows.into_iter().filter_map(|(flow, all)| Some((flow, median(&all).ok()?)));
    let (flow, _) = medians.filter(|(_, middle)| *middle < 0.0).min_by(|a, b| a.1.total_cmp(&b.1))?;
    data.out.links.iter().find(|link| link.result.case.flow == *flow)
}
