use railgauge_analysis::{
    gpus,
    reason::frequency,
    soak::{LISTED, Soaking, families::Family},
    words::{count, lasting, moment, number, size},
};
use railgauge_wire::{GigabitsPerSecond, Nanoseconds};
use serde::Serialize;

use crate::view::section::{Column, Table, columns};

fn rate(rate: Option<GigabitsPerSecond>) -> String {
    rate.map_or_else(|| "–".to_owned(), |rate| number(rate.0))
}

fn table(columns: Vec<Column>, rows: Vec<Vec<String>>, all: usize) -> Listed {
    listed(Table { columns, rows }, all)
}

/// A table with the first of many rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed {
    pub table: Table,
    pub more: usize,
}

pub(super) fn listed(table: Table, all: usize) -> Listed {
    let more = all.saturating_sub(table.rows.len());
    Listed { table, more }
}

fn first<T>(all: &[T]) -> &[T] {
    &all[..all.len().min(LISTED)]
}

/// Slowest first.
pub(super) fn flows(found: &Soaking) -> Listed {
    let rows = first(&found.flows).iter().map(|flow| {
        vec![
            flow.flow.clone(),
            lasting(flow.measured),
            flow.windows.to_string(),
            rate(flow.slowest_gbps),
            rate(flow.median_gbps),
            rate(flow.fastest_gbps),
            flow.stalls.to_string(),
            if flow.longest_stall.is_zero() { "–".to_owned() } else { lasting(flow.longest_stall) },
            flow.failed.to_string(),
            size(flow.wrong),
        ]
    });
    let columns = columns(
        "flow | #measured | #windows | #slowest [Gb/s] | #median [Gb/s] | #fastest [Gb/s] | #stalls | \
         #longest | #failed | #wrong",
    );
    table(columns, rows.collect(), found.flows.len())
}

pub(super) fn families(found: &Soaking) -> Listed {
    let rows = found.families.iter().map(|sum| {
        vec![
            sum.words.to_owned(),
            sum.ports.to_string(),
            sum.total.to_string(),
            frequency(sum.most_per_second),
            sum.port.to_string(),
            sum.counter.clone(),
            moment(sum.most_at),
        ]
    });
    let columns = columns("counted | #ports | #total | #most | at | by | when");
    table(columns, rows.collect(), found.families.len())
}

pub(super) fn counters(found: &Soaking) -> Listed {
    let rows = first(&found.counters).iter().map(|one| {
        let limit = match one.limit_per_second {
            Some(limit) if one.is_over() => format!("over {}", frequency(limit)),
            Some(limit) => frequency(limit),
            None => String::new(),
        };
        vec![
            one.port.to_string(),
            one.counter.clone(),
            one.family.map_or("", Family::words).to_owned(),
            one.total.to_string(),
            frequency(one.most_per_second),
            limit,
            moment(one.most_at),
        ]
    });
    let columns = columns("port | counter | counts | #total | #most | #limit | when");
    table(columns, rows.collect(), found.counters.len())
}

pub(super) fn gauges(found: &Soaking) -> Listed {
    let rows = first(&found.gauges).iter().map(|gauge| {
        vec![
            gauge.name.clone(),
            gauge.ports.to_string(),
            number(gauge.low),
            gauge.low_port.to_string(),
            number(gauge.high),
            gauge.high_port.to_string(),
        ]
    });
    let columns = columns("reading | #ports | #lowest | at | #highest | at");
    table(columns, rows.collect(), found.gauges.len())
}

pub(super) fn port_gauges(found: &Soaking) -> Listed {
    let rows = first(&found.port_gauges)
        .iter()
        .map(|gauge| vec![gauge.port.to_string(), gauge.name.clone(), number(gauge.low), number(gauge.high)]);
    let columns = columns("port | reading | #lowest | #highest");
    table(columns, rows.collect(), found.port_gauges.len())
}

pub(super) fn coverage(found: &Soaking) -> Listed {
    let parts: Vec<_> = found.coverage.iter().filter(|port| port.percent < 100.0).collect();
    let rows = first(&parts).iter().map(|port| {
        let gap = |gap: Nanoseconds| if gap.is_zero() { "–".to_owned() } else { lasting(gap) };
        vec![
            port.port.to_string(),
            format!("{:.2}", (port.percent * 100.0).floor() / 100.0),
            gap(port.longest_gap),
            port.failure.clone().unwrap_or_default(),
        ]
    });
    let columns = columns("port | #watched [%] | #longest time between looks | why");
    table(columns, rows.collect(), parts.len())
}

/// Those with errors first.
pub(super) fn gpus(found: &Soaking) -> Listed {
    let rows = first(&found.gpus).iter().map(|gpu| {
        let bad: Vec<String> = gpu
            .bad
            .iter()
            .map(
                |(bad, parts)| {
                    if *parts > 1 { format!("{bad}, in {}", count(*parts, "part")) } else { bad.to_string() }
                },
            )
            .chain((gpu.unread > 0).then(|| {
                let why = gpu.failure.as_ref().map_or_else(String::new, |why| format!(": {why}"));
                format!("not read in {} of {} windows{why}", gpu.unread, gpu.windows)
            }))
            .chain(
                (gpu.without_xids > 0)
                    .then(|| format!("Xids not seen in {} of {} windows", gpu.without_xids, gpu.windows)),
            )
            .collect();
        vec![
            gpu.name(),
            gpu.readings.to_string(),
            gpus::range(gpu.sm_mhz, "MHz"),
            gpus::range(gpu.watts, "W"),
            gpus::range(gpu.celsius, "°C"),
            bad.join("; "),
        ]
    });
    let columns = columns("GPU | #readings | clock | power | temperature | what was bad");
    table(columns, rows.collect(), found.gpus.len())
}
