//! Which cable or switch explains the values of a test's pairs: names in words from [`railgauge_stats::fabric`].
//!
//! Only flows count whose path is known, and which did not share a link that was full: what a flow loses to another one on the same
//! link is no fault of it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use railgauge_model::{
    plan::model::{Test, Waiver},
    schedule::{Cell, Port},
    topology::fabric::{Hop, Node},
};
use railgauge_stats::{
    fabric::{self, Judgement, Part, Setting, Suspect},
    robust::{median, outlier_cut},
};
use railgauge_wire::{terms::Metric, unit::Bytes};
use serde::Serialize;

use super::ways::{Taken, Ways, ends};
use crate::analysis::{
    journal::Journal,
    localise::Standing,
    results::{CaseResult, State},
    row::Row,
};

/// A link with more than this share of what it can carry on it, from several flows, was full: a flow may have lost to the others.
const FULL: f64 = 0.9;
/// What must at least be seen: a link at half its rate, as a difference of logarithms.
const HALF: f64 = std::f64::consts::LN_2;

/// What the pairs of a test say of links.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnLinks {
    /// Name of the test.
    pub test: String,
    /// Message size in bytes.
    pub size_bytes: Bytes,
    /// Flows that were judged: measured, with a known path, on links that were not full.
    pub flows: usize,
    /// Low flows that were left out because they shared a full link with others.
    pub contended: usize,
    /// Low flows that were left out because they shared a link with others and nobody knows what it can carry, or what else was on it.
    pub undecided: usize,
    /// Flows with a known path that have no value that may be trusted.
    pub failed: usize,
    /// Directions of cables between switches that a judged flow passed.
    pub passed: usize,
    /// All directions of cables between switches.
    pub of: usize,
    /// What stands out, the lowest first.
    pub suspects: Vec<SuspectLink>,
    /// Low flows that no part explains: every link of theirs was good in other flows.
    pub unexplained: usize,
    /// Why nothing was searched; empty if it was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub not_searched: String,
    /// Whether values scatter so much that a link at half its rate would not stand out.
    pub too_noisy: bool,
    /// Whether the plan waives what stands out.
    pub waived: bool,
}

/// A cable or switch that stands out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SuspectLink {
    /// Where to look: `leaf12 port 7, cable to gpu031 mlx5_3`.
    pub name: String,
    /// Other parts that explain the same values about as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    /// Whether it was measured again, and what that said.
    pub standing: Standing,
    /// Its difference from controls when it was measured again, in percent, and by how many flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_percent: Option<(f64, usize)>,
    /// Whether it is a switch, or a cable between two.
    pub between_switches: bool,
    /// Difference from good flows in percent.
    pub change_percent: f64,
    /// Its 95 % interval; `None` where the flows are too few for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_percent: Option<(f64, f64)>,
    /// Low flows that passed it.
    pub low: usize,
    /// Good flows that passed it.
    pub good: usize,
}

/// Judges one test; `None` where it has no pairs whose bandwidth was measured in one direction and one by one on their NICs.
pub(super) fn on_links(ways: &Ways<'_>, journal: &Journal, test: &Test, of_run: &Measured<'_>) -> Option<OnLinks> {
    let (found, _) = search(ways, journal, test, of_run)?;
    Some(found)
}

/// What a search found, for those who ask what to measure next.
pub(super) struct Located {
    /// What is measured of the test: its largest size with the most queue pairs.
    pub cell: Cell,
    pub parts: fabric::Fabric,
    pub tests: Vec<fabric::Test>,
    pub findings: fabric::Findings,
    pub judgements: Vec<Judgement>,
    /// The port of each NIC that has flows, by its place in the fabric, and the device that was used.
    pub ports: BTreeMap<u32, (Port, String)>,
    /// Rounds of further cases that were asked for, for links, whatever came of them.
    pub rounds: u32,
}

/// What was measured in a run: in its tests, and beside them to settle suspects.
pub(super) struct Measured<'r> {
    pub tests: (&'r [CaseResult<'r>], &'r [Row]),
    pub further: (&'r [CaseResult<'r>], &'r [Row]),
}

pub(super) fn search(
    ways: &Ways<'_>,
    journal: &Journal,
    test: &Test,
    of_run: &Measured<'_>,
) -> Option<(OnLinks, Option<Located>)> {
    if test.at_once() || test.bidirectional || test.collective.is_some() {
        return None;
    }
    let asked: BTreeSet<u32> = journal
        .further
        .iter()
        .filter(|case| case.test == test.name && journal.for_links.contains(&case.id))
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
            result.case.test == test.name && (!is_further || journal.for_links.contains(&result.case.id))
        };
        let cases: HashMap<u64, &CaseResult<'_>> =
            results.iter().filter(counts).map(|result| (result.case.id, result)).collect();
        let of_test =
            |row: &&Row| row.test == test.name && row.metric == Metric::Bandwidth && cases.contains_key(&row.case);
        if !is_further {
            let valued = rows.iter().filter(of_test).filter(|row| row.value.is_some());
            let most = valued.max_by_key(|row| (row.size_bytes, row.qps))?;
            cell = cases.get(&most.case).map(|result| result.case.cell.clone());
        }
        for row in rows.iter().filter(of_test) {
            let Some(result) = cases.get(&row.case) else { continue };
            if Some(&result.case.cell) != cell.as_ref() {
                continue;
            }
            let [from, to] = ends(row, &result.case.flow);
            let way = if result.case.cell.op.pulls() { [to, from] } else { [from, to] };
            // Numbers of rounds begin again for further cases.
            let round = match is_further {
                false => 0,
                true => asked.iter().position(|known| *known == row.round).map_or(0, |at| at as u32 + 1),
            };
            let moment = (round, row.round);
            let path = match ways.taken(result.case.cell.transport, way) {
                Taken::This(path) => path,
                Taken::OneOf(paths) => {
                    // Which of them it is nobody knows; others on any of them may have lost to it.
                    shared.extend(paths.into_iter().flatten().map(|hop| (moment, hop)));
                    continue;
                }
                Taken::Unknown(_) => continue,
            };
            let Some(value) = row.value.filter(|value| *value > 0.0) else {
                failed += 1;
                continue;
            };
            for (port, device) in [from, to] {
                if let Some(nic) = ways.nic(&port.host, device) {
                    ports.entry(nic).or_insert_with(|| (port.clone(), device.to_owned()));
                }
            }
            let counts = result.state == State::Measured;
            failed += usize::from(!counts);
            flows.push(Flow { round, moment, counts, path, value, ceiling: row.ceiling });
        }
    }
    let cell = cell?;
    let (flows, [contended, undecided]) = apart(ways, flows, &shared);
    let between = |hop: &Hop| ways.is_switch_cable(*hop);
    let hops = 2 * ways.fabric.links.len() as Hop;
    let mut found = OnLinks {
        test: test.name.clone(),
        size_bytes: cell.size,
        flows: flows.len(),
        contended,
        undecided,
        failed,
        passed: 0,
        of: (0..hops).filter(between).count(),
        suspects: Vec::new(),
        unexplained: 0,
        not_searched: String::new(),
        too_noisy: false,
        waived: journal.plan.localise.waive.contains(&Waiver::All),
    };
    let setting = Setting { least: journal.plan.localise.least_percent / 100.0, noise: 0.0 };
    let tests = tests(ways, &flows);
    let located = parts(ways).and_then(|parts| Ok((fabric::locate(&parts, &tests, &setting)?, parts)));
    let located = match located {
        Err(refusal) => {
            found.not_searched = refusal.to_string();
            None
        }
        Ok((findings, parts)) => {
            let judgements = fabric::confirm(&parts, &tests, &findings, &setting);
            found.passed = (0..hops).filter(between).filter(|hop| findings.passed[*hop as usize] >= 1.0).count();
            found.unexplained = findings.unexplained.len();
            found.too_noisy =
                findings.levels.values().any(|level| outlier_cut(flows.len(), Some(level.n)) * level.scale > HALF);
            let suspects = findings.suspects.iter().zip(&judgements);
            found.suspects = suspects.map(|(suspect, judged)| told(ways, &parts, suspect, judged)).collect();
            Some(Located { cell, parts, tests, findings, judgements, ports, rounds: asked.len() as u32 })
        }
    };
    Some((found, located))
}

/// Round of probes (0 in the test) and round of the test or of further cases: what ran at one time.
type Moment = (u32, u32);

/// A measured flow with a known path.
struct Flow {
    /// 0 in the test, 1 and up in rounds of further cases.
    round: u32,
    /// Flows of one moment ran at one time.
    moment: Moment,
    /// Whether its value may be trusted. A flow that is not took its place on the links all the same.
    counts: bool,
    path: Vec<Hop>,
    /// In Gbit/s.
    value: f64,
    ceiling: Option<f64>,
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
    let good = median(if alone.len() < fabric::FEWEST { better } else { &alone }).unwrap_or_default();
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

/// The fabric as the statistics have it: a link for each hop, switches before NIC ports.
fn parts(ways: &Ways<'_>) -> Result<fabric::Fabric, railgauge_stats::Refusal> {
    let switches = ways.fabric.switches.len() as u32;
    let device = |node: Node| match node {
        Node::Switch(switch) => switch,
        Node::Nic(nic) => switches + nic,
    };
    let hops = 0..2 * ways.fabric.links.len() as Hop;
    let link = |hop: Hop| {
        let (_, from, to) = ways.fabric.hop(hop);
        fabric::Link { from: device(from.node), to: device(to.node), reverse: Some(hop ^ 1) }
    };
    fabric::Fabric::new(hops.map(link).collect())
}

fn tests(ways: &Ways<'_>, flows: &[Flow]) -> Vec<fabric::Test> {
    // Ends of unlike rates are held against what each can carry, where that is known of all.
    let by_ceiling = flows.iter().all(|flow| flow.ceiling.is_some_and(|ceiling| ceiling > 0.0));
    let device = |node: Node| match node {
        Node::Switch(switch) => switch,
        Node::Nic(nic) => nic,
    };
    let mut numbers: BTreeMap<&[Hop], u32> = BTreeMap::new();
    let test = |flow| {
        let Flow { round, path, value, ceiling, .. }: &Flow = flow;
        let next = numbers.len() as u32;
        let number = *numbers.entry(path.as_slice()).or_insert(next);
        let end = |hop: Option<&Hop>, to: bool| {
            hop.map(|hop| ways.fabric.hop(*hop)).map_or(0, |(_, a, b)| device(if to { b.node } else { a.node }))
        };
        let best = ceiling.filter(|_| by_ceiling).unwrap_or(1.0);
        fabric::Test {
            from: end(path.first(), false),
            to: end(path.last(), true),
            flow: number,
            routes: vec![path.clone()],
            kind: u32::from(path.len() > 2),
            round: *round,
            value: Some((value / best).ln()),
        }
    };
    flows.iter().map(test).collect()
}

fn told(ways: &Ways<'_>, parts: &fabric::Fabric, suspect: &Suspect, judged: &Judgement) -> SuspectLink {
    let all = || [suspect.part].into_iter().chain(suspect.alternatives.iter().copied());
    let percent = |effect: f64| 100.0 * effect.exp_m1();
    let mut alternatives: Vec<String> = suspect.alternatives.iter().map(|part| name(ways, part)).collect();
    let name = name(ways, &suspect.part);
    alternatives.retain(|other| *other != name);
    alternatives.dedup();
    let between = |part: Part| match part {
        Part::Device(device) => (device as usize) < ways.fabric.switches.len(),
        part => parts.links_of(&part).iter().any(|hop| ways.is_between_switches(*hop)),
    };
    let (standing, again) = match *judged {
        Judgement::Confirmed { effect, n, .. } => (Standing::Confirmed, (n > 0).then_some((percent(effect), n))),
        Judgement::Cleared { effect, n } => (Standing::Cleared, (n > 0).then_some((percent(effect), n))),
        Judgement::Open { n: 0 } => (Standing::Suspect, None),
        Judgement::Open { .. } => (Standing::Open, None),
    };
    SuspectLink {
        name,
        alternatives,
        standing,
        again_percent: again,
        between_switches: all().any(between),
        change_percent: percent(suspect.effect),
        interval_percent: (suspect.interval.low.is_finite() && suspect.interval.high.is_finite())
            .then(|| (percent(suspect.interval.low), percent(suspect.interval.high))),
        low: suspect.low,
        good: suspect.good,
    }
}

fn name(ways: &Ways<'_>, part: &Part) -> String {
    match *part {
        Part::Link(hop) => ways.name(hop),
        Part::Cable(hop, _) => ways.cable(hop),
        Part::Device(device) => match ways.fabric.switches.get(device as usize) {
            Some(switch) => format!("switch {}", switch.name),
            None => format!("NIC port {device}"),
        },
    }
}
