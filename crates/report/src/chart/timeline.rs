//! Events over time: a line for each place, bands for times, on one axis.
//!
//! Not plotters: bands on the same pixels are one, so that days with thousands of events stay small.

use std::fmt::Write;

use super::{
    escape,
    layers::{PHONE, fitting},
};
use crate::text::cut;

/// Height of the bands of a place, in pixels of the page.
const LINE: usize = 18;
/// Most letters of a name; one of 11 pixels is about 6.5 wide.
const NAME: usize = 46;
/// Least width of a band, so that a short event is visible.
const LEAST: usize = 2;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Band {
    pub from: f64,
    pub until: f64,
    pub class: &'static str,
    pub tip: String,
}

/// A place and its bands, in order of time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub name: String,
    pub bands: Vec<Band>,
}

/// Renders the lines below each other, once for a desk and once for a phone; `behind` are bands over all of them, `marks` positions and
/// texts of the axis. `label` is for screen readers.
pub(crate) fn timeline(label: &str, lines: &[Line], behind: &[Band], marks: &[(f64, String)]) -> String {
    let longest = lines.iter().map(|line| line.name.chars().count().min(NAME)).max().unwrap_or(0);
    let (screens, label) = ([("desk", 1120, longest * 13 / 2 + 14), ("phone", PHONE, 0)], escape(label));
    let mut svg = String::new();
    for (screen, width, left) in screens {
        // Names are to the left of their bands, or above them.
        let above = if left == 0 { LINE - 2 } else { 0 };
        let (step, across) = (LINE + above, width - left - 16);
        let bottom = lines.len() * step;
        let height = bottom + 24;
        let _ = write!(
            svg,
            "<svg class=\"timeline {screen}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\"><rect class=\"m-none\" x=\"{left}\" y=\"0\" width=\"{across}\" height=\"{bottom}\"/>"
        );
        for band in on_pixels(behind, across) {
            rect(&mut svg, &band, left, (0, bottom));
        }
        for (share, text) in fitting(marks, across) {
            let x = left + (share.clamp(0.0, 1.0) * across as f64) as usize;
            let (text, end, y) = (escape(&text), bottom + 4, bottom + 17);
            let anchor = if x == 0 { "start" } else { "middle" };
            let _ = write!(
                svg,
                "<line class=\"s-mesh\" x1=\"{x}\" y1=\"0\" x2=\"{x}\" y2=\"{end}\"/><text class=\"f-ink\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
            );
        }
        for (line, top) in lines.iter().zip((0..).step_by(step)) {
            let (x, anchor) = if left == 0 { (0, "start") } else { (left - 6, "end") };
            let (short, full, y) = (escape(&cut(&line.name, NAME)), escape(&line.name), top + LINE / 2 + 4);
            let _ = write!(
                svg,
                "<text class=\"f-ink\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{short}<title>{full}</title></text>"
            );
            for band in on_pixels(&line.bands, across) {
                rect(&mut svg, &band, left, (top + above + 2, LINE - 4));
            }
        }
        svg += "</svg>";
    }
    svg
}

struct Pixels<'b> {
    from: usize,
    until: usize,
    first: &'b Band,
    more: usize,
}

fn on_pixels(bands: &[Band], across: usize) -> Vec<Pixels<'_>> {
    let mut found: Vec<Pixels<'_>> = Vec::new();
    let place = |share: f64| (share.clamp(0.0, 1.0) * across as f64).round() as usize;
    for first in bands {
        let from = place(first.from).min(across.saturating_sub(LEAST));
        let until = place(first.until).max(from + LEAST);
        // A band of another kind lies above: the hidden one is visible next to it.
        match found.iter_mut().rev().find(|last| last.first.class == first.class).filter(|last| from <= last.until) {
            Some(last) => (last.until, last.more) = (last.until.max(until), last.more + 1),
            None => found.push(Pixels { from, until, first, more: 0 }),
        }
    }
    found
}

fn rect(svg: &mut String, band: &Pixels<'_>, left: usize, (y, height): (usize, usize)) {
    let Pixels { from, until, first, more } = band;
    let (x, width) = (left + from, until - from);
    let tip = match more {
        0 => escape(&first.tip),
        more => format!("{} and {more} more", escape(&first.tip)),
    };
    let _ = write!(
        svg,
        "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"><title>{tip}</title></rect>",
        first.class
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band(from: f64, until: f64, class: &'static str) -> Band {
        Band { from, until, class, tip: "<a>".into() }
    }

    #[test]
    fn thousands_of_events_are_as_many_bands_as_there_are_pixels() {
        let bands = (0..100_000).map(|n| band(f64::from(n) / 1e5, f64::from(n) / 1e5, "t-down")).collect();
        let svg = timeline("x", &[Line { name: "a".into(), bands }], &[], &[]);
        assert!(svg.len() < 4_000 && svg.matches("class=\"t-down\"").count() == 2, "{}", svg.len());
    }

    #[test]
    fn a_short_event_is_seen_and_words_are_escaped() {
        let line = Line { name: "<b>".into(), bands: vec![band(0.5, 0.5, "t-down"), band(1.0, 1.0, "t-stall")] };
        let svg = timeline("\"", &[line], &[band(0.0, 0.1, "t-hole")], &[(0.0, "0".into())]);
        assert_eq!(svg.matches("width=\"2\"").count(), 4, "{svg}");
        assert!(!svg.contains("<b>") && !svg.contains("<a>") && svg.contains("t-hole"), "{svg}");
    }
}
