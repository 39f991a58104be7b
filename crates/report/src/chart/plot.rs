//! The frame of all plotters charts: axes, mesh, text, and tooltips.

use std::ops::Range;

use plotters::{
    backend::SVGBackend,
    chart::{ChartBuilder, ChartContext},
    coord::{
        cartesian::Cartesian2d,
        ranged1d::{DefaultFormatting, KeyPointHint, Ranged},
    },
    drawing::IntoDrawingArea,
    style::{Color, IntoFont, TextStyle},
};

use super::{
    ChartError,
    theme::{AXIS, INK, MESH, classes},
    ticks::Axis,
};

/// SVG units per pixel of the page at full size. plotters rounds to whole units; four make lines smooth.
pub(super) const SCALE: u32 = 4;

pub(super) fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

/// Space on the left for a name with this many characters. A character of 11 pixels is about 6.5 wide.
pub(super) const fn margin(longest: usize) -> usize {
    longest * 13 / 2 + 14
}

/// Size of a chart, in pixels of the page at full size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub size: (u32, u32),
    pub left: u32,
}

impl Room {
    pub(super) const USUAL: Self = Self { size: (560, 300), left: 66 };
}

pub(super) type Context<'c, 'b> = ChartContext<'c, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// Limit for points outside of a chart, in sizes of the chart: they are invisible, and stay within the range of pixel numbers.
const OUTSIDE: f64 = 2.0;

/// Our marks are plotters' key points, the only ones that it renders.
impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.range.0) / (self.range.1 - self.range.0);
        let share = share.clamp(-OUTSIDE, 1.0 + OUTSIDE);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.iter().map(|(place, _)| *place).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.0..self.range.1
    }
}

pub(crate) type Tip = (f64, f64, String);

/// Renders axes, then `body`, then `tips`. `label` is for screen readers.
///
/// # Errors
/// plotters fails.
pub(super) fn plot(
    label: &str,
    x: &Axis,
    y: &Axis,
    tips: &[Tip],
    body: impl FnOnce(&mut Context<'_, '_>) -> Result<(), ChartError>,
) -> Result<String, ChartError> {
    plot_in(Room::USUAL, label, [x, y], tips, body)
}

/// [`plot`] with another size.
///
/// # Errors
/// plotters fails.
pub(super) fn plot_in(
    room: Room,
    label: &str,
    [x, y]: [&Axis; 2],
    tips: &[Tip],
    body: impl FnOnce(&mut Context<'_, '_>) -> Result<(), ChartError>,
) -> Result<String, ChartError> {
    let (width, height) = (room.size.0 * SCALE, room.size.1 * SCALE);
    let mut svg = String::new();
    let mut hovering = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin_top(10 * SCALE)
            .margin_right(24 * SCALE)
            .x_label_area_size(46 * SCALE)
            .y_label_area_size(room.left * SCALE)
            .build_cartesian_2d(x.clone(), y.clone())?;
        let (across, up) = (|place: &f64| mark(x, *place), |place: &f64| mark(y, *place));
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh()
            .bold_line_style(MESH.stroke_width(SCALE))
            .light_line_style(MESH.mix(0.0))
            .axis_style(AXIS.stroke_width(SCALE))
            .label_style(text())
            .axis_desc_style(text())
            .x_label_formatter(&across)
            .y_label_formatter(&up)
            .x_desc(&x.title)
            .y_desc(&y.title)
            .set_all_tick_mark_size(4 * SCALE);
        mesh.draw()?;
        body(&mut chart)?;
        for (x, y, text) in tips {
            let (left, top) = chart.backend_coord(&(*x, *y));
            let text = escape(text);
            hovering += &format!(
                "<circle class=\"tip\" cx=\"{left}\" cy=\"{top}\" r=\"{}\"><title>{text}</title></circle>",
                9 * SCALE
            );
        }
        area.present()?;
    }
    let inside = svg.find('>').and_then(|head| Some(&svg[head + 1..svg.rfind("</svg>")?]));
    let inside = inside.ok_or(ChartError::NoSvg)?;
    let label = escape(label);
    Ok(format!(
        "<svg class=\"chart\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{}{hovering}</svg>",
        classes(inside)
    ))
}

fn mark(axis: &Axis, place: f64) -> String {
    let nearest = axis.marks.iter().min_by(|a, b| (a.0 - place).abs().total_cmp(&(b.0 - place).abs()));
    nearest.map_or_else(String::new, |(_, text)| text.clone())
}

fn text() -> TextStyle<'static> {
    // plotters divides sizes by 1.24 for SVG.
    ("sans-serif", f64::from(13 * SCALE) * 1.24).into_font().color(&INK)
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
