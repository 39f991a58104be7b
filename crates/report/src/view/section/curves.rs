//! Charts of values by size: one figure for each metric; with several variants or tests a line for each.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_analysis::{
    outliers::Link,
    percentile, rows,
    words::{self, count, number, size},
};
use railgauge_model::plan::model::{Expectation, Limit, Test};
use railgauge_stats::robust::median;
use railgauge_wire::{Bytes, Metric, TestMetric};

use super::{
    block::{Block, Data, Figure, headline},
    spreads::Spread,
};
use crate::chart::{
    ChartError, Tip,
    layers::{Layer, Places, Room, layers},
    theme::{DEMAND, INK, INNER, LIMIT, LINES, MAIN, OUTER, WORST},
    ticks::{Axis, decades, from_zero, sizes},
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

pub(super) struct Demanded {
    pub(super) words: String,
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
    let variants = data.own_variants();
    let one = |metric: &Metric| match variants.as_slice() {
        [variant] => figure(data, *metric, *variant),
        _ => overlaid(*metric, &lines(data, *metric)),
    };
    let figures = shown.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let figures: Vec<Figure> = figures.into_iter().flatten().collect();
    Ok((!figures.is_empty()).then(|| Block { figures, ..Block::default() }))
}

/// The medians of one test or variant, by size.
pub(super) struct Medians {
    label: String,
    points: Vec<(Bytes, [f64; 5])>,
    demanded: Vec<Demanded>,
}

/// One for each variant.
pub(super) fn lines(data: &Data<'_>, metric: Metric) -> Vec<Medians> {
    let one = |variant: u32| {
        let own = |spread: &&&Spread| {
            spread.metric == metric
                && spread.variant == variant
                && is_shown(metric, spread.size_bytes)
                && data.carried(metric, (variant, spread.size_bytes))
        };
        let own = data.spreads.iter().filter(own);
        let mut points: Vec<(Bytes, [f64; 5])> =
            own.filter_map(|spread| Some((spread.size_bytes, spread.quantiles?))).collect();
        points.sort_by_key(|point| point.0);
        let sizes: Vec<(Bytes, Option<f64>)> = points.iter().map(|point| (point.0, None)).collect();
        Medians { label: data.variant_words(variant).to_owned(), demanded: demanded(data.test, metric, &sizes), points }
    };
    let lines = data.own_variants().into_iter().map(one);
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// The curves of tests with a metric in common, all in one chart.
///
/// # Errors
/// plotters fails.
pub(super) fn compared(tests: Vec<(String, Metric, Vec<Medians>)>) -> Result<Vec<Figure>, ChartError> {
    let mut of_metric: BTreeMap<Metric, Vec<(String, Vec<Medians>)>> = BTreeMap::new();
    for (test, metric, lines) in tests {
        if !lines.is_empty() {
            of_metric.entry(metric).or_default().push((test, lines));
        }
    }
    of_metric.retain(|_, tests| tests.len() > 1);
    let named = |(test, lines): (String, Vec<Medians>)| {
        let label =
            move |line: &Medians| if line.label.is_empty() { test.clone() } else { format!("{test}, {}", line.label) };
        lines.into_iter().map(move |line| Medians { label: label(&line), ..line })
    };
    let figures = of_metric
        .into_iter()
        .map(|(metric, tests)| overlaid(metric, &tests.into_iter().flat_map(named).collect::<Vec<_>>()));
    Ok(figures.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Messages up to which their rate says more than the bandwidth.
const SMALL: Bytes = Bytes::from_kib(8);

fn is_shown(metric: Metric, size: Bytes) -> bool {
    metric != Metric::MessageRate || size <= SMALL
}

/// `None` where no line has two sizes.
fn overlaid(metric: Metric, lines: &[Medians]) -> Result<Option<Figure>, ChartError> {
    let shown = &lines[..lines.len().min(LINES.len())];
    let all = || shown.iter().flat_map(|line| line.points.iter().map(|point| point.0));
    if shown.iter().all(|line| line.points.len() < 2) {
        return Ok(None);
    }
    // Limits that lines share are one.
    let mut limits: Vec<&Demanded> = Vec::new();
    for demand in shown.iter().flat_map(|line| &line.demanded) {
        if !limits.iter().any(|known| known.words == demand.words) {
            limits.push(demand);
        }
    }
    let scale = Scale::of(
        metric,
        &all().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(),
        &shown.iter().flat_map(|line| line.points.iter().map(|point| point.1[2])).collect::<Vec<_>>(),
        limits.iter().copied(),
    );
    let (mut layers, mut tips, mut legend) = (Vec::new(), Vec::new(), Vec::new());
    for (line, (role, class)) in shown.iter().zip(LINES) {
        let places: Places = line.points.iter().map(|(size, of)| scale.place(*size, of[2])).collect();
        tips.extend(line.points.iter().zip(&places).map(|((bytes, of), place)| {
            let [low, _, median, _, high] = of.map(|value| scale.number(value));
            let text = format!("{}, {}: median {median} {}, {low} to {high}", line.label, size(*bytes), scale.unit);
            (place.0, place.1, text)
        }));
        layers.extend([Layer::Line(role, places.clone()), Layer::Dots(role, places)]);
        legend.push((class.to_owned(), line.label.clone()));
    }
    layers.extend(limits.iter().map(|demand| scale.limit(demand)));
    legend.extend(limits.iter().map(|demand| ("k-demand".to_owned(), demand.words.clone())));
    let more = match lines.len() - shown.len() {
        0 => String::new(),
        more => format!(" ({more} more in the tables)"),
    };
    let title = format!("{} by message size, medians{more}", metric.title());
    Ok(Some(Figure { svg: scale.draw(&title, &tips, layers)?, title, legend }))
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
        .filter(|spread| is_shown(metric, spread.size_bytes) && data.carried(metric, (variant, spread.size_bytes)))
        .filter_map(|spread| {
            let ceiling = spread.ceiling.filter(|_| metric == Metric::Bandwidth || metric.is_sum()).map(|(low, _)| low);
            let worst = value(spread.size_bytes);
            let quantiles = spread.quantiles?;
            let cases = data.trusted_at((variant, spread.size_bytes));
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
    let places: Vec<(Bytes, Option<f64>)> = points.iter().map(|point| (point.size, point.ceiling)).collect();
    let demanded = demanded(data.test, metric, &places);
    legend.extend(demanded.iter().map(|demand| ("k-demand".to_owned(), demand.words.clone())));
    if points.iter().any(|point| !point.repeats.is_empty()) {
        legend.push(("k-speck".to_owned(), "every repeat".to_owned()));
    }
    let title = format!("{} by message size", metric.title());
    Ok(Some(Figure { title, svg: curve(metric, &points, &demanded)?, legend }))
}

/// Limits of the plan on a metric of all links, at the sizes shown, which have a ceiling or none. Limits on some rails or a group are left out: the curve has all links.
pub(super) fn demanded(test: &Test, metric: Metric, points: &[(Bytes, Option<f64>)]) -> Vec<Demanded> {
    let of_all = |wanted: &&Expectation| wanted.metric == metric && wanted.rails.is_empty() && wanted.group.is_none();
    let one = |wanted: &Expectation| {
        let applies =
            |size| wanted.source.as_ref().is_none_or(|of| of.misfit(metric, Default::default(), &[size]).is_none());
        let about = |size: Bytes| wanted.sizes.is_none_or(|(from, to)| from <= size && size <= to) && applies(size);
        let at = |ceiling: Option<f64>| match wanted.limit {
            Limit::AtLeast(value) | Limit::AtMost(value) => Some(value),
            Limit::PercentOfCeiling(percent) => ceiling.map(|ceiling| ceiling * percent / 100.0),
            Limit::WithinPercentOfPeers(_) | Limit::WithinPercentOfBaseline(_) => None,
        };
        let here = points.iter().filter(|(size, _)| about(*size));
        let places: Vec<(Bytes, f64)> = here.filter_map(|(size, ceiling)| Some((*size, at(*ceiling)?))).collect();
        let value = words::limit(wanted);
        let words = match wanted.limit {
            Limit::AtMost(limit) => format!("limit: at most {}", value.unwrap_or_else(|| number(limit))),
            Limit::PercentOfCeiling(percent) => format!("limit: {percent} % of the ceiling"),
            Limit::AtLeast(limit) => format!("limit: at least {}", value.unwrap_or_else(|| number(limit))),
            Limit::WithinPercentOfPeers(_) | Limit::WithinPercentOfBaseline(_) => String::new(),
        };
        (!places.is_empty()).then_some(Demanded { words, places })
    };
    test.expect.iter().filter(of_all).filter_map(one).collect()
}

/// The axes of a chart of values by size. Times and rates of messages are logarithmic if they span more than a factor of thirty.
struct Scale {
    axes: [Axis; 2],
    logarithmic: bool,
    unit: &'static str,
    /// Of the unit, in those of the metric.
    factor: f64,
}

impl Scale {
    fn of<'d>(metric: Metric, list: &[Bytes], values: &[f64], limits: impl Iterator<Item = &'d Demanded>) -> Self {
        let limits: Vec<f64> = limits.flat_map(|demand| &demand.places).map(|(_, value)| *value).collect();
        let all = || values.iter().chain(&limits).copied();
        let most = all().fold(0.0, f64::max);
        let least = all().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let (shown, unit) = words::in_unit(metric, most);
        let factor = if most > 0.0 { shown / most } else { 1.0 };
        let title = format!("{}, {unit}", metric.word().replace('_', " "));
        let logarithmic = matches!(metric.unit(), "µs" | "ns" | "Mmsg/s") && most > 30.0 * least;
        let y = if logarithmic { decades(title, factor * least, shown) } else { from_zero(title, shown) };
        Self { axes: [sizes("message size".to_owned(), list), y], logarithmic, unit, factor }
    }

    fn number(&self, value: f64) -> String {
        number(self.factor * value)
    }

    fn place(&self, size: Bytes, value: f64) -> (f64, f64) {
        let value = self.factor * value;
        let up = if self.logarithmic { value.max(1e-9).log10() } else { value };
        (size.max(Bytes(1)).as_f64().log2(), up)
    }

    fn limit(&self, demand: &Demanded) -> Layer {
        let places: Places = demand.places.iter().map(|(size, value)| self.place(*size, *value)).collect();
        // One size has no line.
        if places.len() > 1 { Layer::Dashes(DEMAND, places) } else { Layer::Dots(DEMAND, places) }
    }

    fn draw(&self, label: &str, tips: &[Tip], drawn: Vec<Layer>) -> Result<String, ChartError> {
        layers(Room::USUAL, label, [&self.axes[0], &self.axes[1]], tips, &drawn)
    }
}

/// # Errors
/// plotters fails.
fn curve(metric: Metric, points: &[Point], demanded: &[Demanded]) -> Result<String, ChartError> {
    let of = |point: &Point| {
        let ends = [point.quantiles[0], point.quantiles[4]];
        ends.into_iter().chain(point.ceiling).chain(point.repeats.iter().copied()).collect::<Vec<_>>()
    };
    let values: Vec<f64> = points.iter().flat_map(of).collect();
    let list: Vec<Bytes> = points.iter().map(|point| point.size).collect();
    let scale = Scale::of(metric, &list, &values, demanded.iter());
    let line = |pick: &dyn Fn(&Point) -> Option<f64>| -> Places {
        points.iter().filter_map(|point| Some(scale.place(point.size, pick(point)?))).collect()
    };
    let area = |low: usize, high: usize| -> Places {
        let upper = line(&|point| Some(point.quantiles[high]));
        line(&|point| Some(point.quantiles[low])).into_iter().chain(upper.into_iter().rev()).collect()
    };
    let tip = |point: &Point| -> Tip {
        let [low, _, median, _, high] = point.quantiles.map(|value| scale.number(value));
        let worst = point.worst.map_or_else(String::new, |worst| format!("; slowest link {}", scale.number(worst)));
        let ceiling = point.ceiling.map_or_else(String::new, |ceiling| format!("; ceiling {}", scale.number(ceiling)));
        let unit = scale.unit;
        let (across, up) = scale.place(point.size, point.quantiles[2]);
        (across, up, format!("{}: median {median} {unit}, {low} to {high}{worst}{ceiling}", size(point.size)))
    };
    let tips: Vec<Tip> = points.iter().map(tip).collect();
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
    drawn.extend(demanded.iter().map(|demand| scale.limit(demand)));
    let each = |point: &Point| point.repeats.iter().map(|value| scale.place(point.size, *value)).collect::<Vec<_>>();
    drawn.push(Layer::Specks(INK, points.iter().flat_map(each).collect()));
    scale.draw(&format!("{metric} by message size"), &tips, drawn)
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
