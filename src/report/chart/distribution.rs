//! The distribution of single latencies: which share of operations took at most how long, on a scale of nines so that
//! the tail is seen.

use plotters::{series::LineSeries, style::Color};
use railgauge_wire::unit::Nanoseconds;

use super::{
    plot::{SCALE, Tip, plot, words},
    theme::{MAIN, WORST},
    ticks::{decades, nine, nines},
};
use crate::analysis::{percentile::carries_quantile, words::number};

/// Counts by upper edge, edges rising.
pub(in crate::report) type Histogram = Vec<(Nanoseconds, u64)>;

/// Draws the distribution of all links together and that of the link with the longest tail.
///
/// # Errors
/// plotters' words.
pub(in crate::report) fn distribution(all: &Histogram, worst: &Histogram) -> Result<String, String> {
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
    plot("distribution of latencies", &x, &y, &tips, |chart| {
        for (steps, role) in steps.iter().zip([MAIN, WORST]).rev() {
            let line = stairs(steps, y.range.1);
            chart.draw_series(LineSeries::new(line, role.stroke_width(2 * SCALE))).map_err(words)?;
        }
        Ok(())
    })
}

/// Microseconds and the share of operations that took at most as long.
fn shares(histogram: &Histogram) -> Vec<(f64, f64)> {
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

/// The line of a step function, cut off at the top of the chart where the last operation is reached.
fn stairs(steps: &[(f64, f64)], top: f64) -> Vec<(f64, f64)> {
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
