//! Links that stand out, in numbers, worst first.

use std::collections::BTreeSet;

use railgauge_analysis::{
    outliers::Link,
    words::{change, spread},
};

use super::block::{Data, Table, standing};

pub(super) const LISTED: usize = 10;

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
    let heads = format!("link | #worst at | #value [{unit}] | #centre [{unit}] | #difference | #sizes | belongs to");
    Table::new(&heads, flows.iter().filter_map(row).take(LISTED)).filled()
}
