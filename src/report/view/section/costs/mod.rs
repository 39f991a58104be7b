//! What the values of `[test.configure]` cost, as a table and as curves.

mod axis;

use std::collections::BTreeSet;

use railgauge_model::plan::count::capital as capitalised;
use railgauge_wire::{terms::Metric, unit::Bytes};

use super::{
    Block, Data, Figure, headline,
    table::{Table, interval, number_column, text_column, told},
};
use crate::{
    analysis::{
        costs::{Answer, ValueCost},
        words::{count, number, size},
    },
    report::chart::{
        ChartError, Tip,
        layers::{Layer, Places, layers},
        theme::{INK, LIMIT, MAIN, OUTER},
        ticks::{decades, from_zero},
    },
};

/// Costs told in sentences.
const TOLD: usize = 6;

/// Figures drawn.
const FIGURES: usize = 8;

/// Links up to which each has a line of its own.
const FEW: usize = 6;

/// Times that the largest must be of the smallest for an axis of times to be logarithmic.
const WIDE: f64 = 30.0;

/// The values of a test; `None` where it has none.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let all = &data.costs;
    let Some(first) = all.first() else { return Ok(None) };
    let head = headline(data.test);
    let judged: Vec<&ValueCost> =
        all.iter().copied().filter(|one| one.metric == head && one.answer != Answer::Reference).collect();
    let of = |answer| judged.iter().filter(|one| one.answer == answer).count();
    let gains = match of(Answer::Gains) {
        0 => String::new(),
        n => format!("{n} gain, "),
    };
    let sum = format!(
        "Of {} of a value against {}, {} cost {}, {gains}{} differ by no more than the noise, and of {} it is not known.",
        count(judged.len(), "comparison"),
        first.reference,
        of(Answer::Costs),
        head.word().replace('_', " "),
        of(Answer::NoDifference),
        of(Answer::Unknown)
    );
    let sentences = judged.iter().take(TOLD).map(|one| format!("{}.", one.words()));
    let (figures, left) = figures(data)?;
    let left = if left > 0 { format!(" {} not drawn.", count(left, "further figure")) } else { String::new() };
    Ok(Some(Block {
        heading: "What each value costs",
        sentence: std::iter::once(sum).chain(sentences).collect::<Vec<_>>().join(" "),
        figures,
        table: Some(table(all)),
        method: format!(
            "Every repeat measures all values, each two repeats in an order that the seed draws, once forwards and once backwards: an \
             even drift is in no cost. A cost is that of each repeat against the first value in the same repeat, the mean of all links; \
             the interval is Student's over the repeats, 95 % for all values, sizes and variants of the test together. Least and most \
             are those of the links, of a single link those of its repeats.{left}"
        ),
        ..Block::default()
    }))
}

fn table(all: &[&ValueCost]) -> Table {
    let several = all.iter().map(|one| &one.variant).collect::<BTreeSet<_>>().len() > 1;
    let mut columns = vec![text_column("metric"), number_column("size", "")];
    if several {
        columns.push(text_column("with"));
    }
    columns.extend([
        text_column("value"),
        number_column("links", ""),
        number_column("median", ""),
        text_column("unit"),
        text_column("least to most"),
        number_column("cost", "%"),
        text_column("interval, %"),
        text_column("told"),
        number_column("links with a cost", ""),
    ]);
    let row = |one: &&ValueCost| {
        let mut row = vec![one.metric.word().replace('_', " "), size(one.size_bytes)];
        if several {
            row.push(one.variant.clone());
        }
        let is_reference = one.answer == Answer::Reference;
        let costing = one.flows.iter().filter(|flow| flow.answer == Answer::Costs).count();
        row.extend([
            one.value.clone(),
            if one.links == one.of || is_reference {
                one.of.to_string()
            } else {
                format!("{} of {}", one.links, one.of)
            },
            told(one.median),
            one.unit.clone(),
            interval(one.range),
            told(one.cost_percent),
            interval(one.interval_percent),
            match one.answer {
                Answer::Reference => "the first".to_owned(),
                Answer::Costs => "a cost".to_owned(),
                Answer::Gains => "a gain".to_owned(),
                Answer::NoDifference => "within the noise".to_owned(),
                Answer::Unknown => format!("not known: {}", one.why_unknown),
            },
            if is_reference { "–".to_owned() } else { costing.to_string() },
        ]);
        row
    };
    Table { rows: all.iter().map(row).collect(), columns }
}

/// The values of one metric, size and variant.
type Series<'c> = ((Metric, Bytes, &'c str), Vec<&'c ValueCost>);

/// A figure for each metric, size and variant with two values at least, and how many are left out.
fn figures(data: &Data<'_>) -> Result<(Vec<Figure>, usize), ChartError> {
    let mut series: Vec<Series<'_>> = Vec::new();
    for one in &data.costs {
        let key = (one.metric, one.size_bytes, one.variant.as_str());
        match series.iter_mut().find(|(known, _)| *known == key) {
            Some((_, of)) => of.push(one),
            None => series.push((key, vec![*one])),
        }
    }
    let mut all = Vec::new();
    for (_, of) in &series {
        if all.len() == FIGURES {
            break;
        }
        all.extend(figure(of)?);
    }
    let drawable = series.iter().filter(|(_, of)| of.iter().filter(|one| one.median.is_some()).count() > 1).count();
    let left = drawable - all.len();
    Ok((all, left))
}

fn figure(series: &[&ValueCost]) -> Result<Option<Figure>, ChartError> {
    let Some(first) = series.first() else { return Ok(None) };
    let values: Vec<&str> = series.iter().map(|one| one.value.as_str()).collect();
    let (places, x) = axis::places(&values);
    let mut points: Vec<(f64, &ValueCost, f64, (f64, f64))> = places
        .iter()
        .zip(series)
        .filter_map(|(at, one)| {
            let middle = one.median?;
            Some((*at, *one, middle, one.range.unwrap_or((middle, middle))))
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    if points.len() < 2 {
        return Ok(None);
    }
    let metric = first.metric.word().replace('_', " ");
    let (low, high) = points
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), (.., (least, most))| (low.min(*least), high.max(*most)));
    let logarithmic = first.unit == "µs" && high > WIDE * low;
    let name = format!("{metric}, {}", first.unit);
    let y = if logarithmic { decades(name, low, high) } else { from_zero(name, high) };
    let up = |value: f64| if logarithmic { value.max(1e-9).log10() } else { value };
    let line: Places = points.iter().map(|(at, _, middle, _)| (*at, up(*middle))).collect();
    let area: Places = points
        .iter()
        .map(|(at, .., (_, most))| (*at, up(*most)))
        .chain(points.iter().rev().map(|(at, .., (least, _))| (*at, up(*least))))
        .collect();
    let tips: Vec<Tip> = points
        .iter()
        .map(|(at, one, middle, (least, most))| {
            let cost = one.cost_percent.map_or_else(String::new, |cost| format!("; cost {} %", number(cost)));
            let unit = &one.unit;
            let range = format!("{} to {}", number(*least), number(*most));
            (*at, up(*middle), format!("{}: {} {unit}, {range}{cost}", one.value, number(*middle)))
        })
        .collect();
    let links = series.iter().map(|one| one.of).max().unwrap_or_default();
    let mut drawn = vec![Layer::Area(OUTER, area)];
    if let Some(level) = first.median.filter(|_| first.answer == Answer::Reference) {
        drawn.push(Layer::Dashes(LIMIT, vec![(x.range.0, up(level)), (x.range.1, up(level))]));
    }
    let mut legend = vec![("k-main".to_owned(), format!("median of {}", count(links, "link")))];
    if (2..=FEW).contains(&links) {
        let flows: BTreeSet<&str> = series.iter().flat_map(|one| &one.flows).map(|flow| flow.flow.as_str()).collect();
        for flow in flows {
            let own = |one: &ValueCost| one.flows.iter().find(|known| known.flow == flow)?.median;
            let line = points.iter().filter_map(|(at, one, ..)| Some((*at, up(own(one)?)))).collect();
            drawn.push(Layer::Thin(INK, line));
        }
        legend.push(("k-speck".to_owned(), "every link".to_owned()));
    }
    let spread = if links > 1 { "least to most of the links" } else { "least to most of the repeats" };
    legend.push(("k-outer".to_owned(), spread.to_owned()));
    legend.push(("k-limit".to_owned(), format!("as at {}", first.reference)));
    drawn.extend([Layer::Line(MAIN, line.clone()), Layer::Dots(MAIN, line)]);
    let name = capitalised(&first.metric.title().replace('_', " "));
    let title = format!("{name} by value, {}", first.place());
    let svg = layers(&title, [&x, &y], &tips, drawn)?;
    Ok(Some(Figure { title, svg, legend }))
}
