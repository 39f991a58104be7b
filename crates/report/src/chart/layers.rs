//! Charts of lines, areas and dots on two axes, with tooltips.

use std::ops::Range;

use plotters::{
    backend::SVGBackend,
    chart::{ChartBuilder, ChartContext},
    coord::{
        cartesian::Cartesian2d,
        ranged1d::{DefaultFormatting, KeyPointHint, Ranged},
    },
    drawing::IntoDrawingArea,
    element::{Circle, Polygon},
    series::{DashedLineSeries, LineSeries},
    style::{Color, IntoFont, TextStyle},
};

use super::{
    ChartError, escape,
    theme::{AXIS, INK, MESH, Role, classes},
    ticks::Axis,
};

/// SVG units per pixel of the page at full size. plotters rounds to whole units; four make lines smooth.
const SCALE: u32 = 4;

/// In the units of the axes.
pub(crate) type Places = Vec<(f64, f64)>;

pub(crate) enum Layer {
    Area(Role, Places),
    Line(Role, Places),
    Dashes(Role, Places),
    Dots(Role, Places),
    Specks(Role, Places),
}

/// Size of a chart on a desk, in pixels of the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub size: (u32, u32),
    /// For the marks of the upright axis.
    pub left: u32,
}

/// Width of a chart on a phone, in pixels of the page: a screen of 390 without its margins.
pub(super) const PHONE: usize = 362;
/// Height of a line of text.
const LINE: u32 = 18;

impl Room {
    pub(crate) const USUAL: Self = Self { size: (560, 300), left: 66 };
}

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

/// Axes below, then the layers, the first at the back, and `tips` on top: once for a desk and once for a phone, of which the style sheet
/// shows one. `label` is for screen readers.
///
/// # Errors
/// plotters fails.
pub(crate) fn layers(
    room: Room,
    label: &str,
    axes: [&Axis; 2],
    tips: &[Tip],
    layers: &[Layer],
) -> Result<String, ChartError> {
    let phone = Room { size: (PHONE as u32, room.size.1), ..room };
    Ok(one("desk", room, label, axes, tips, layers)? + &one("phone", phone, label, axes, tips, layers)?)
}

fn one(
    screen: &str,
    room: Room,
    label: &str,
    [x, y]: [&Axis; 2],
    tips: &[Tip],
    layers: &[Layer],
) -> Result<String, ChartError> {
    // Names that would take half of the width are above their rows.
    let is_above = 2 * room.left > room.size.0;
    let more = if is_above { LINE * y.marks.len() as u32 } else { 0 };
    let (width, height) = (room.size.0 * SCALE, (room.size.1 + more) * SCALE);
    // A digit of 13 pixels is about 8 wide, the title is left of the marks, and half of the last mark is beyond the axis.
    let longest = |axis: &Axis| axis.marks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0) as u32;
    let left = match (is_above, y.title.is_empty()) {
        (true, _) => 0,
        (_, true) => room.left,
        (..) => room.left.max(30 + 8 * longest(y)),
    };
    let right = 20 + 4 * longest(x).saturating_sub(1);
    let x = &Axis { marks: fitting(&x.marks, room.size.0.saturating_sub(left + right) as usize), ..x.clone() };
    let mut svg = String::new();
    let mut hovering = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin_top(10 * SCALE)
            .margin_right(right * SCALE)
            .x_label_area_size(46 * SCALE)
            .y_label_area_size(left * SCALE)
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
        layers.iter().try_for_each(|layer| draw(&mut chart, layer))?;
        for (place, name) in y.marks.iter().filter(|_| is_above) {
            let (name, top) = (escape(name), chart.backend_coord(&(0.0, *place)).1 - 7 * SCALE as i32);
            hovering +=
                &format!("<text class=\"f-ink\" x=\"0\" y=\"{top}\" font-size=\"{}\">{name}</text>", 13 * SCALE);
        }
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
        "<svg class=\"chart {screen}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{}{hovering}</svg>",
        classes(inside)
    ))
}

/// Marks of an axis this long that do not overlap: every second, third, …, counted from the last, which readers look for.
pub(super) fn fitting(marks: &[(f64, String)], across: usize) -> Vec<(f64, String)> {
    // A character of 13 pixels is about 6.5 wide.
    let longest = marks.iter().map(|(_, text)| text.chars().count() * 13 / 2 + 8).max().unwrap_or(1);
    let every = marks.len().div_ceil((across / longest).max(1)).max(1);
    let mut shown: Vec<(f64, String)> = marks.iter().rev().step_by(every).cloned().collect();
    shown.reverse();
    shown
}

fn draw(
    chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<Axis, Axis>>,
    layer: &Layer,
) -> Result<(), ChartError> {
    fn dots(role: Role, places: &Places, radius: u32) -> impl Iterator<Item = Circle<(f64, f64), u32>> {
        places.iter().map(move |place| Circle::new(*place, radius, role.filled()))
    }
    match layer {
        Layer::Area(role, places) => chart.draw_series([Polygon::new(places.clone(), role.filled())]).map(|_| ())?,
        Layer::Line(role, places) => {
            chart.draw_series(LineSeries::new(places.clone(), role.stroke_width(2 * SCALE))).map(|_| ())?;
        }
        Layer::Dashes(role, places) => {
            let dashes = DashedLineSeries::new(places.clone(), 6 * SCALE, 4 * SCALE, role.stroke_width(2 * SCALE));
            chart.draw_series(dashes).map(|_| ())?;
        }
        Layer::Specks(role, places) => chart.draw_series(dots(*role, places, 3 * SCALE / 2)).map(|_| ())?,
        Layer::Dots(role, places) => chart.draw_series(dots(*role, places, 3 * SCALE)).map(|_| ())?,
    }
    Ok(())
}

fn mark(axis: &Axis, place: f64) -> String {
    let nearest = axis.marks.iter().min_by(|a, b| (a.0 - place).abs().total_cmp(&(b.0 - place).abs()));
    nearest.map_or_else(String::new, |(_, text)| text.clone())
}

fn text() -> TextStyle<'static> {
    // plotters divides sizes by 1.24 for SVG.
    ("sans-serif", f64::from(13 * SCALE) * 1.24).into_font().color(&INK)
}
