//! Which links between switches the flows of a test loaded.

use std::collections::{BTreeMap, HashMap};

use railgauge_model::topology::fabric::Hop;
use railgauge_wire::{terms::Metric, unit::Bytes};
use serde::Serialize;

use super::ways::{Taken, Ways, ends};
use crate::analysis::{results::CaseResult, row::Row};

/// What became of the links between switches in a test. Each direction of a link counts by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loaded {
    /// Name of the test.
    pub test: String,
    /// A link counts as loaded if its flows reached this share of its rate together, in percent.
    pub percent: f64,
    /// Directions of links that were loaded.
    pub loaded: usize,
    /// All that there are.
    pub of: usize,
    /// Those that were not loaded, each with the highest share that it reached.
    pub not_loaded: Vec<NotLoaded>,
    /// Flows of which nobody knows which of several equal paths they took: they count for no link.
    pub open_flows: usize,
    /// Flows of which the topology does not know the way, and why, with their number.
    pub unknown: BTreeMap<String, usize>,
}

/// A link that was not loaded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotLoaded {
    /// The link and its direction.
    pub link: String,
    /// Highest share of its rate that was reached, in percent; 0 if no flow with a known way passed it. `None` where its rate is not
    /// known.
    pub reached_percent: Option<f64>,
}

/// Flows that ran at one time: round, size, queue pairs.
type Moment = (u32, Bytes, u32);

/// Judges one test of pairs; `None` for other tests and metrics.
pub(super) fn loaded(
    ways: &Ways<'_>,
    name: &str,
    percent: f64,
    results: &[CaseResult<'_>],
    rows: &[Row],
) -> Option<Loaded> {
    let cases: HashMap<u64, &CaseResult<'_>> =
        results.iter().filter(|result| result.case.test == name).map(|result| (result.case.id, result)).collect();
    let mut carried: HashMap<Hop, HashMap<Moment, f64>> = HashMap::new();
    let (mut open_flows, mut unknown, mut any) = (0, BTreeMap::<String, usize>::new(), false);
    let mut seen = HashMap::new();
    for row in rows.iter().filter(|row| row.test == name && row.metric == Metric::Bandwidth) {
        let (Some(result), Some(value)) = (cases.get(&row.case), row.value) else { continue };
        let flow = &result.case.flow;
        if !flow.members.is_empty() {
            return None;
        }
        any = true;
        let transport = result.case.cell.transport;
        let [from, to] = ends(row, flow);
        // What is read moves from the responder to the initiator. With both directions at once the value is the sum of both, and
        // neither is known by itself.
        let directions = match (result.test.bidirectional, result.case.cell.op.pulls()) {
            (true, _) => vec![[from, to], [to, from]],
            (false, true) => vec![[to, from]],
            (false, false) => vec![[from, to]],
        };
        let share = value / directions.len() as f64;
        for way in directions {
            let taken = seen.entry((way[0].0.clone(), way[1].0.clone())).or_insert_with(|| {
                let taken = ways.taken(transport, way);
                match &taken {
                    Taken::OneOf(_) => open_flows += 1,
                    Taken::Unknown(why) => *unknown.entry(why.clone()).or_default() += 1,
                    Taken::This(_) => {}
                }
                taken
            });
            if let Taken::This(path) = taken {
                for hop in path.iter().filter(|hop| ways.is_switch_cable(**hop)) {
                    *carried.entry(*hop).or_default().entry((row.round, row.size_bytes, row.qps)).or_default() += share;
                }
            }
        }
    }
    if !any {
        return None;
    }
    let hops = 0..2 * ways.fabric.links.len() as Hop;
    let all: Vec<Hop> = hops.filter(|hop| ways.is_switch_cable(*hop)).collect();
    let reached = |hop: &Hop| {
        let most =
            carried.get(hop).into_iter().flat_map(HashMap::values).fold(0.0, |most: f64, &value| most.max(value));
        ways.fabric.hop(*hop).0.rate_gbps.filter(|rate| *rate > 0.0).map(|rate| 100.0 * most / rate)
    };
    let not_loaded: Vec<NotLoaded> = all
        .iter()
        .map(|hop| (hop, reached(hop)))
        .filter(|(_, reached)| reached.is_none_or(|reached| reached < percent))
        .map(|(hop, reached_percent)| NotLoaded { link: ways.name(*hop), reached_percent })
        .collect();
    let loaded = all.len() - not_loaded.len();
    Some(Loaded { test: name.to_owned(), percent, loaded, of: all.len(), not_loaded, open_flows, unknown })
}
