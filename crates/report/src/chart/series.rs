//! A series of nights with its levels, change points, and declared changes.

use railgauge_analysis::words::number;

use super::{
    ChartError, Tip,
    layers::{Layer, Room, layers},
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
    let upright = |day: f64| vec![(day, floor), (day, top)];
    let epochs = drawing.epochs.iter().filter(|day| (first..=last).contains(day));
    let mut drawn: Vec<Layer> = epochs.map(|day| Layer::Line(MESH, upright(*day as f64))).collect();
    drawn.push(Layer::Specks(MAIN, points.iter().map(|(day, value)| (*day as f64, *value)).collect()));
    let levels = levels(points, &drawing.marks).into_iter();
    drawn
        .extend(levels.map(|(start, end, level)| Layer::Line(LIMIT, vec![(start as f64, level), (end as f64, level)])));
    let marks = drawing.marks.iter().map(|mark| (if mark.worse { WORST } else { GOOD }, mark.day as f64 - 0.5));
    drawn.extend(marks.map(|(colour, day)| Layer::Dashes(colour, upright(day))));
    layers(Room { size: (1120, 260), left: 78 }, "values night by night", [&x, &y], &tips, &drawn)
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
