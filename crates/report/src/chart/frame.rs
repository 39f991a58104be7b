//! What the drawings of our own share: texts, and the axis of time.

use std::fmt::Write;

fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

/// Space on the left for a name with this many characters. A character of 11 pixels is about 6.5 wide.
pub(super) const fn margin(longest: usize) -> usize {
    longest * 13 / 2 + 14
}

/// Lines across a drawing with their texts below it. `marks` are positions, as shares of the axis, and texts.
pub(super) fn marks(
    svg: &mut String,
    marks: &[(f64, String)],
    (left, across): (usize, usize),
    (top, bottom): (usize, usize),
) {
    for (share, text) in marks {
        let x = left + (share.clamp(0.0, 1.0) * across as f64) as usize;
        let (text, y) = (escape(text), bottom + 17);
        let _ = write!(
            svg,
            "<line class=\"s-mesh\" x1=\"{x}\" y1=\"{top}\" x2=\"{x}\" y2=\"{}\"/><text class=\"f-ink\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>",
            bottom + 4
        );
    }
}

/// The name of a row, to the left of `x`.
pub(super) fn name(svg: &mut String, name: &str, most: usize, (x, y): (usize, usize)) {
    let (short, full) = (escape(&shortened(name, most)), escape(name));
    let _ = write!(
        svg,
        "<text class=\"f-ink\" x=\"{}\" y=\"{y}\" text-anchor=\"end\">{short}<title>{full}</title></text>",
        x - 6
    );
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
