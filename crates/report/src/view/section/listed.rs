//! Links, hosts and rails of a test in numbers, worst first.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_analysis::{
    outliers::Link,
    words::{change, spread},
};
use railgauge_stats::robust::median;
use railgauge_wire::{terms::Better, unit::Bytes};

use super::{
    Data, standing,
    table::{Table, number_column, text_column},
};

pub(super) const LISTED: usize = 10;
pub(super) const HOSTS: usize = 6;

pub(super) fn value_words(link: &Link<'_>, value: f64) -> String {
    spread(value, link.level.map(|level| level.centre * level.scale))
}

pub(super) fn by(link: &Link<'_>) -> String {
    match link.value.zip(link.level) {
        Some((value, level)) => format!(" ({})", change(100.0 * (value / level.centre - 1.0))),
        None => String::new(),
    }
}

pub(super) fn standing_out(data: &Data<'_>) -> Option<Table> {
    let unit = data.out.metric.unit();
    let cells = data.results.iter().map(|r| (data.variant(r), r.case.cell.size)).collect::<BTreeSet<_>>().len();
    let flows = data.out.flows();
    let row = |(link, times): &(&Link<'_>, usize)| {
        let (value, level) = link.value.zip(link.level)?;
        Some(vec![
            link.result.link_name(),
            data.cell_words((data.variant(link.result), link.cell.1)),
            value_words(link, value),
            value_words(link, level.centre),
            change(100.0 * (value / level.centre - 1.0)),
            format!("{times} of {cells}"),
            data.outliers.part_of(link).map_or_else(|| "–".to_owned(), standing),
        ])
    };
    let rows: Vec<Vec<String>> = flows.iter().filter_map(row).take(LISTED).collect();
    let columns = vec![
        text_column("link"),
        number_column("worst at", ""),
        number_column("value", unit),
        number_column("centre", unit),
        number_column("difference", ""),
        number_column("sizes", ""),
        text_column("belongs to"),
    ];
    (!rows.is_empty()).then_some(Table { columns, rows })
}

/// Hosts and NICs below the centre, by the median of their links, worst first.
pub(super) fn hosts(data: &Data<'_>) -> Option<Table> {
    let sign = if data.out.metric.better() == Better::Higher { 1.0 } else { -1.0 };
    let percent = |deviation: f64| change(100.0 * ((sign * deviation).exp() - 1.0));
    let ends = &data.out.ends;
    let rows = ends.iter().take(HOSTS).map(|end| {
        let [from, to] = end.ways.map(|way| way.map_or_else(|| "–".to_owned(), percent));
        let part = end.part.and_then(|at| data.outliers.parts.get(at)).map_or_else(|| "–".to_owned(), standing);
        let port = &end.port;
        vec![
            port.host.to_string(),
            port.rail.to_string(),
            end.links.to_string(),
            percent(end.deviation),
            from,
            to,
            part,
        ]
    });
    let columns = vec![
        text_column("host"),
        number_column("rail", ""),
        number_column("links", ""),
        number_column("median", ""),
        number_column("as initiator", ""),
        number_column("as responder", ""),
        text_column("named"),
    ];
    (!ends.is_empty()).then(|| Table { rows: rows.collect(), columns })
}

pub(super) fn by_rail(data: &Data<'_>, panels: &BTreeMap<u32, Vec<&Link<'_>>>, focus: (u32, Bytes)) -> Option<Table> {
    if panels.len() < 2 {
        return None;
    }
    let unit = data.out.metric.unit();
    let higher = data.out.metric.better() == Better::Higher;
    let rows = panels.iter().map(|(rail, links)| {
        let values: Vec<f64> = links.iter().filter_map(|link| link.value).collect();
        let end = |low: bool| values.iter().copied().reduce(if low { f64::min } else { f64::max });
        let deviation = links.iter().find_map(|link| link.level).map(|level| level.centre * level.scale);
        let text = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| spread(value, deviation));
        let measured = match values.len() {
            all if all == links.len() => all.to_string(),
            some => format!("{some} of {}", links.len()),
        };
        vec![rail.to_string(), measured, text(end(higher)), text(median(&values).ok()), text(end(!higher))]
    });
    let name = format!("median at {}", data.cell_words(focus));
    let columns = vec![
        number_column("rail", ""),
        number_column("links", ""),
        number_column("slowest link", unit),
        number_column(&name, unit),
        number_column("fastest link", unit),
    ];
    Some(Table { rows: rows.collect(), columns })
}
