//! Values over time in lanes below each other, on one axis: flows above, port counters below.
//!
//! Not plotters, as for the timeline: what falls on the same pixel is one column from its lowest to its highest value,
//! so that long times stay small and no spike is lost.

use std::fmt::Write;

use super::frame::{self, escape, margin};

/// In pixels of the page at full size.
const WIDTH: usize = 1120;
const LANE: usize = 30;
const HEAD: usize = 24;
const NAME: usize = 44;
const RIGHT: usize = 150;

/// A value that holds for a time; both ends as shares of the axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    pub from: f64,
    pub until: f64,
    pub mean: f64,
    pub most: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lane {
    pub name: String,
    /// In order of time.
    pub steps: Vec<Step>,
    pub top: f64,
    pub value: String,
    pub tip: String,
    /// Whether a value is good: a rate. Otherwise it is a count of something bad.
    pub is_rate: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    pub heading: String,
    pub lanes: Vec<Lane>,
}

/// Renders the groups below each other. `marks` are positions and texts of the axis; `label` is for screen readers.
pub(crate) fn lanes(label: &str, groups: &[Group], marks: &[(f64, String)]) -> String {
    let names = groups.iter().flat_map(|group| &group.lanes).map(|lane| lane.name.chars().count().min(NAME));
    let left = margin(names.max().unwrap_or(0));
    let across = WIDTH - left - RIGHT;
    let bottom: usize = groups.iter().map(|group| HEAD + group.lanes.len() * LANE).sum();
    let height = bottom + 24;
    let mut svg = format!(
        "<svg class=\"timeline\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(label)
    );
    let mut top = 0;
    for group in groups {
        let (heading, y) = (escape(&group.heading), top + HEAD - 8);
        let _ = write!(svg, "<text class=\"f-ink l-head\" x=\"0\" y=\"{y}\">{heading}</text>");
        top += HEAD;
        for lane in &group.lanes {
            one(&mut svg, lane, (left, across), top);
            top += LANE;
        }
    }
    frame::marks(&mut svg, marks, (left, across), (HEAD, bottom));
    svg + "</svg>"
}

fn one(svg: &mut String, lane: &Lane, (left, across): (usize, usize), top: usize) {
    let (right, y) = (left + across + 6, top + LANE / 2 + 4);
    frame::name(svg, &lane.name, NAME, (left, y));
    let _ = write!(svg, "<text class=\"f-ink\" x=\"{right}\" y=\"{y}\">{}</text>", escape(&lane.value));
    let (room, base) = (LANE - 4, top + LANE - 2);
    let columns = columns(&lane.steps, across);
    let _ = write!(svg, "<g><title>{}</title>", escape(&lane.tip));
    let _ = write!(svg, "<rect class=\"m-none\" x=\"{left}\" y=\"{}\" width=\"{across}\" height=\"{room}\"/>", top + 2);
    let (high, low) = if lane.is_rate { ("f-inner", "f-main") } else { ("l-high", "f-worst") };
    // Where both are equal the lower area hides the higher.
    let above = |column: &Column| if column.high > column.low { column.high } else { 0.0 };
    area(svg, high, &columns, above, (left, base), (lane.top, room));
    area(svg, low, &columns, |column| column.low, (left, base), (lane.top, room));
    holes(svg, &columns, left, (top + 2, room));
    svg.push_str("</g>");
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Column {
    low: f64,
    high: f64,
}

fn columns(steps: &[Step], across: usize) -> Vec<Option<Column>> {
    let mut found: Vec<Option<Column>> = vec![None; across];
    let place = |share: f64| (share.clamp(0.0, 1.0) * across as f64).floor() as usize;
    for step in steps.iter().filter(|step| step.until > 0.0 && step.from < 1.0) {
        let first = place(step.from).min(across.saturating_sub(1));
        // One shorter than a pixel is still visible.
        let last = (step.until.clamp(0.0, 1.0) * across as f64).ceil() as usize;
        for column in &mut found[first..last.clamp(first + 1, across)] {
            let (low, high) = (step.mean.min(step.most), step.mean.max(step.most));
            *column =
                Some(column.map_or(Column { low, high }, |known| Column {
                    low: known.low.min(low),
                    high: known.high.max(high),
                }));
        }
    }
    found
}

/// The area below the values of all pixels that have one.
fn area(
    svg: &mut String,
    class: &str,
    columns: &[Option<Column>],
    value: impl Fn(&Column) -> f64,
    (left, base): (usize, usize),
    (top, room): (f64, usize),
) {
    let height = |column: &Option<Column>| {
        let share = column.as_ref().map_or(0.0, |column| value(column) / top.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        // A small value is not rounded to nothing.
        let least = if share > 0.0 { 10 } else { 0 };
        ((share * room as f64 * 10.0).round() as usize).max(least)
    };
    let mut path = String::new();
    let mut at = 0;
    for run in columns.chunk_by(|a, b| height(a) == height(b)) {
        let (tenths, x) = (height(&run[0]), left + at);
        at += run.len();
        if tenths > 0 {
            let _ = write!(path, "M{x} {base}v-{}.{}h{}V{base}z", tenths / 10, tenths % 10, run.len());
        }
    }
    if !path.is_empty() {
        let _ = write!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }
}

fn holes(svg: &mut String, columns: &[Option<Column>], left: usize, (y, height): (usize, usize)) {
    let mut at = 0;
    for run in columns.chunk_by(|a, b| a.is_some() == b.is_some()) {
        if run[0].is_none() {
            let (x, width) = (left + at, run.len());
            let _ = write!(svg, "<rect class=\"t-hole\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>");
        }
        at += run.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(from: f64, until: f64, mean: f64) -> Step {
        Step { from, until, mean, most: mean }
    }

    #[test]
    fn a_spike_among_a_million_values_is_drawn_at_its_height() {
        let mut steps: Vec<Step> =
            (0..1_000_000).map(|n| step(f64::from(n) / 1e6, f64::from(n + 1) / 1e6, 1.0)).collect();
        steps[777_777].mean = 100.0;
        steps[777_777].most = 100.0;
        let columns = columns(&steps, 700);
        assert!(columns.iter().all(|column| column.is_some_and(|column| column.low == 1.0)));
        assert_eq!(columns.iter().flatten().filter(|column| column.high == 100.0).count(), 1);
        let lane =
            Lane { name: "a".into(), steps, top: 100.0, value: String::new(), tip: String::new(), is_rate: false };
        let svg = lanes("x", &[Group { heading: "p".into(), lanes: vec![lane] }], &[]);
        assert!(svg.len() < 3_000 && svg.contains("v-26.0h1V"), "{}", svg.len());
    }

    #[test]
    fn what_is_not_known_is_marked_and_not_zero() {
        let lane =
            |steps| Lane { name: "<b>".into(), steps, top: 1.0, value: "1".into(), tip: "<i>".into(), is_rate: true };
        let draw =
            |steps| lanes("\"", &[Group { heading: "<h>".into(), lanes: vec![lane(steps)] }], &[(0.5, "1 s".into())]);
        let half = draw(vec![step(0.0, 0.5, 1.0)]);
        assert_eq!(half.matches("t-hole").count(), 1, "{half}");
        let still = draw(vec![step(0.0, 1.0, 0.0)]);
        assert!(!still.contains("t-hole") && !still.contains("<path"), "{still}");
        assert!(!half.contains("<b>") && !half.contains("<i>") && !half.contains("<h>"), "{half}");
    }

    #[test]
    fn forged_values_draw_nothing_that_is_no_drawing() {
        let steps = vec![step(f64::NAN, 1.0, 1.0), step(0.2, 0.1, f64::INFINITY), step(-5.0, 9.0, f64::NAN)];
        assert_eq!(columns(&steps, 10).len(), 10);
        let lane = Lane { name: "a".into(), steps, top: 0.0, value: String::new(), tip: String::new(), is_rate: true };
        assert!(!lanes("x", &[Group { heading: "p".into(), lanes: vec![lane] }], &[]).contains("NaN"));
    }
}
