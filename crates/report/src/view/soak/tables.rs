use railgauge_analysis::{
    gpus,
    reason::frequency,
    soak::{LISTED, Soaking, families::Family},
    words::{count, lasting, moment, number, size},
};
use railgauge_wire::{GigabitsPerSecond, Nanoseconds};
use serde::Serialize;

use crate::view::section::Table;

fn rate(rate: Option<GigabitsPerSecond>) -> String {
    rate.map_or_else(|| "–".to_owned(), |rate| number(rate.0))
}

/// A table with the first of many rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed {
    pub table: Table,
    pub more: usize,
}

/// `heads` as for [`columns`].
pub(super) fn table<'s, T>(heads: &str, all: &'s [T], row: impl Fn(&'s T) -> Vec<String>) -> Listed {
    let table = Table::new(heads, all.iter().take(LISTED).map(row));
    Listed { more: all.len() - table.rows.len(), table }
}

/// Slowest first.
pub(super) fn flows(found: &Soaking) -> Listed {
    let heads = "flow | #measured | #windows | #slowest [Gb/s] | #median [Gb/s] | #fastest [Gb/s] | #stalls | #longest | \
                 #failed | #wrong";
    table(heads, &found.flows, |flow| {
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
    })
}

pub(super) fn families(found: &Soaking) -> Listed {
    table("counted | #ports | #total | #most | at | by | when", &found.families, |sum| {
        vec![
            sum.words.to_owned(),
            sum.ports.to_string(),
            sum.total.to_string(),
            frequency(sum.most_per_second),
            sum.port.to_string(),
            sum.counter.clone(),
            moment(sum.most_at),
        ]
    })
}

pub(super) fn counters(found: &Soaking) -> Listed {
    table("port | counter | counts | #total | #most | #limit | when", &found.counters, |one| {
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
    })
}

pub(super) fn gauges(found: &Soaking) -> Listed {
    table("reading | #ports | #lowest | at | #highest | at", &found.gauges, |gauge| {
        vec![
            gauge.name.clone(),
            gauge.ports.to_string(),
            number(gauge.low),
            gauge.low_port.to_string(),
            number(gauge.high),
            gauge.high_port.to_string(),
        ]
    })
}

pub(super) fn port_gauges(found: &Soaking) -> Listed {
    table("port | reading | #lowest | #highest", &found.port_gauges, |gauge| {
        vec![gauge.port.to_string(), gauge.name.clone(), number(gauge.low), number(gauge.high)]
    })
}

pub(super) fn coverage(found: &Soaking) -> Listed {
    let parts: Vec<_> = found.coverage.iter().filter(|port| port.percent < 100.0).collect();
    table("port | #watched [%] | #longest time between looks | why", &parts, |port| {
        let gap = |gap: Nanoseconds| if gap.is_zero() { "–".to_owned() } else { lasting(gap) };
        vec![
            port.port.to_string(),
            format!("{:.2}", (port.percent * 100.0).floor() / 100.0),
            gap(port.longest_gap),
            port.failure.clone().unwrap_or_default(),
        ]
    })
}

/// Those with errors first.
pub(super) fn gpus(found: &Soaking) -> Listed {
    table("GPU | #readings | clock | power | temperature | what was bad", &found.gpus, |gpu| {
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
    })
}
