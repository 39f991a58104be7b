//! Which links between switches the flows of a test loaded.

use std::collections::{BTreeMap, HashMap};

use railgauge_model::{
    schedule::{
        Port,
        cover::{self, Link},
    },
    topology::fabric::{Hop, Route},
};
use railgauge_wire::{terms::Metric, unit::Bytes};
use serde::Serialize;

use super::ways::{Ways, way};
use crate::analysis::{results::CaseResult, row::Row};

/// What became of the links between switches in a test. Each direction of a link counts by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loaded {
    pub test: String,
    /// A link counts as loaded if its flows reached this share of its rate together, in percent.
    pub percent: f64,
    /// Directions of links that were loaded.
    pub loaded: usize,
    pub of: usize,
    /// Those that were not loaded, each with the highest share that it reached.
    pub not_loaded: Vec<NotLoaded>,
    /// Those whose flows moved more than the link can by its rate, each with the share that it reached: the rate or the way is wrong, and
    /// nobody knows of any link of the test what it carried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub impossible: Vec<NotLoaded>,
    /// Flows of which nobody knows which of several equal paths they took: they count for no link.
    pub open_flows: usize,
    /// Flows of which the topology does not know the way, and why, with their number.
    pub unknown: BTreeMap<String, usize>,
}

/// A share of a link's rate that cannot be, in percent: payload is always less than the rate, and rates are told rounded.
const IMPOSSIBLE: f64 = 105.0;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotLoaded {
    pub link: String,
    /// Highest share of its rate that was reached, in percent; 0 if no flow with a known way passed it. `None` where its rate is not
    /// known.
    pub reached_percent: Option<f64>,
}

/// Flows that ran at one time: round, size, queue pairs.
type Moment = (u32, Bytes, u32);

/// Judges one test of pairs; `None` for other tests and metrics. What is loaded is said by the same rule as where rounds are planned.
pub(super) fn loaded(
    ways: &Ways<'_>,
    name: &str,
    percent: f64,
    results: &[CaseResult<'_>],
    rows: &[Row],
) -> Option<Loaded> {
    let cases: HashMap<u64, &CaseResult<'_>> =
        results.iter().filter(|result| *result.case.test == *name).map(|result| (result.case.id, result)).collect();
    let hops: Vec<Hop> = ways.fabric.hops().filter(|hop| ways.is_switch_cable(*hop)).collect();
    let links: HashMap<Hop, Link> = hops.iter().copied().zip(0..).collect();
    let mut carried: BTreeMap<Moment, Vec<(f64, Vec<Link>)>> = BTreeMap::new();
    let (mut open_flows, mut unknown) = (0, BTreeMap::<String, usize>::new());
    let mut seen: HashMap<[&Port; 2], Option<Vec<Link>>> = HashMap::new();
    for row in rows.iter().filter(|row| *row.test == *name && row.metric == Metric::Bandwidth) {
        let (Some(result), Some(value)) = (cases.get(&row.case), row.value) else { continue };
        if !result.case.flow.members.is_empty() {
            return None;
        }
        let at_once = carried.entry((row.round, row.size_bytes, row.qps)).or_default();
        let [from, to] = way(row, result.case);
        // With both directions at once the value is the sum of both, and neither is known by itself.
        let directions = if result.test.bidirectional { vec![[from, to], [to, from]] } else { vec![[from, to]] };
        let share = value / directions.len() as f64;
        for way in directions {
            let passed = seen.entry(way.map(|(port, _)| port)).or_insert_with(|| {
                match ways.taken(result.case.cell.transport, way) {
                    Route::Known(path) => return Some(path.iter().filter_map(|hop| links.get(hop).copied()).collect()),
                    Route::OneOf(_) => open_flows += 1,
                    Route::Unknown(why) => *unknown.entry(why).or_default() += 1,
                }
                None
            });
            at_once.extend(passed.iter().map(|passed| (share, passed.clone())));
        }
    }
    if carried.is_empty() {
        return None;
    }
    let rates: Vec<Option<f64>> = hops.iter().map(|hop| ways.fabric.hop(*hop).0.rate_gbps).collect();
    let rounds = carried.values().map(|flows| flows.iter().map(|(gbps, passed)| (*gbps, passed.as_slice())));
    let judged = cover::Loaded::of(&rates, percent / 100.0, rounds);
    let reached = |link: Link| Some(100.0 * judged.reached_gbps.get(link as usize)? / (*rates.get(link as usize)?)?);
    let told = |link: &Link, reached_percent| {
        Some(NotLoaded { link: ways.fabric.hop_name(*hops.get(*link as usize)?), reached_percent })
    };
    let low = judged.not_loaded.iter().filter_map(|link| told(link, reached(*link)));
    let not_loaded: Vec<NotLoaded> = low.chain(judged.unknown.iter().filter_map(|link| told(link, None))).collect();
    let (loaded, of) = (judged.loaded.len(), hops.len());
    let over = |link: &Link| reached(*link).filter(|percent| *percent > IMPOSSIBLE);
    let impossible = judged.loaded.iter().filter_map(|link| told(link, Some(over(link)?))).collect();
    Some(Loaded { test: name.to_owned(), percent, loaded, of, not_loaded, impossible, open_flows, unknown })
}
