//! Which results a finding of the preflight probably explains: those of its hosts and devices, where they are worse than
//! the same measurement elsewhere. It says what coincides; whether one is the cause of the other is for the reader.

use std::collections::BTreeMap;

use railgauge_stats::robust::median;
use railgauge_wire::terms::{Better, Metric};

use super::{
    row::{Phase, Row},
    words::{number, percent},
};
use crate::{
    plan::{Plan, hostlist},
    preflight::{CHECKS, Finding, Severity, Spoils},
};

/// Metrics that are told of; those beside them follow.
const TOLD: [Metric; 3] = [Metric::Bandwidth, Metric::Busbw, Metric::LatencyP50];

/// Smallest loss that is told, in percent, where the plan does not look for larger ones only.
const LEAST_PERCENT: f64 = 2.0;

/// What a finding probably explains, a sentence for each test; empty if nothing, or if there is nobody to compare with.
pub fn explained(finding: &Finding, plan: &Plan, rows: &[Row]) -> Vec<String> {
    let Some(check) = CHECKS.iter().find(|check| check.name == finding.check) else { return Vec::new() };
    let told = rows.iter().filter(|row| row.phase == Phase::Test && TOLD.contains(&row.metric));
    let mut tests: BTreeMap<(&str, Metric), Vec<&Row>> = BTreeMap::new();
    for row in told {
        tests.entry((&row.test, row.metric)).or_default().push(row);
    }
    let least = plan.localise.least_percent.max(LEAST_PERCENT);
    let sentences = plan.tests.iter().flat_map(|test| {
        TOLD.iter().filter_map(|metric| {
            let rows = tests.get(&(test.name.as_str(), *metric))?;
            let (here, elsewhere): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| touches(finding, row));
            let spoilt = here.iter().all(|row| spoils(check.spoils, row));
            let slower = spoilt.then(|| slower(*metric, &here, &elsewhere, least)).flatten();
            // What only slows things down leaves no case without a value.
            let fatal = finding.severity == Severity::Failure;
            let parts =
                [slower, fatal.then(|| missing(&here, &elsewhere)).flatten()].into_iter().flatten().collect::<Vec<_>>();
            let place = hostlist::fold(finding.hosts.iter().map(String::as_str));
            (!parts.is_empty()).then(|| format!("{}: {} of {place} {}", test.name, words(*metric), parts.join("; ")))
        })
    });
    sentences.collect()
}

const fn words(metric: Metric) -> &'static str {
    match metric {
        Metric::LatencyP50 => "median latency",
        Metric::Busbw => "bus bandwidth",
        _ => "bandwidth",
    }
}

/// Whether findings of this kind may change a row's value.
fn spoils(spoils: Spoils, row: &Row) -> bool {
    match spoils {
        Spoils::Everything => true,
        Spoils::Bandwidth => row.better_is_higher(),
        Spoils::Latency => !row.better_is_higher(),
        Spoils::GpuMemory => row.memory == "cuda",
        Spoils::Nothing => false,
    }
}

impl Row {
    const fn better_is_higher(&self) -> bool {
        matches!(self.better, Better::Higher)
    }
}

/// Whether a finding is about one of the ends of a row.
fn touches(finding: &Finding, row: &Row) -> bool {
    let end = |host: &String, device: &String, gpu: Option<u32>| {
        let gpu = gpu.map(|gpu| format!("GPU {gpu}"));
        let named = |name: &String| name == device || Some(name) == gpu.as_ref();
        finding.hosts.contains(host) && (finding.devices.is_empty() || finding.devices.iter().any(named))
    };
    end(&row.src_host, &row.src_device, row.src_gpu) || end(&row.dst_host, &row.dst_device, row.dst_gpu)
}

/// `is 92.6 % of the ceiling, elsewhere 98.4 %`, if it is worse than elsewhere by `least` percent: the median over cells
/// that are measured in both places.
fn slower(metric: Metric, here: &[&Row], elsewhere: &[&Row], least: f64) -> Option<String> {
    let (mine, theirs) = (cells(here, |row| row.value), cells(elsewhere, |row| row.value));
    let ratios: Vec<f64> = mine.iter().filter_map(|(cell, value)| Some(value / theirs.get(cell)?)).collect();
    let ratio = median(&ratios).ok().filter(|ratio| ratio.is_finite())?;
    let loss = if metric.better() == Better::Higher { 1.0 - ratio } else { ratio - 1.0 };
    if 100.0 * loss < least {
        return None;
    }
    let of_ceiling = |row: &Row| Some(row.value? / row.ceiling?);
    let (mine, theirs) = (cells(here, of_ceiling), cells(elsewhere, of_ceiling));
    // Told of the size that fills the link best elsewhere: small ones are far from the ceiling everywhere.
    let both = theirs.into_iter().filter_map(|(cell, theirs)| Some((*mine.get(&cell)?, theirs)));
    Some(match both.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((mine, theirs)) => {
            format!("is {} % of the ceiling, elsewhere {} %", percent(100.0 * mine), percent(100.0 * theirs))
        }
        None if metric.better() == Better::Lower => format!("is {} times that of others", number(ratio)),
        None => format!("is {} % of that of others", percent(100.0 * ratio)),
    })
}

/// What sets values apart that cannot be compared: size, queue pairs, environment.
type Cell<'a> = (u64, u32, &'a str);

/// The median of each cell, of values that may be trusted.
fn cells<'a>(rows: &[&'a Row], value: impl Fn(&Row) -> Option<f64>) -> BTreeMap<Cell<'a>, f64> {
    let mut all: BTreeMap<Cell<'a>, Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.error.is_none()) {
        if let Some(value) = value(row) {
            all.entry((row.size_bytes, row.qps, &row.env)).or_default().push(value);
        }
    }
    all.into_iter().filter_map(|(cell, values)| Some((cell, median(&values).ok()?))).collect()
}

/// `is missing in 3 of 12 cases`, if that is a larger share than elsewhere.
fn missing(here: &[&Row], elsewhere: &[&Row]) -> Option<String> {
    let count = |rows: &[&Row]| (rows.iter().filter(|row| row.value.is_none()).count(), rows.len());
    let ((mine, all), (theirs, others)) = (count(here), count(elsewhere));
    (mine * others.max(1) > theirs * all).then(|| format!("is missing in {mine} of {all} cases"))
}

#[cfg(test)]
mod tests;
