//! Bandwidth of one link in consecutive slices of its window: whether it was steady.

use plotters::{
    series::{DashedLineSeries, LineSeries},
    style::Color,
};

use super::{
    plot::{SCALE, Tip, plot, words},
    theme::{LIMIT, WORST},
    ticks::{Axis, from_zero},
};
use crate::analysis::words::number;

/// Draws the slices of one window in Gb/s, each `seconds` long, and their median.
///
/// # Errors
/// plotters' words.
pub(in crate::report) fn slices(values: &[f64], median: f64, seconds: f64) -> Result<String, String> {
    let y = from_zero("bandwidth, Gb/s".to_owned(), values.iter().copied().fold(median, f64::max));
    let end = values.len() as f64 * seconds;
    let x = Axis { range: (0.0, end), ..from_zero("time in the window, s".to_owned(), end / 1.06) };
    let middle = |place: usize| (place as f64 + 0.5) * seconds;
    let tips: Vec<Tip> = values
        .iter()
        .enumerate()
        .map(|(place, value)| (middle(place), *value, format!("{:.1} s: {} Gb/s", middle(place), number(*value))))
        .collect();
    plot("bandwidth over the window", &x, &y, &tips, |chart| {
        let level = [(0.0, median), (end, median)];
        let dashes = DashedLineSeries::new(level, 6 * SCALE, 4 * SCALE, LIMIT.stroke_width(2 * SCALE));
        chart.draw_series(dashes).map_err(words)?;
        let steps = values
            .iter()
            .enumerate()
            .flat_map(|(place, value)| [(place as f64 * seconds, *value), ((place + 1) as f64 * seconds, *value)]);
        chart.draw_series(LineSeries::new(steps, WORST.stroke_width(2 * SCALE))).map_err(words)?;
        Ok(())
    })
}
