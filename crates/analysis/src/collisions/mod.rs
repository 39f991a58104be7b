//! Which low flows share a path with others, and which stay suspects: tests of pairs with several numbers of queue pairs.
//!
//! [`railgauge_stats::collide`] does the arithmetic. This module collects its input: for every round and repeat the concurrent flows, each
//! with its rate with the fewest and with the most queue pairs, at the largest message size. A run opens new queue pairs for every round
//! and repeat of such a test, so that each is another sample of the switches' hash. Patterns in which several flows share one NIC port are
//! excluded: their flows are low because of each other anyway.

mod told;

use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::{
    journal::event::Sample,
    plan::model::Test,
    schedule::{Cell, Flow, Port},
};
use railgauge_stats::collide::{self, Answer, Class, FlowRates, Why};
use railgauge_wire::{
    Bytes, Metric, SourcePort,
    drivers::{REORDERED, of_member},
};

pub use told::{Collisions, LowFlow};

use super::{row::Row, rows::direction, together::is_telling, value, words::lane};
use crate::case::{CaseResult, LOSS_TOLERANCE};

/// In the order of the plan; nothing for tests with one number of queue pairs.
pub fn collisions(tests: &[Test], results: &[CaseResult<'_>], rows: &[Row]) -> Vec<Collisions> {
    let of = |test: &Test| {
        let results: Vec<&CaseResult<'_>> = results.iter().filter(|result| *result.case.test == *test.name).collect();
        of_test(test, &results, rows)
    };
    tests.iter().filter_map(of).collect()
}

#[derive(Debug, Clone)]
struct Place {
    rates: FlowRates,
    lossy: bool,
    /// Whether packets arrived out of order with the fewest queue pairs.
    reordered: Option<bool>,
    /// Those of the fewest queue pairs.
    source_ports: Option<Vec<SourcePort>>,
}

impl Place {
    const fn between(ends: [u32; 2]) -> Self {
        let rates = FlowRates { fewest: None, most: None, ends };
        Self { rates, lossy: false, reordered: None, source_ports: None }
    }

    /// Takes the rate of a repeat, in parts of `full`.
    fn add(&mut self, result: &CaseResult<'_>, repeat: u32, full: f64, fewest: u32) {
        let trusted = is_telling(result);
        self.lossy |= trusted && result.loses();
        let sample = result.samples.iter().find(|(of, _)| *of == repeat).filter(|_| trusted).map(|(_, sample)| *sample);
        let gbps = sample
            .and_then(|sample| value::of(Metric::Bandwidth, sample, direction(result, repeat, sample)).ok().flatten());
        let rate = gbps.map(|gbps| gbps / full).filter(|rate| rate.is_finite() && *rate > 0.0);
        if result.case.cell.qps == fewest {
            self.rates.fewest = rate;
            self.reordered = sample.and_then(|sample| is_reordered(result, sample));
            let lanes = sample.map(|sample| sample.initiator.lanes.iter().map(|lane| lane.source_port));
            self.source_ports = lanes.and_then(Iterator::collect);
        } else {
            self.rates.most = rate;
        }
    }
}

type Pass<'r> = BTreeMap<&'r Flow, Place>;

/// `None` for another kind of test. `results` are those of the test.
pub fn of_test(test: &Test, results: &[&CaseResult<'_>], rows: &[Row]) -> Option<Collisions> {
    let (fewest, most) = (*test.qps.iter().min()?, *test.qps.iter().max()?);
    let size = results.iter().map(|result| result.case.cell.size).max()?;
    if !test.compares_paths() {
        return None;
    }
    let ceilings: BTreeMap<u64, f64> = rows
        .iter()
        .filter(|row| *row.test == test.name && row.metric == Metric::Bandwidth)
        .filter_map(|row| Some((row.case, row.ceiling?)))
        .collect();
    let used = || {
        let here = |cell: &Cell| cell.size == size && [fewest, most].contains(&cell.qps) && cell.is_reference(test);
        results.iter().filter(move |result| here(&result.case.cell))
    };
    // Shares only where all flows have one: a rate and a share are not comparable.
    let shares = used().all(|result| ceilings.contains_key(&result.case.id));
    let mut passes: BTreeMap<(u32, u32), Pass<'_>> = BTreeMap::new();
    let mut ends: BTreeMap<(bool, &Port), u32> = BTreeMap::new();
    for result in used() {
        let Flow { from, to, .. } = &result.case.flow;
        let ends = [(false, from), (true, to)].map(|end| {
            let next = ends.len() as u32;
            *ends.entry(end).or_insert(next)
        });
        let full = if shares { ceilings[&result.case.id] } else { 1.0 };
        for repeat in 0..result.repeats {
            let pass = passes.entry((result.case.round, repeat)).or_default();
            let place = pass.entry(&result.case.flow).or_insert(Place::between(ends));
            place.add(result, repeat, full, fewest);
        }
    }
    // A flow by itself shares its path with no other flow of the test.
    passes.retain(|_, flows| flows.len() > 1);
    let repeated = drop_repeated(&mut passes);
    if passes.is_empty() {
        return None;
    }
    let rates: Vec<Vec<FlowRates>> =
        passes.values().map(|pass| pass.values().map(|place| place.rates).collect()).collect();
    let places: Vec<&Place> = passes.values().flat_map(BTreeMap::values).collect();
    let of = |is: fn(&Place) -> bool| places.iter().filter(|place| is(place)).count() as f64 / places.len() as f64;
    // Most tests record a counter only where it rose.
    let counted = places.iter().any(|place| place.reordered.is_some());
    let reordered = counted.then(|| of(|place| place.reordered == Some(true)));
    let found = collide::collisions(&rates, shares.then_some(1.0), reordered).ok();
    let port = |number: &u32| {
        ends.iter().find(|(_, of)| *of == number).map(|((_, port), _)| format!("{}:{}", port.host, port.rail))
    };
    let ports = found.iter().flat_map(|found| &found.paths.ports).filter_map(port).collect();
    let told = told(test, (size, fewest, most), &passes, found.as_ref());
    let reordered_percent = reordered.map(|share| 100.0 * share);
    Some(Collisions { ports, repeated, reordered_percent, ..told })
}

/// Drops passes whose flows have the source ports of an earlier one, and returns how many: they take the same paths and show nothing new.
fn drop_repeated(passes: &mut BTreeMap<(u32, u32), Pass<'_>>) -> usize {
    let (all, mut known) = (passes.len(), BTreeSet::new());
    passes.retain(|_, flows| {
        let ports = |(flow, place): (&&Flow, &Place)| {
            place.source_ports.clone().filter(|ports| !ports.is_empty()).map(|ports| (Flow::clone(flow), ports))
        };
        flows.iter().map(ports).collect::<Option<Vec<_>>>().is_none_or(|ports| known.insert(ports))
    });
    all - passes.len()
}

/// Whether so many packets arrived out of order that switches did it; `None` if the receiver does not count them.
fn is_reordered(result: &CaseResult<'_>, sample: &Sample) -> Option<bool> {
    let counters = if result.case.cell.op.pulls() { &sample.from_counters } else { &sample.to_counters };
    let counts = |name: &str| REORDERED.contains(&of_member(name).map_or(name, |(_, plain)| plain));
    let times = counters.iter().filter(|(name, _)| counts(name)).map(|(_, times)| *times).max()?;
    let packets = sample.initiator.bytes.0 as f64 / f64::from(result.link?.mtu.max(1));
    Some(times as f64 > LOSS_TOLERANCE * packets)
}

fn told(
    test: &Test,
    (size_bytes, fewest, most): (Bytes, u32, u32),
    passes: &BTreeMap<(u32, u32), Pass<'_>>,
    found: Option<&collide::Collisions>,
) -> Collisions {
    let flows = passes.values().map(BTreeMap::len).sum();
    let mut told = Collisions {
        test: test.name.clone(),
        size_bytes,
        fewest,
        most,
        several: lane(test.transport),
        passes: passes.len(),
        flows,
        odd_passes: found.map_or(0, |found| found.odd),
        needed_passes: found.and_then(|found| found.needed),
        answer: found.map_or(Answer::Open, |found| found.paths.answer),
        slow_path_percent: found.and_then(|found| found.paths.slow).map(|share| 100.0 * share),
        paths: found.and_then(|found| found.paths.number),
        paths_excluded: found.map_or(0.0, |found| found.paths.excluded.floor()),
        lossy: passes.values().flat_map(BTreeMap::values).filter(|place| place.lossy).count(),
        loss_percent: found.map(|found| (100.0 * found.loss_fewest, 100.0 * found.loss_most)),
        ..Collisions::default()
    };
    let Some(found) = found else {
        told.not_told.insert(Why::TooFew, flows);
        return told;
    };
    for (pass, classes) in passes.values().zip(&found.classes) {
        for ((flow, Place { rates, .. }), class) in pass.iter().zip(classes) {
            match class {
                Class::Normal => told.normal += 1,
                Class::Collides { .. } => told.colliding += 1,
                Class::Suspect => told.low(flow, *rates, found, None),
                Class::Open(why) => told.low(flow, *rates, found, Some(*why)),
            }
        }
    }
    told
}

#[cfg(test)]
mod tests;
