//! Charts of lines and areas for the blocks of a test.

use plotters::{
    element::{Circle, Polygon},
    series::{DashedLineSeries, LineSeries},
    style::Color,
};

use super::{
    ChartError,
    plot::{SCALE, Tip, plot},
    theme::Role,
    ticks::Axis,
};

/// In the units of the axes.
pub(crate) type Places = Vec<(f64, f64)>;

pub(crate) enum Layer {
    Area(Role, Places),
    Line(Role, Places),
    Dashes(Role, Places),
    Dots(Role, Places),
    Specks(Role, Places),
}

/// The first layer at the back, axes below and `tips` on top. `label` is for screen readers.
///
/// # Errors
/// plotters fails.
pub(crate) fn layers(label: &str, [x, y]: [&Axis; 2], tips: &[Tip], layers: Vec<Layer>) -> Result<String, ChartError> {
    plot(label, x, y, tips, |chart| {
        for layer in layers {
            match layer {
                Layer::Area(role, places) => chart.draw_series([Polygon::new(places, role.filled())]).map(|_| ()),
                Layer::Line(role, places) => {
                    chart.draw_series(LineSeries::new(places, role.stroke_width(2 * SCALE))).map(|_| ())
                }
                Layer::Dashes(role, places) => {
                    let dashes = DashedLineSeries::new(places, 6 * SCALE, 4 * SCALE, role.stroke_width(2 * SCALE));
                    chart.draw_series(dashes).map(|_| ())
                }
                Layer::Specks(role, places) => {
                    let dots = places.into_iter().map(|place| Circle::new(place, 3 * SCALE / 2, role.filled()));
                    chart.draw_series(dots).map(|_| ())
                }
                Layer::Dots(role, places) => {
                    let dots = places.into_iter().map(|place| Circle::new(place, 3 * SCALE, role.filled()));
                    chart.draw_series(dots).map(|_| ())
                }
            }?;
        }
        Ok(())
    })
}
