//! Which low flows share a path with others, and which stay suspects: tests of pairs with several numbers of queue pairs.
//!
//! [`railgauge_stats::collide`] does the arithmetic. This module collects its input: for every round and repeat the concurrent flows, each
//! with its rate with the fewest and with the most queue pairs, at the largest message size. A run opens new queue pairs for every round
//! and repeat of such a test, so that each is another sample of the switches' hash. Patterns in which several flows share one NIC port are
//! excluded: their flows are low because of each other anyway.

mod told;

use std::collections::BTreeMap;

use railgauge_model::{
    plan::model::Test,
    schedule::{Cell, Flow},
};
use railgauge_stats::collide::{self, Class, FlowRates};
use railgauge_wire::{Bytes, Metric};

pub use told::{Collisions, LowFlow, NotTold};

use super::{row::Row, rows::direction, together::is_telling, value, words::lane};
use crate::case::CaseResult;

/// In the order of the plan; nothing for tests with one number of queue pairs.
pub fn collisions(tests: &[Test], results: &[CaseResult<'_>], rows: &[Row]) -> Vec<Collisions> {
    let of = |test: &Test| {
        let results: Vec<&CaseResult<'_>> = results.iter().filter(|result| *result.case.test == *test.name).collect();
        of_test(test, &results, rows)
    };
    tests.iter().filter_map(of).collect()
}

#[derive(Debug, Clone, Copy)]
struct Place {
    rates: FlowRates,
    lossy: bool,
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
    for result in used() {
        let trusted = is_telling(result);
        for repeat in 0..result.repeats {
            let place = passes.entry((result.case.round, repeat)).or_default();
            let none = Place { rates: FlowRates { fewest: None, most: None }, lossy: false };
            let Place { rates, lossy } = place.entry(&result.case.flow).or_insert(none);
            *lossy |= trusted && result.loses();
            let sample = result.samples.iter().find(|(of, _)| *of == repeat).filter(|_| trusted);
            let gbps = sample.and_then(|(_, sample)| {
                value::of(Metric::Bandwidth, sample, direction(result, repeat, sample)).ok().flatten()
            });
            let full = if shares { ceilings[&result.case.id] } else { 1.0 };
            let rate = gbps.map(|gbps| gbps / full).filter(|rate| rate.is_finite() && *rate > 0.0);
            *(if result.case.cell.qps == fewest { &mut rates.fewest } else { &mut rates.most }) = rate;
        }
    }
    // A flow by itself shares its path with no other flow of the test.
    passes.retain(|_, flows| flows.len() > 1);
    if passes.is_empty() {
        return None;
    }
    let rates: Vec<Vec<FlowRates>> =
        passes.values().map(|pass| pass.values().map(|place| place.rates).collect()).collect();
    Some(told(test, (size, fewest, most), &passes, collide::collisions(&rates, shares.then_some(1.0)).ok().as_ref()))
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
        lossy: passes.values().flat_map(BTreeMap::values).filter(|place| place.lossy).count(),
        normal: 0,
        colliding: 0,
        suspects: Vec::new(),
        not_told: BTreeMap::new(),
        open: Vec::new(),
        loss_percent: found.map(|found| (100.0 * found.loss_fewest, 100.0 * found.loss_most)),
    };
    let Some(found) = found else {
        told.not_told.insert(NotTold::TooFew, flows);
        return told;
    };
    for (pass, classes) in passes.values().zip(&found.classes) {
        for ((flow, Place { rates, .. }), class) in pass.iter().zip(classes) {
            match class {
                Class::Normal => told.normal += 1,
                Class::Collides { .. } => told.colliding += 1,
                Class::Suspect => told.low(flow, *rates, found, None),
                Class::Open(why) => told.low(flow, *rates, found, Some(NotTold::from(*why))),
            }
        }
    }
    told
}

#[cfg(test)]
mod tests;
