//! Flows beside other traffic of their own hosts: what they lost, by message size and by how many connections ran beside them.

use std::collections::BTreeMap;

use railgauge_stats::robust::median;
use railgauge_wire::unit::Bytes;

use super::{
    Block, Data, Figure,
    table::{Table, interval, number_column, text_column, told},
};
use crate::{
    analysis::{
        together::{Answer, Neighboured, neighboured_of},
        words::{count, number, size},
    },
    report::chart::{
        ChartError, Tip,
        layers::{Layer, Places, layers},
        theme::{LIMIT, MAIN, OUTER},
        ticks::{Axis, around, sizes},
    },
};

/// Flows told in sentences.
const TOLD: usize = 4;

/// Flows listed.
const LISTED: usize = 64;

/// Of one place on the horizontal axis: the losses of all flows there.
struct Point {
    at: f64,
    words: String,
    losses: Vec<f64>,
    /// The interval of the only flow; `None` where there are several.
    interval: Option<(f64, f64)>,
}

/// The flows beside other traffic of a test; `None` where it has none.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    if data.test.beside.is_none() {
        return Ok(None);
    }
    let mut all = neighboured_of(&data.results);
    if all.is_empty() {
        return Ok(None);
    }
    let figures = figures(&all)?;
    all.sort_by(|a, b| Answer::order((a.answer, a.loss_percent), (b.answer, b.loss_percent)));
    let of = |answer| all.iter().filter(|one| one.answer == answer).count();
    let sum = format!(
        "Of {} of a flow beside other traffic of its hosts {} lost something, {} nothing that stands out of the noise, and of {} it is \
         not known.",
        count(all.len(), "case"),
        of(Answer::Lost),
        of(Answer::NoLoss),
        of(Answer::Unknown)
    );
    let told = all.iter().take(TOLD).map(|one| format!("{}; {}.", one.words(), one.counted.words()));
    let sentence = std::iter::once(sum).chain(told).collect::<Vec<_>>().join(" ");
    let what = match data.test.beside.as_ref().and_then(|beside| beside.command.as_ref()) {
        Some(_) => {
            "Agents ran the command on the flow's hosts. What it moved is not known, and its bytes on the wire are not held against the \
             flow. It"
        }
        None => "The traffic is TCP between the interfaces of the NICs that the flow uses. It",
    };
    Ok(Some(Block {
        heading: "A flow beside other traffic of its hosts",
        sentence,
        figures,
        table: Some(table(&all[..all.len().min(LISTED)])),
        method: format!(
            "{what} began before the flow's window and ended after it, or the case has no value. The loss is that of each repeat \
             against the same flow alone shortly before, and the interval Student's of their mean, 95 % for all such cases of the test \
             together."
        ),
        ..Block::default()
    }))
}

/// The loss by message size for each number of connections, and by the number of connections for each size; only what has two places
/// at least.
fn figures(all: &[Neighboured]) -> Result<Vec<Figure>, ChartError> {
    let mut by_size: BTreeMap<(u32, u32), BTreeMap<Bytes, Vec<&Neighboured>>> = BTreeMap::new();
    let mut by_number: BTreeMap<(u32, Bytes), BTreeMap<u32, Vec<&Neighboured>>> = BTreeMap::new();
    for one in all {
        by_size.entry((one.qps, one.neighbours)).or_default().entry(one.size_bytes).or_default().push(one);
        by_number.entry((one.qps, one.size_bytes)).or_default().entry(one.neighbours).or_default().push(one);
    }
    let several = |numbers: Vec<u32>| numbers.windows(2).any(|two| two[0] != two[1]);
    let qps = several(all.iter().map(|one| one.qps).collect());
    let pairs = |qps_of: u32| if qps { format!(", {qps_of} queue pairs or streams") } else { String::new() };
    let mut figures = Vec::new();
    for ((of, number), places) in by_number {
        let points =
            places.iter().map(|(n, flows)| point(f64::from(*n).log2(), count(*n as usize, "connection"), flows));
        let x = numbers(places.keys().copied());
        let title = format!("Loss by the number of connections beside, {}{}", size(number), pairs(of));
        figures.extend(figure(title, &x, points.flatten().collect())?);
    }
    for ((of, number), places) in by_size {
        let points =
            places.iter().map(|(bytes, flows)| point(bytes.max(&Bytes(1)).as_f64().log2(), size(*bytes), flows));
        let x = sizes("message size".to_owned(), &places.keys().copied().collect::<Vec<_>>());
        let beside = if number == 0 { "a command".to_owned() } else { count(number as usize, "connection") };
        let title = format!("Loss by message size, beside {beside}{}", pairs(of));
        figures.extend(figure(title, &x, points.flatten().collect())?);
    }
    Ok(figures)
}

/// Numbers of connections, by their logarithms to base two.
fn numbers(all: impl Iterator<Item = u32>) -> Axis {
    let marks: Vec<(f64, String)> = all.map(|n| (f64::from(n).log2(), n.to_string())).collect();
    let ends = marks.first().zip(marks.last()).map_or((0.0, 1.0), |(first, last)| (first.0, last.0));
    Axis { title: "connections beside, each way".to_owned(), range: (ends.0 - 0.15, ends.1 + 0.15), marks }
}

fn point(at: f64, words: String, flows: &[&Neighboured]) -> Option<Point> {
    let losses: Vec<f64> = flows.iter().filter_map(|one| one.loss_percent).collect();
    let interval = if let [one] = flows { one.interval_percent } else { None };
    (!losses.is_empty()).then_some(Point { at, words, losses, interval })
}

fn figure(title: String, x: &Axis, points: Vec<Point>) -> Result<Option<Figure>, ChartError> {
    if points.len() < 2 {
        return Ok(None);
    }
    let ends = |point: &Point| {
        let low = point.losses.iter().copied().fold(f64::INFINITY, f64::min);
        let high = point.losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        point.interval.map_or((low, high), |(from, to)| (from.min(low), to.max(high)))
    };
    let middle = |point: &Point| median(&point.losses).unwrap_or_default();
    let low = points.iter().map(|point| ends(point).0).fold(0.0, f64::min);
    let high = points.iter().map(|point| ends(point).1).fold(1.0, f64::max);
    let y = around("loss, %".to_owned(), low, high);
    let line: Places = points.iter().map(|point| (point.at, middle(point))).collect();
    let area: Places = points
        .iter()
        .map(|point| (point.at, ends(point).1))
        .chain(points.iter().rev().map(|point| (point.at, ends(point).0)))
        .collect();
    let tip = |point: &Point| -> Tip {
        let (from, to) = ends(point);
        (
            point.at,
            middle(point),
            format!("{}: {} %, {} to {} %", point.words, number(middle(point)), number(from), number(to)),
        )
    };
    let tips: Vec<Tip> = points.iter().map(tip).collect();
    let most = points.iter().map(|point| point.losses.len()).max().unwrap_or_default();
    let zero = vec![(x.range.0, 0.0), (x.range.1, 0.0)];
    let drawn = vec![
        Layer::Area(OUTER, area),
        Layer::Dashes(LIMIT, zero),
        Layer::Line(MAIN, line.clone()),
        Layer::Dots(MAIN, line),
    ];
    let spread = if most > 1 { "least to most".to_owned() } else { "95 % interval".to_owned() };
    let legend = vec![
        ("k-main".to_owned(), format!("median of {}", count(most, "flow"))),
        ("k-outer".to_owned(), spread),
        ("k-limit".to_owned(), "as alone".to_owned()),
    ];
    let svg = layers(&title, [x, &y], &tips, drawn)?;
    Ok(Some(Figure { title, svg, legend }))
}

fn table(all: &[Neighboured]) -> Table {
    let row = |one: &Neighboured| {
        vec![
            one.flow.clone(),
            one.way(),
            size(one.size_bytes),
            one.qps.to_string(),
            told(one.alone_gbps),
            told(one.beside_gbps),
            told(one.neighbours_gbps),
            told(one.loss_percent),
            interval(one.interval_percent),
        ]
    };
    let columns = vec![
        text_column("flow"),
        text_column("beside"),
        number_column("size", ""),
        number_column("queue pairs", ""),
        number_column("alone", "Gb/s"),
        number_column("with them", "Gb/s"),
        number_column("they moved", "Gb/s"),
        number_column("loss", "%"),
        text_column("interval, %"),
    ];
    Table { rows: all.iter().map(row).collect(), columns }
}
