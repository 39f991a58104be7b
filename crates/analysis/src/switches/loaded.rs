//! Which links between switches the flows of a test loaded.

use std::collections::{BTreeMap, HashMap};

use railgauge_model::{
    schedule::{
        Port,
        cover::{self, Link},
    },
    topology::fabric::{Hop, Route},
};
use railgauge_wire::{Bytes, Metric};
use serde::Serialize;

use super::ways::{Ways, way};
use crate::{case::CaseResult, row::Row};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loaded {
    pub test: String,
    /// Share of a link's rate, in percent, that its flows must reach together for it to count as loaded.
    pub percent: f64,
    pub loaded: usize,
    pub of: usize,
    pub not_loaded: Vec<NotLoaded>,
    /// Links whose flows moved more than their rate, with the share: the rate or the way is wrong, so the load of every
    /// link of the test is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub impossible: Vec<NotLoaded>,
    /// Flows that took one of several equal paths, it is unknown which: they count for no link.
    pub open_flows: usize,
    /// Flows with an unknown way, by reason, with their number.
    pub unknown: BTreeMap<String, usize>,
}

/// An impossible share of a link's rate, in percent: payload is always less than the rate, and rates are rounded.
const IMPOSSIBLE: f64 = 105.0;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotLoaded {
    pub link: String,
    /// Highest share of its rate reached, in percent; 0 without a flow of known way. `None` for an unknown rate.
    pub reached_percent: Option<f64>,
}

type Moment = (u32, Bytes, u32);

/// `None` for tests without pairs and other metrics. The rule for loaded links is that of the planning of rounds.
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
