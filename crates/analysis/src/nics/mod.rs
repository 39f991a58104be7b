//! All NICs of a host at once against the sum of single ones: a test with `rails = "aligned"` and one with `rails = "each"` and otherwise
//! equal settings. Within hosts the same for GPUs, NUMA nodes and NICs, which shows what they share.

use std::collections::BTreeMap;

use railgauge_model::plan::{
    headline,
    model::{Rails, Test},
};
use railgauge_stats::robust::median;
use railgauge_wire::{
    terms::{TestMetric, Transport},
    unit::Bytes,
};
use serde::Serialize;

use super::{
    row::Row,
    settings,
    words::{count, lane, part_words, short, size},
};
use crate::case::CaseResult;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AllNics {
    pub together: String,
    pub each: String,
    pub size_bytes: Bytes,
    pub qps: u32,
    pub transport: Transport,
    pub rails: (usize, usize),
    pub pairs: usize,
    pub missing: usize,
    /// Median over the pairs: all rails together, in percent of the sum of single ones.
    pub percent: Option<f64>,
    /// The pair with the lowest percentage.
    pub least: Option<(String, f64)>,
}

type Place<'r> = (Bytes, u32, &'r str, &'r str);

/// By the rails of both ends; `None` if not trusted.
type Values<'r> = BTreeMap<Place<'r>, BTreeMap<(u32, u32), Option<f64>>>;

/// Every test of all rails, with the equal test of single rails, in the order of the plan.
pub fn nics(tests: &[Test], results: &[CaseResult<'_>], rows: &[Row]) -> Vec<AllNics> {
    let mut found = Vec::new();
    for each in tests.iter().filter(|test| test.rails == Rails::Each && test.metric == TestMetric::Bandwidth) {
        for together in tests.iter().filter(|test| test.rails == Rails::Aligned && is_like(test, each)) {
            let [all, single] = [together, each].map(|test| values(test, results, rows));
            found.extend(compared((together, &all), (each, &single)));
        }
    }
    found
}

/// Whether two tests only differ in how many rails they measure at once.
fn is_like(a: &Test, b: &Test) -> bool {
    let settings = |test: &Test| {
        let mut settings = settings::bearing(test);
        settings.retain(|key, _| key.split('.').next() != Some("rails"));
        settings
    };
    a.pattern == b.pattern && a.hosts == b.hosts && settings(a) == settings(b)
}

fn values<'r>(test: &Test, results: &'r [CaseResult<'r>], rows: &'r [Row]) -> Values<'r> {
    let of_test = |name: &str| name == test.name;
    let rates: BTreeMap<u64, f64> = rows
        .iter()
        .filter(|row| of_test(&row.test) && row.metric == headline(test.metric, test.op))
        .filter_map(|row| Some((row.case, row.value?)))
        .collect();
    let mut values = Values::new();
    for result in results.iter().filter(|result| of_test(&result.case.test) && result.case.cell.is_reference(test)) {
        let (case, flow) = (result.case, &result.case.flow);
        let trusted = result.state.is_trusted();
        let place = (case.cell.size, case.cell.qps, &*flow.from.host, &*flow.to.host);
        let value = rates.get(&case.id).copied().filter(|_| trusted);
        values.entry(place).or_default().insert((flow.from.rail, flow.to.rail), value);
    }
    values
}

fn compared((together, all): (&Test, &Values<'_>), (each, single): (&Test, &Values<'_>)) -> Vec<AllNics> {
    let mut cells: BTreeMap<(Bytes, u32), AllNics> = BTreeMap::new();
    let mut shares: BTreeMap<(Bytes, u32), Vec<f64>> = BTreeMap::new();
    for (place @ (size, qps, from, to), all) in all {
        // One rail has nothing to share with.
        if all.len() < 2 {
            continue;
        }
        let cell = cells.entry((*size, *qps)).or_insert_with(|| AllNics {
            together: together.name.clone(),
            each: each.name.clone(),
            size_bytes: *size,
            qps: *qps,
            transport: together.transport,
            rails: (usize::MAX, 0),
            pairs: 0,
            missing: 0,
            percent: None,
            least: None,
        });
        let sum = |values: &BTreeMap<(u32, u32), Option<f64>>| values.values().copied().sum::<Option<f64>>();
        let both = single.get(place).filter(|single| single.keys().eq(all.keys())).and_then(sum).zip(sum(all));
        let Some((single, all_sum)) = both.filter(|(single, _)| *single > 0.0) else {
            cell.missing += 1;
            continue;
        };
        let percent = 100.0 * all_sum / single;
        cell.pairs += 1;
        cell.rails = (cell.rails.0.min(all.len()), cell.rails.1.max(all.len()));
        if cell.least.as_ref().is_none_or(|(_, least)| percent < *least) {
            cell.least = Some((if from == to { (*from).to_owned() } else { format!("{from} → {to}") }, percent));
        }
        shares.entry((*size, *qps)).or_default().push(percent);
    }
    let finish = |(key, cell): ((Bytes, u32), AllNics)| AllNics {
        percent: shares.get(&key).and_then(|shares| median(shares).ok()),
        rails: if cell.pairs == 0 { (0, 0) } else { cell.rails },
        ..cell
    };
    cells.into_iter().map(finish).collect()
}

impl AllNics {
    pub fn words(&self) -> String {
        let Self { each, missing, pairs, transport, .. } = self;
        let (parts, place) = match part_words(*transport) {
            Some(part) => (format!("{part}s"), "host"),
            None => ("NICs".to_owned(), "pair"),
        };
        let qps = format!(", {}", count(self.qps as usize, lane(*transport)));
        let at = format!("at {}{}", size(self.size_bytes), if place == "pair" { &qps } else { "" });
        let (Some(percent), Some((pair, least))) = (self.percent, &self.least) else {
            return format!(
                "How all {parts} together compare with single ones is not known {at}: {each} has no like values."
            );
        };
        let (fewest, most) = self.rails;
        let rails = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
        let missing =
            if *missing > 0 { format!("; of {} a value is missing", count(*missing, place)) } else { String::new() };
        format!(
            "All {rails} {parts} together reach {} % of the sum of single ones in {each} {at}, the median of {}; the least is {} % \
             ({pair}){missing}.",
            short(percent),
            count(*pairs, place),
            short(*least)
        )
    }
}

#[cfg(test)]
mod tests;
