//! Flows at once over time: each of them, and what they come to together.

use plotters::{series::LineSeries, style::Color};

use super::{
    plot::{SCALE, Tip, plot, words},
    theme::{MAIN, WORST},
    ticks::{Axis, from_zero},
};
use crate::analysis::words::number;

/// Draws flows in slices of `seconds` each, in Gb/s, and their sum, which all of them must be long enough for.
///
/// # Errors
/// plotters' words.
pub(in crate::report) fn flows(each: &[&[f64]], sum: &[f64], seconds: f64) -> Result<String, String> {
    let y = from_zero("bandwidth, Gb/s".to_owned(), sum.iter().copied().fold(0.0, f64::max));
    let end = sum.len() as f64 * seconds;
    let x = Axis { range: (0.0, end), ..from_zero("time in which all flows ran, s".to_owned(), end / 1.06) };
    let middle = |place: usize| (place as f64 + 0.5) * seconds;
    let tips: Vec<Tip> = sum
        .iter()
        .enumerate()
        .map(|(place, value)| (middle(place), *value, format!("{:.1} s: {} Gb/s", middle(place), number(*value))))
        .collect();
    let steps = |values: &[f64]| -> Vec<(f64, f64)> {
        let ends =
            |(place, value): (usize, &f64)| [(place as f64 * seconds, *value), ((place + 1) as f64 * seconds, *value)];
        values.iter().take(sum.len()).enumerate().flat_map(ends).collect()
    };
    plot("bandwidth of flows at once over time", &x, &y, &tips, |chart| {
        for flow in each {
            chart.draw_series(LineSeries::new(steps(flow), MAIN.stroke_width(SCALE))).map_err(words)?;
        }
        chart.draw_series(LineSeries::new(steps(sum), WORST.stroke_width(2 * SCALE))).map_err(words)?;
        Ok(())
    })
}
