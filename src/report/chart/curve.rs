//! A metric over message sizes: the median of all links, how far they spread, the worst link, and the ceiling.

use plotters::{
    element::{Circle, Polygon},
    series::{DashedLineSeries, LineSeries},
    style::Color,
};
use railgauge_wire::terms::Metric;

use super::{
    plot::{SCALE, Tip, plot, words},
    theme::{INNER, LIMIT, MAIN, OUTER, WORST},
    ticks::{decades, from_zero, sizes},
};
use crate::analysis::words::{number, size};

/// One size.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct Point {
    /// Message size in bytes.
    pub size: u64,
    /// Smallest, 5th percentile, median, 95th percentile and largest value over the links.
    pub quantiles: [f64; 5],
    /// Whether the links are enough for the percentiles among these.
    pub inner: bool,
    /// Ceiling, where one is known.
    pub ceiling: Option<f64>,
    /// Value of the worst link.
    pub worst: Option<f64>,
}

/// Draws the curve. Where the values span more than a factor of thirty on an axis of times, it is logarithmic.
///
/// # Errors
/// plotters' words.
pub(in crate::report) fn curve(metric: Metric, points: &[Point]) -> Result<String, String> {
    let unit = metric.unit();
    let ends = |pick: fn(&Point) -> f64| points.iter().map(pick);
    let most = ends(|p| p.quantiles[4].max(p.ceiling.unwrap_or(0.0))).fold(0.0, f64::max);
    let least = ends(|p| p.quantiles[0]).filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let title = format!("{}, {unit}", metric.word().replace('_', " "));
    let logarithmic = unit == "µs" && most > 30.0 * least;
    let y = if logarithmic { decades(title, least, most) } else { from_zero(title, most) };
    let list: Vec<u64> = points.iter().map(|point| point.size).collect();
    let x = sizes("message size".to_owned(), &list);
    let up = |value: f64| if logarithmic { value.max(1e-9).log10() } else { value };
    let across = |bytes: u64| (bytes.max(1) as f64).log2();

    let line = |pick: &dyn Fn(&Point) -> Option<f64>| -> Vec<(f64, f64)> {
        points.iter().filter_map(|point| Some((across(point.size), up(pick(point)?)))).collect()
    };
    let area = |low: usize, high: usize| -> Vec<(f64, f64)> {
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
    plot(&format!("{metric} by message size"), &x, &y, &tips, |chart| {
        chart.draw_series([Polygon::new(area(0, 4), OUTER.filled())]).map_err(words)?;
        if points.iter().all(|point| point.inner) {
            chart.draw_series([Polygon::new(area(1, 3), INNER.filled())]).map_err(words)?;
        }
        let ceiling = line(&|point| point.ceiling);
        let dashes = DashedLineSeries::new(ceiling, 6 * SCALE, 4 * SCALE, LIMIT.stroke_width(2 * SCALE));
        chart.draw_series(dashes).map_err(words)?;
        chart.draw_series(LineSeries::new(line(&|p| p.worst), WORST.stroke_width(2 * SCALE))).map_err(words)?;
        let median = line(&|point| Some(point.quantiles[2]));
        chart.draw_series(LineSeries::new(median.clone(), MAIN.stroke_width(2 * SCALE))).map_err(words)?;
        let dots = median.into_iter().map(|place| Circle::new(place, 3 * SCALE, MAIN.filled()));
        chart.draw_series(dots).map_err(words)?;
        Ok(())
    })
}
