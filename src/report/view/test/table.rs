//! Values of a test by size.

use railgauge_wire::terms::{Aim, Metric};
use serde::Serialize;

use super::{Data, headline};
use crate::analysis::words::{number, size};

/// A table of texts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// The columns.
    pub columns: Vec<Column>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

/// A column's head.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// What is in it.
    pub name: String,
    /// Its unit; empty for none.
    pub unit: String,
    /// Whether it holds numbers, which are aligned on the right.
    pub number: bool,
}

/// A column of numbers.
pub(in crate::report) fn number_column(name: &str, unit: &str) -> Column {
    Column { name: name.to_owned(), unit: unit.to_owned(), number: true }
}

/// A column of texts.
pub(in crate::report) fn text_column(name: &str) -> Column {
    Column { name: name.to_owned(), unit: String::new(), number: false }
}

/// Values over the links, size by size.
pub(super) fn table(data: &Data<'_>) -> Table {
    let (test, spreads) = (data.test, &data.spreads);
    let several = data.own_variants().len() > 1;
    let mut columns = vec![number_column("size", "")];
    if several {
        columns.push(text_column("with"));
    }
    let group = test.op.is_collective();
    columns.push(number_column(
        if group {
            "groups"
        } else if test.at_once() {
            "flows"
        } else {
            "links"
        },
        "",
    ));
    let shown: &[(Metric, usize, &str)] = match (test.op.is_collective(), test.aim) {
        (false, Aim::Bandwidth) if test.at_once() => &[
            (Metric::TotalBandwidth, 2, "all flows"),
            (Metric::IngressBandwidth, 0, "into a NIC, least"),
            (Metric::EgressBandwidth, 0, "out of a NIC, least"),
            (Metric::Bandwidth, 0, "slowest flow"),
            (Metric::Bandwidth, 2, "median flow"),
            (Metric::Bandwidth, 4, "fastest flow"),
        ],
        (false, Aim::Bandwidth) => &[
            (Metric::Bandwidth, 0, "slowest link"),
            (Metric::Bandwidth, 1, "p5"),
            (Metric::Bandwidth, 2, "median"),
            (Metric::Bandwidth, 4, "fastest"),
            (Metric::MessageRate, 2, "message rate"),
            (Metric::CpuTimePerGib, 2, "CPU time"),
        ],
        (true, Aim::Bandwidth) => {
            &[(Metric::Busbw, 0, "busbw, slowest"), (Metric::Busbw, 2, "busbw, median"), (Metric::Algbw, 2, "algbw")]
        }
        (_, Aim::Step) => &[
            (Metric::StepTime, 2, "step"),
            (Metric::StepTime, 4, "step, slowest"),
            (Metric::StepExposed, 2, "not hidden"),
            (Metric::StepAlone, 2, "buckets alone"),
            (Metric::Algbw, 2, "algbw"),
        ],
        (_, Aim::Latency) => &[
            (Metric::LatencyMin, 2, "min"),
            (Metric::LatencyP50, 2, "p50"),
            (Metric::LatencyP99, 2, "p99"),
            (Metric::LatencyP999, 2, "p99.9"),
            (Metric::LatencyP50, 4, "p50, slowest"),
            (Metric::LatencyP99, 4, "p99, slowest"),
        ],
    };
    columns.extend(shown.iter().map(|(metric, _, name)| number_column(name, metric.unit())));
    let ceiling = spreads.iter().any(|spread| spread.ceiling.is_some());
    if ceiling {
        columns.push(number_column(if test.at_once() { "all of ceiling" } else { "of ceiling" }, "%"));
    }
    let metric = headline(test);
    let rows = spreads.iter().filter(|spread| spread.metric == metric).map(|head| {
        let find = |metric| {
            spreads.iter().find(|s| s.metric == metric && s.size_bytes == head.size_bytes && s.variant == head.variant)
        };
        let mut row = vec![size(head.size_bytes)];
        if several {
            row.push(data.variant_words(head.variant).to_owned());
        }
        let all = head.links == head.measured;
        row.push(if all { head.links.to_string() } else { format!("{} of {}", head.measured, head.links) });
        row.extend(shown.iter().map(|(metric, at, _)| {
            let quantiles = find(*metric).and_then(|spread| spread.quantiles);
            quantiles.map_or_else(|| "–".to_owned(), |quantiles| number(quantiles[*at]))
        }));
        if ceiling {
            let whole = if test.at_once() { find(Metric::TotalBandwidth) } else { Some(head) };
            let share = whole
                .and_then(|spread| spread.quantiles.zip(spread.ceiling))
                .map(|(q, (low, _))| format!("{:.1}", 100.0 * q[2] / low));
            row.push(share.unwrap_or_else(|| "–".to_owned()));
        }
        row
    });
    Table { rows: rows.collect(), columns }
}
