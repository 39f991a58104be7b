//! One test: what it did and what came of it, size by size.

use railgauge_wire::terms::{Aim, Fabric, Metric, Op};
use serde::Serialize;

use super::sizes;
use crate::{
    analysis::{
        frame::Spread,
        journal::Journal,
        results::CaseResult,
        row::Row,
        words::{amount, count, number, size},
    },
    plan::model::{Pattern, Rails, Test},
    report::ReportError,
};

/// One test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestView {
    /// Name in the plan.
    pub name: String,
    /// Place on the page.
    pub anchor: String,
    /// What it measures, by the field's names.
    pub title: String,
    /// How it was measured, in a sentence.
    pub how: String,
    /// What was verified.
    pub verified: String,
    /// The metric that charts and summaries show.
    pub metric: Metric,
    /// Its unit.
    pub unit: String,
    /// Values by size.
    pub table: Table,
}

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
}

/// Every test of the plan.
pub(super) fn tests(
    journal: &Journal,
    results: &[CaseResult<'_>],
    _rows: &[Row],
    spreads: &[Spread],
) -> Result<Vec<TestView>, ReportError> {
    let view = |(place, test): (usize, &Test)| {
        let results: Vec<&CaseResult<'_>> = results.iter().filter(|result| result.case.test == test.name).collect();
        let spreads: Vec<&Spread> = spreads.iter().filter(|spread| spread.test == test.name).collect();
        let metric = headline(test);
        Ok(TestView {
            name: test.name.clone(),
            anchor: format!("test-{place}"),
            title: title(test),
            how: how(test),
            verified: verified(test, &results),
            metric,
            unit: metric.unit().to_owned(),
            table: table(test, &spreads),
        })
    };
    journal.plan.tests.iter().enumerate().map(view).collect()
}

/// The metric a test is looked at for.
pub(super) const fn headline(test: &Test) -> Metric {
    match (test.op.is_collective(), test.aim) {
        (_, Aim::Latency) => Metric::LatencyP50,
        (true, Aim::Bandwidth) => Metric::Busbw,
        (false, Aim::Bandwidth) => Metric::Bandwidth,
    }
}

fn title(test: &Test) -> String {
    let fabric = match test.fabric {
        Fabric::Verbs => "RDMA",
        Fabric::Tcp => "TCP",
        Fabric::Nccl => "NCCL",
    };
    let op = match test.op {
        Op::WriteImm => "write with immediate".to_owned(),
        Op::AtomicFadd => "atomic fetch-and-add".to_owned(),
        Op::AtomicCas => "atomic compare-and-swap".to_owned(),
        op => op.word().replace('_', "-"),
    };
    let both = if test.bidirectional { ", both directions at once" } else { "" };
    format!("{fabric} {op} {}{both}", test.aim)
}

fn how(test: &Test) -> String {
    let pattern = match &test.pattern {
        Pattern::Tournament => "every pair once".to_owned(),
        Pattern::Random(rounds) => count(*rounds as usize, "random round") + " of pairs",
        Pattern::Ring => "each host to the next, in a ring".to_owned(),
        Pattern::Neighbours => "neighbours in the host list".to_owned(),
        Pattern::OneToMany(host) => format!("{host} to every other host"),
        Pattern::ManyToOne(host) => format!("every other host to {host}"),
        Pattern::Between(a, b) => format!("every host of {a} with every host of {b}"),
        Pattern::Pairs(pairs) => count(pairs.len(), "given pair"),
    };
    let rails = match &test.rails {
        Rails::Aligned => "rail i with rail i".to_owned(),
        Rails::Crossed => "every rail with every rail".to_owned(),
        Rails::Only(rails) => format!("rails {}", rails.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    };
    let what = if test.fabric == Fabric::Tcp { "stream" } else { "queue pair" };
    let qps = match test.qps.as_slice() {
        [one] => count(*one as usize, what),
        many => format!("{} {what}s", many.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    };
    let half = match (test.aim, test.op.pulls() || test.op.is_atomic()) {
        (Aim::Latency, true) => "; full round trips",
        (Aim::Latency, false) => "; half round trips",
        (Aim::Bandwidth, _) => "",
    };
    let repeats = count(test.repeats as usize, "repeat");
    format!("{pattern}, {rails}, {qps}, {} memory, {}; {repeats}{half}", test.memory, sizes(&test.sizes))
}

fn verified(test: &Test, results: &[&CaseResult<'_>]) -> String {
    if !test.verify {
        return "The plan switches the verification of data off.".to_owned();
    }
    let (verified, wrong) = results
        .iter()
        .map(|result| result.checked())
        .fold((0, 0), |(v, w), (verified, wrong)| (v + verified, w + wrong));
    let cases = results.iter().filter(|result| result.checked().0 > 0).count();
    format!("{} compared in {}, {wrong} bytes wrong.", amount(verified), count(cases, "case"))
}

fn table(test: &Test, spreads: &[&Spread]) -> Table {
    let several = test.qps.len() > 1;
    let mut columns = vec![column("size", "")];
    if several {
        columns.push(column(if test.fabric == Fabric::Tcp { "streams" } else { "queue pairs" }, ""));
    }
    columns.push(column("links", ""));
    let shown: &[(Metric, usize, &str)] = match (test.op.is_collective(), test.aim) {
        (false, Aim::Bandwidth) => &[
            (Metric::Bandwidth, 0, "slowest link"),
            (Metric::Bandwidth, 1, "5 %"),
            (Metric::Bandwidth, 2, "median"),
            (Metric::Bandwidth, 4, "fastest"),
            (Metric::MessageRate, 2, "message rate"),
            (Metric::CpuTimePerGib, 2, "CPU time"),
        ],
        (true, Aim::Bandwidth) => {
            &[(Metric::Busbw, 0, "slowest"), (Metric::Busbw, 2, "median"), (Metric::Algbw, 2, "algbw")]
        }
        (_, Aim::Latency) => &[
            (Metric::LatencyMin, 2, "min"),
            (Metric::LatencyP50, 2, "p50"),
            (Metric::LatencyP99, 2, "p99"),
            (Metric::LatencyP999, 2, "p99.9"),
            (Metric::LatencyP50, 4, "p50, slowest link"),
            (Metric::LatencyP99, 4, "p99, slowest link"),
        ],
    };
    columns.extend(shown.iter().map(|(metric, _, name)| column(name, metric.unit())));
    let ceiling = spreads.iter().any(|spread| spread.ceiling.is_some());
    if ceiling {
        columns.push(column("of ceiling", "%"));
    }
    let metric = headline(test);
    let rows = spreads.iter().filter(|spread| spread.metric == metric).map(|head| {
        let find = |metric| {
            spreads.iter().find(|s| s.metric == metric && s.size_bytes == head.size_bytes && s.qps == head.qps)
        };
        let mut row = vec![size(head.size_bytes)];
        if several {
            row.push(head.qps.to_string());
        }
        let all = head.links == head.measured;
        row.push(if all { head.links.to_string() } else { format!("{} of {}", head.measured, head.links) });
        row.extend(shown.iter().map(|(metric, at, _)| {
            let quantiles = find(*metric).and_then(|spread| spread.quantiles);
            quantiles.map_or_else(|| "–".to_owned(), |quantiles| number(quantiles[*at]))
        }));
        if ceiling {
            let share = head.quantiles.zip(head.ceiling).map(|(q, (low, _))| format!("{:.1}", 100.0 * q[2] / low));
            row.push(share.unwrap_or_else(|| "–".to_owned()));
        }
        row
    });
    Table { rows: rows.collect(), columns }
}

fn column(name: &str, unit: &str) -> Column {
    Column { name: name.to_owned(), unit: unit.to_owned() }
}
