//! A series of nights with its levels, change points, and declared changes.

use plotters::{
    element::Circle,
    series::{DashedLineSeries, LineSeries},
    style::Color,
};
use railgauge_analysis::words::number;

use super::{
    ChartError,
    plot::{Room, SCALE, Tip, plot_in},
    theme::{GOOD, LIMIT, MAIN, MESH, WORST},
    ticks::{around, dates},
};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mark {
    pub day: i64,
    pub worse: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Drawing<'a> {
    pub title: String,
    /// Night (in days from 1970) and value.
    pub points: &'a [(i64, f64)],
    pub marks: Vec<Mark>,
    pub epochs: Vec<i64>,
    pub date: fn(i64) -> String,
}

/// # Errors
/// plotters fails.
pub(crate) fn series(drawing: &Drawing<'_>) -> Result<String, ChartError> {
    let points = drawing.points;
    let values = || points.iter().map(|(_, value)| *value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let (first, last) = points.first().zip(points.last()).map_or((0, 1), |(first, last)| (first.0, last.0));
    let y = around(drawing.title.clone(), low, high);
    let x = dates((first, last), drawing.date);
    let (floor, top) = y.range;
    let tip = |(day, value): &(i64, f64)| -> Tip {
        (*day as f64, *value, format!("{}: {}", (drawing.date)(*day), number(*value)))
    };
    let tips: Vec<Tip> = points.iter().map(tip).collect();
    let room = Room { size: (1120, 260), left: 78 };
    plot_in(room, "values night by night", [&x, &y], &tips, |chart| {
        for day in drawing.epochs.iter().filter(|day| (first..=last).contains(day)) {
            let line = [(*day as f64, floor), (*day as f64, top)];
            chart.draw_series(LineSeries::new(line, MESH.stroke_width(2 * SCALE)))?;
        }
        let dots = points.iter().map(|(day, value)| Circle::new((*day as f64, *value), 2 * SCALE, MAIN.filled()));
        chart.draw_series(dots)?;
        for (start, end, level) in levels(points, &drawing.marks) {
            let line = [(start as f64, level), (end as f64, level)];
            chart.draw_series(LineSeries::new(line, LIMIT.stroke_width(2 * SCALE)))?;
        }
        for mark in &drawing.marks {
            let colour = if mark.worse { WORST } else { GOOD };
            let line = [(mark.day as f64 - 0.5, floor), (mark.day as f64 - 0.5, top)];
            let dashes = DashedLineSeries::new(line, 6 * SCALE, 4 * SCALE, colour.stroke_width(2 * SCALE));
            chart.draw_series(dashes)?;
        }
        Ok(())
    })
}

fn levels(points: &[(i64, f64)], marks: &[Mark]) -> Vec<(i64, i64, f64)> {
    let level = |day: i64| marks.iter().filter(|mark| mark.day <= day).count();
    let parts = points.chunk_by(|a, b| level(a.0) == level(b.0));
    let median = |part: &[(i64, f64)]| {
        let values: Vec<f64> = part.iter().map(|(_, value)| *value).collect();
        railgauge_stats::robust::median(&values).ok()
    };
    parts.filter_map(|part| Some((part.first()?.0, part.last()?.0, median(part)?))).collect()
}
