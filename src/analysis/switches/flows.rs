//! The flows of a test by which links are judged, without what they did to each other.
//!
//! Only flows count whose path is known, and which did not share a link that was full: what a flow loses to another one on the same
//! link is no fault of it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use railgauge_model::{
    plan::model::Test,
    schedule::{self, Cell, Port},
    topology::fabric::{Hop, Route},
};
use railgauge_stats::{fabric::FEWEST, robust::median};
use railgauge_wire::terms::Metric;

use super::ways::{Ways, way};
use crate::analysis::{
    journal::Journal,
    results::{CaseResult, State},
    row::Row,
};

/// A link with more than this share of what it can carry on it, from several flows, was full: a flow may have lost to the others.
const FULL: f64 = 0.9;

/// What was measured in a run: in its tests, and beside them to settle suspects.
pub(super) struct Measured<'r> {
    pub tests: (&'r [CaseResult<'r>], &'r [Row]),
    pub further: (&'r [CaseResult<'r>], &'r [Row]),
}

pub(super) struct Gathered {
    /// What is measured of it: its largest size with the most queue pairs.
    pub cell: Arc<Cell>,
    /// The flows, and how many low ones were left out because a link was full, and because it is not known whether one was.
    pub flows: (Vec<Flow>, [usize; 2]),
    /// Flows with a known path that have no value that may be trusted.
    pub failed: usize,
    /// The port of each NIC that has flows, by its place in the fabric, and the device that was used.
    pub ports: BTreeMap<u32, (Port, String)>,
    /// Rounds of further cases that were asked for, for links, whatever came of them.
    pub rounds: u32,
}

/// Gathers the flows of a test; `None` where it has no pairs whose bandwidth was measured in one direction and one by one on their
/// NICs.
pub(super) fn gather(ways: &Ways<'_>, journal: &Journal, test: &Test, of_run: &Measured<'_>) -> Option<Gathered> {
    if test.at_once() || test.bidirectional || test.collective.is_some() {
        return None;
    }
    let asked: BTreeSet<u32> = journal
        .further
        .iter()
        .filter(|case| *case.test == *test.name && journal.for_links.contains(&case.id))
        .map(|case| case.round)
        .collect();
    let mut ports = BTreeMap::new();
    let mut cell = None;
    let mut flows = Vec::new();
    let mut shared: HashSet<(Moment, Hop)> = HashSet::new();
    let mut failed = 0;
    for (is_further, (results, rows)) in [(false, of_run.tests), (true, of_run.further)] {
        // What was measured to settle a host or NIC shares links, and is no round of probes.
        let counts = |result: &&CaseResult<'_>| {
            *result.case.test == *test.name && (!is_further || journal.for_links.contains(&result.case.id))
        };
        let cases: HashMap<u64, &CaseResult<'_>> =
            results.iter().filter(counts).map(|result| (result.case.id, result)).collect();
        let of_test =
            |row: &&Row| *row.test == test.name && row.metric == Metric::Bandwidth && cases.contains_key(&row.case);
        if !is_further {
            let usual = |row: &&Row| cases.get(&row.case).is_some_and(|result| result.case.cell.is_reference(test));
            let valued = rows.iter().filter(of_test).filter(|row| row.value.is_some()).filter(usual);
            let most = valued.max_by_key(|row| (row.size_bytes, row.qps))?;
            cell = cases.get(&most.case).map(|result| result.case.cell.clone());
        }
        for row in rows.iter().filter(of_test) {
            let Some(result) = cases.get(&row.case) else { continue };
            if Some(&result.case.cell) != cell.as_ref() {
                continue;
            }
            let way = way(row, result.case);
            // Numbers of rounds begin again for further cases.
            let round = match is_further {
                false => 0,
                true => asked.iter().position(|known| *known == row.round).map_or(0, |at| at as u32 + 1),
            };
            let moment = (round, row.round);
            let path = match ways.taken(result.case.cell.transport, way) {
                Route::Known(path) => path,
                Route::OneOf(paths) => {
                    // Which of them it is nobody knows; others on any of them may have lost to it.
                    shared.extend(paths.into_iter().flatten().map(|hop| (moment, hop)));
                    continue;
                }
                Route::Unknown(_) => continue,
            };
            let Some(value) = row.value.filter(|value| *value > 0.0) else {
                failed += 1;
                continue;
            };
            for (port, device) in way {
                if let Some(nic) = ways.nic(&port.host, device) {
                    ports.entry(nic).or_insert_with(|| (port.clone(), device.to_owned()));
                }
            }
            let counts = result.state == State::Measured;
            failed += usize::from(!counts);
            let ends = result.case.flow.clone();
            flows.push(Flow { round, moment, counts, ends, path, value, ceiling: row.ceiling });
        }
    }
    let flows = apart(ways, flows, &shared);
    Some(Gathered { cell: cell?, flows, failed, ports, rounds: asked.len() as u32 })
}

/// Round of probes (0 in the test) and round of the test or of further cases: what ran at one time.
type Moment = (u32, u32);

pub(super) struct Flow {
    /// 0 in the test, 1 and up in rounds of further cases.
    pub round: u32,
    moment: Moment,
    /// Whether its value may be trusted. A flow that is not took its place on the links all the same.
    counts: bool,
    pub ends: schedule::Flow,
    pub path: Vec<Hop>,
    /// In Gbit/s.
    pub value: f64,
    pub ceiling: Option<f64>,
}

/// Below this share of what good flows reach a flow is low enough to ask whether it lost to others on its links.
const LOW: f64 = 0.9;
/// A link that holds a flow down gives no other flow on it much more (max-min fairness); this much less than the largest flow on it may
/// still be chance.
const FAIR: f64 = 0.7;

/// The flows without what they did to each other. A low flow may be low because of others on a link of its way, where none of them has
/// much more than it. If that link carried all that it can, or nobody knows how much that is, the flow says nothing. Else the link
/// itself is slow: its flows together stand for what one flow would get there.
///
/// Returns also how many low flows were left out because a link was full, and because it is not known whether one was.
fn apart(ways: &Ways<'_>, flows: Vec<Flow>, shared: &HashSet<(Moment, Hop)>) -> (Vec<Flow>, [usize; 2]) {
    /// What flows carried over a link at one time: the sum, the largest, how many.
    type Carried = (f64, f64, usize);
    let mut on: HashMap<(Moment, Hop), Carried> = HashMap::new();
    for flow in &flows {
        for hop in &flow.path {
            let (sum, largest, count) = on.entry((flow.moment, *hop)).or_default();
            (*sum, *largest, *count) = (*sum + flow.value, largest.max(flow.value), *count + 1);
        }
    }
    // What flows reach that had their links for themselves; where these are few, what the better half of all reaches.
    let is_alone = |flow: &&Flow| flow.path.iter().all(|hop| on.get(&(flow.moment, *hop)).is_some_and(|at| at.2 < 2));
    let values = |of: &dyn Fn(&&Flow) -> bool| -> Vec<f64> {
        flows.iter().filter(|flow| flow.counts).filter(of).map(|flow| flow.value).collect()
    };
    let (alone, mut all) = (values(&is_alone), values(&|_| true));
    all.sort_unstable_by(|a, b| b.total_cmp(a));
    let better = &all[..all.len().div_ceil(2)];
    let good = median(if alone.len() < FEWEST { better } else { &alone }).unwrap_or_default();
    let (mut kept, mut full, mut undecided) = (Vec::new(), 0, 0);
    'flows: for mut flow in flows.into_iter().filter(|flow| flow.counts) {
        if flow.value >= LOW * good {
            kept.push(flow);
            continue;
        }
        let mut alone = f64::INFINITY;
        for hop in &flow.path {
            let (sum, largest, count) = on.get(&(flow.moment, *hop)).copied().unwrap_or_default();
            let rate = ways.fabric.hop(*hop).0.rate_gbps;
            match rate.map(|rate| rate.min(count as f64 * good)) {
                _ if shared.contains(&(flow.moment, *hop)) => {
                    undecided += 1;
                    continue 'flows;
                }
                _ if count < 2 || flow.value < FAIR * largest => {}
                None => {
                    undecided += 1;
                    continue 'flows;
                }
                Some(most) if sum > FULL * most => {
                    full += 1;
                    continue 'flows;
                }
                // Less than one good flow: that is what one would get. More: the link has this share of what it should carry.
                Some(most) => alone = alone.min(if sum < good { sum } else { good * sum / most }),
            }
        }
        if alone.is_finite() {
            flow.value = flow.value.max(alone);
        }
        kept.push(flow);
    }
    (kept, [full, undecided])
}
