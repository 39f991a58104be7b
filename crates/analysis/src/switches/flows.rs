//! The flows of a test that links are judged by, without mutual effects.
//!
//! Only flows with a known path count that did not share a full link: what a flow loses to others is not a fault of the link.

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
use railgauge_wire::Metric;

use super::ways::{Ways, way};
use crate::{
    case::{CaseResult, State},
    journal::Journal,
    row::Row,
};

/// Share of its capacity from which on a link with several flows is full: a flow may have lost to the others.
const FULL: f64 = 0.9;

pub(super) struct Measured<'r> {
    pub tests: (&'r [CaseResult<'r>], &'r [Row]),
    pub further: (&'r [CaseResult<'r>], &'r [Row]),
}

pub(super) struct Gathered {
    pub cell: Arc<Cell>,
    /// The flows, and the numbers of low ones excluded because a link was full, and because that is unknown.
    pub flows: (Vec<Flow>, [usize; 2]),
    pub failed: usize,
    pub ports: BTreeMap<u32, (Port, String)>,
    pub rounds: u32,
}

/// `None` without pairs whose bandwidth was measured in one direction, one by one on their NICs.
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
        // Further cases for a host or NIC share links, and are not a round of probes.
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
            // Further cases number their rounds from the start again.
            let round = match is_further {
                false => 0,
                true => asked.iter().position(|known| *known == row.round).map_or(0, |at| at as u32 + 1),
            };
            let moment = (round, row.round);
            let path = match ways.taken(result.case.cell.transport, way) {
                Route::Known(path) => path,
                Route::OneOf(paths) => {
                    // Its path is ambiguous; others on any of the candidates may have lost to it.
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

/// Round of probes (0 in the test) and round of the test or of further cases: what ran at the same time.
type Moment = (u32, u32);

pub(super) struct Flow {
    /// 0 in the test, 1 and up for further cases.
    pub round: u32,
    moment: Moment,
    counts: bool,
    pub ends: schedule::Flow,
    pub path: Vec<Hop>,
    /// In Gbit/s.
    pub value: f64,
    pub ceiling: Option<f64>,
}

/// Share of the good level below which a flow may have lost to others on its links.
const LOW: f64 = 0.9;
/// A link that limits a flow gives no other flow much more (max-min fairness); a smaller deficit against its largest flow may be chance.
const FAIR: f64 = 0.7;

/// Removes mutual effects from flows. A low flow may have lost to others on a link where none has much more than it. If
/// that link was full, or its capacity is unknown, the flow is not evidence. Otherwise the link itself is slow, and its
/// flows together count as what one flow would get there.
///
/// Also returns the numbers of low flows excluded because a link was full, and because that is unknown.
fn apart(ways: &Ways<'_>, flows: Vec<Flow>, shared: &HashSet<(Moment, Hop)>) -> (Vec<Flow>, [usize; 2]) {
    /// Load of a link at one time: the sum, the largest, the number of flows.
    type Carried = (f64, f64, usize);
    let mut on: HashMap<(Moment, Hop), Carried> = HashMap::new();
    for flow in &flows {
        for hop in &flow.path {
            let (sum, largest, count) = on.entry((flow.moment, *hop)).or_default();
            (*sum, *largest, *count) = (*sum + flow.value, largest.max(flow.value), *count + 1);
        }
    }
    // The level of flows alone on their links; if these are few, of the better half of all.
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
                // Less than one good flow: that is what one would get. More: the link has this share of its proper rate.
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
