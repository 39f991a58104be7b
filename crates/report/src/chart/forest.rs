//! Changes with their intervals below each other, against the band of those that count as none.

use plotters::{
    element::{Circle, Rectangle},
    series::LineSeries,
    style::{Color, RGBColor},
};
use railgauge_analysis::compare::digits;

use super::{
    ChartError,
    plot::{Room, SCALE, Tip, plot_in},
    theme::{GOOD, LIMIT, MAIN, OUTER, WORST},
    ticks::{Axis, around},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Worse,
    Better,
    Same,
    Unknown,
}

impl Look {
    const fn colour(self) -> RGBColor {
        match self {
            Self::Worse => WORST,
            Self::Better => GOOD,
            Self::Same => MAIN,
            Self::Unknown => LIMIT,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub label: String,
    pub percent: f64,
    pub interval: Option<(f64, f64)>,
    /// Changes from the first (negative) to the second count as none. The margin is a factor, so in percent its upper edge is farther away.
    pub margin: (f64, f64),
    pub look: Look,
}

/// Letters of a label that fit next to the chart.
const LETTERS: usize = 52;
const HEIGHT: u32 = 22;

/// # Errors
/// plotters fails.
pub(crate) fn forest(rows: &[Row]) -> Result<String, ChartError> {
    // Far ends of intervals must not squeeze the estimates into a point.
    let farthest = rows.iter().map(|row| row.percent.abs().max(row.margin.1)).fold(0.1, f64::max);
    let shown = |percent: f64| percent.clamp((-3.0 * farthest).max(-100.0), 3.0 * farthest);
    let ends = || rows.iter().flat_map(|row| row.interval.into_iter().flat_map(|(low, high)| [low, high]));
    let all = || ends().map(shown).chain(rows.iter().flat_map(|row| [row.percent, row.margin.0, row.margin.1]));
    let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
    let x = around("change, %".to_owned(), low, high);
    let labels = rows.iter().enumerate().map(|(at, row)| (at as f64, short(&row.label)));
    let y = Axis { title: String::new(), range: (rows.len() as f64 - 0.5, -0.5), marks: labels.collect() };
    let tips: Vec<Tip> = rows.iter().enumerate().map(|(at, row)| (row.percent, at as f64, tip(row))).collect();
    let room = Room { size: (1120, 64 + HEIGHT * rows.len() as u32), left: 380 };
    plot_in(room, "changes with their intervals", [&x, &y], &tips, |chart| {
        for (at, row) in rows.iter().enumerate() {
            let at = at as f64;
            let band = Rectangle::new([(row.margin.0, at - 0.5), (row.margin.1, at + 0.5)], OUTER.filled());
            chart.draw_series([band])?;
        }
        let zero = [(0.0, -0.5), (0.0, rows.len() as f64 - 0.5)];
        chart.draw_series(LineSeries::new(zero, LIMIT.stroke_width(SCALE)))?;
        for (at, row) in rows.iter().enumerate() {
            let (at, colour) = (at as f64, row.look.colour());
            if let Some((low, high)) = row.interval {
                let line = [(shown(low), at), (shown(high), at)];
                chart.draw_series(LineSeries::new(line, colour.stroke_width(2 * SCALE)))?;
            }
            chart.draw_series([Circle::new((row.percent, at), 4 * SCALE, colour.filled())])?;
        }
        Ok(())
    })
}

fn tip(row: &Row) -> String {
    let interval = row.interval.map_or_else(String::new, |(low, high)| format!(" ({})", digits::range(low, high)));
    let none = digits::margin(row.margin.0, row.margin.1);
    format!("{}: {}{interval}, {none} % counts as none", row.label, digits::range(row.percent, row.percent))
}

fn short(label: &str) -> String {
    match label.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &label[..end]),
        None => label.to_owned(),
    }
}
