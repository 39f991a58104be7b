//! Changes with their intervals below each other, against the band of those that count as none.

use railgauge_analysis::compare::digits;

use super::{
    ChartError, Tip,
    layers::{Layer, Room, layers},
    theme::{GOOD, LIMIT, MAIN, OUTER, Role, WORST},
    ticks::{Axis, around},
};
use crate::text::cut;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Worse,
    Better,
    Same,
    Unknown,
}

impl Look {
    const fn colour(self) -> Role {
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
    let labels = rows.iter().enumerate().map(|(at, row)| (at as f64, cut(&row.label, LETTERS).into_owned()));
    let y = Axis { title: String::new(), range: (rows.len() as f64 - 0.5, -0.5), marks: labels.collect() };
    let tips: Vec<Tip> = rows.iter().enumerate().map(|(at, row)| (row.percent, at as f64, tip(row))).collect();
    let at = |row: usize, percent: f64| (percent, row as f64);
    let mut drawn = Vec::new();
    for (n, row) in rows.iter().enumerate() {
        let ((low, high), (top, bottom)) = (row.margin, (n as f64 - 0.5, n as f64 + 0.5));
        drawn.push(Layer::Area(OUTER, vec![(low, top), (high, top), (high, bottom), (low, bottom)]));
    }
    drawn.push(Layer::Line(LIMIT, vec![(0.0, -0.5), (0.0, rows.len() as f64 - 0.5)]));
    for (n, row) in rows.iter().enumerate() {
        let ends = row.interval.map(|(low, high)| vec![at(n, shown(low)), at(n, shown(high))]);
        drawn.extend(ends.map(|ends| Layer::Line(row.look.colour(), ends)));
        drawn.push(Layer::Dots(row.look.colour(), vec![at(n, row.percent)]));
    }
    let room = Room { size: (1120, 64 + HEIGHT * rows.len() as u32), left: 380 };
    layers(room, "changes with their intervals", [&x, &y], &tips, &drawn)
}

fn tip(row: &Row) -> String {
    let interval = row.interval.map_or_else(String::new, |(low, high)| format!(" ({})", digits::range(low, high)));
    let none = digits::margin(row.margin.0, row.margin.1);
    format!("{}: {}{interval}, {none} % counts as none", row.label, digits::range(row.percent, row.percent))
}
