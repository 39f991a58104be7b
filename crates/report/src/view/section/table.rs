use railgauge_analysis::{
    percentile,
    words::{percent_of, size, spread, with_unit},
};
use railgauge_model::plan::model::Test;
use railgauge_wire::{Better, Metric, TestMetric};

use super::{
    block::{Data, Table, columns, headline, number_column, text_column},
    spreads::Spread,
};

pub(super) fn table(data: &Data<'_>) -> Table {
    let (test, spreads) = (data.test, &data.spreads);
    let several = data.own_variants().len() > 1;
    let mut columns = columns("#size");
    if several {
        columns.push(text_column("with"));
    }
    let group = test.op.is_collective();
    columns.push(number_column(
        if group {
            "groups"
        } else if test.transport.is_within_host() {
            "parts"
        } else if test.at_once() {
            "flows"
        } else {
            "links"
        },
        "",
    ));
    let metric = headline(test);
    let heads = || spreads.iter().filter(|spread| spread.metric == metric);
    let of_links =
        |at: usize, measured: u32| !matches!(at, 1 | 3) || percentile::carries_quantile(0.05, measured as usize);
    let shown: Vec<_> =
        shown(test).iter().filter(|(_, at, _)| heads().any(|head| of_links(*at, head.measured))).collect();
    // Rates of messages span so much that each has its own unit.
    let unit = |metric: &Metric| if *metric == Metric::MessageRate { "" } else { metric.unit() };
    columns.extend(shown.iter().map(|(metric, _, name)| number_column(name, unit(metric))));
    let ceiling = spreads.iter().any(|spread| spread.ceiling.is_some());
    if ceiling {
        columns.push(number_column(if test.at_once() { "all of ceiling" } else { "of ceiling" }, "%"));
    }
    let rows = heads().map(|head| {
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
            let carried = data.carried(*metric, (head.variant, head.size_bytes)) && of_links(*at, head.measured);
            let quantiles = find(*metric).and_then(|spread| spread.quantiles).filter(|_| carried);
            let value = |all: [f64; 5]| match unit(metric) {
                "" => with_unit(*metric, all[*at]),
                _ => spread(all[*at], scatter(&all)),
            };
            quantiles.map_or_else(|| "–".to_owned(), value)
        }));
        if ceiling {
            let whole = if test.at_once() { find(Metric::TotalBandwidth) } else { Some(head) };
            // Each link by its own: ceilings may differ.
            let share = whole.and_then(|spread| spread.share).map(|share| percent_of(share, 1.0));
            row.push(share.unwrap_or_else(|| "–".to_owned()));
        }
        row
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    for at in (0..columns.len()).rev().filter(|_| !rows.is_empty()).collect::<Vec<_>>() {
        if rows.iter().all(|row| row[at] == "–") {
            columns.remove(at);
            rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
    }
    Table { rows, columns }
}

/// For each size and setting: its name, its cases, and the worst, median and best value of the test's metric with its unit.
pub(super) fn brief(data: &Data<'_>) -> Vec<Vec<String>> {
    let metric = headline(data.test);
    let several = data.own_variants().len() > 1;
    let heads = data.spreads.iter().filter(|spread| spread.metric == metric);
    let row = |head: &&Spread| {
        let name = if several { data.cell_words((head.variant, head.size_bytes)) } else { size(head.size_bytes) };
        let cases = match head.links == head.measured {
            true => head.links.to_string(),
            false => format!("{} of {}", head.measured, head.links),
        };
        let value = |at: usize| head.quantiles.map_or_else(|| "–".to_owned(), |all| spread(all[at], scatter(&all)));
        let order = if metric.better() == Better::Higher { [0, 2, 4] } else { [4, 2, 0] };
        [vec![name, cases], order.map(value).to_vec(), vec![metric.unit().to_owned()]].concat()
    };
    heads.map(row).collect()
}

fn shown(test: &Test) -> &'static [(Metric, usize, &'static str)] {
    match (test.op.is_collective(), test.metric) {
        (_, TestMetric::Compute) => &[
            (Metric::Compute, 0, "slowest"),
            (Metric::Compute, 1, "p5"),
            (Metric::Compute, 2, "median"),
            (Metric::Compute, 4, "fastest"),
        ],
        (_, TestMetric::Latency) if test.transport.is_within_host() => &[
            (Metric::MemoryLatency, 0, "fastest"),
            (Metric::MemoryLatency, 2, "median"),
            (Metric::MemoryLatency, 3, "p95"),
            (Metric::MemoryLatency, 4, "slowest"),
        ],
        _ if test.transport.is_within_host() => &[
            (Metric::MemoryBandwidth, 0, "slowest"),
            (Metric::MemoryBandwidth, 1, "p5"),
            (Metric::MemoryBandwidth, 2, "median"),
            (Metric::MemoryBandwidth, 4, "fastest"),
        ],
        (false, TestMetric::Bandwidth) if test.at_once() => &[
            (Metric::TotalBandwidth, 2, "all flows"),
            (Metric::IngressBandwidth, 0, "into a NIC, least"),
            (Metric::EgressBandwidth, 0, "out of a NIC, least"),
            (Metric::Bandwidth, 0, "slowest flow"),
            (Metric::Bandwidth, 2, "median flow"),
            (Metric::Bandwidth, 4, "fastest flow"),
        ],
        (false, TestMetric::Bandwidth) => &[
            (Metric::Bandwidth, 0, "slowest link"),
            (Metric::Bandwidth, 1, "p5"),
            (Metric::Bandwidth, 2, "median"),
            (Metric::Bandwidth, 4, "fastest"),
            (Metric::MessageRate, 2, "message rate"),
            (Metric::CpuTimePerGib, 2, "CPU time"),
        ],
        (true, TestMetric::Bandwidth) => &[
            (Metric::Busbw, 0, "busbw, slowest"),
            (Metric::Busbw, 2, "busbw, median"),
            (Metric::Busbw, 4, "busbw, fastest"),
            (Metric::Algbw, 2, "algbw"),
        ],
        (_, TestMetric::Step) => &[
            (Metric::StepTime, 2, "step"),
            (Metric::StepTime, 4, "step, slowest"),
            (Metric::StepExposed, 2, "not hidden"),
            (Metric::StepAlone, 2, "buckets alone"),
            (Metric::Algbw, 2, "algbw"),
        ],
        (_, TestMetric::Latency) => &[
            (Metric::LatencyMin, 2, "min"),
            (Metric::LatencyP50, 2, "p50"),
            (Metric::LatencyP99, 2, "p99"),
            (Metric::LatencyP999, 2, "p99.9"),
            (Metric::LatencyP50, 4, "p50, slowest"),
            (Metric::LatencyP99, 4, "p99, slowest"),
        ],
    }
}

/// From the 5th and the 95th percentile of a normal distribution; `None` if all are equal.
fn scatter(quantiles: &[f64; 5]) -> Option<f64> {
    Some((quantiles[3] - quantiles[1]) / 3.29).filter(|scatter| *scatter > 0.0)
}

/// Which percentiles are left out, and why.
pub(super) fn remarks(data: &Data<'_>) -> Vec<String> {
    let metrics = shown(data.test).iter().map(|(metric, ..)| *metric);
    let mut metrics: Vec<Metric> = metrics.filter(|metric| percentile::needed(*metric) > 1).collect();
    metrics.dedup();
    let cells = || data.spreads.iter().map(|spread| (spread.variant, spread.size_bytes));
    let left_out = |metric: &Metric| cells().any(|cell| !data.carried(*metric, cell));
    let remark = |metric: Metric| {
        let needed = percentile::needed(metric);
        format!("{metric} needs {needed} operations in a window")
    };
    let mut left: Vec<Metric> = metrics.into_iter().filter(left_out).collect();
    left.sort_unstable();
    left.dedup();
    left.into_iter().map(remark).collect()
}
