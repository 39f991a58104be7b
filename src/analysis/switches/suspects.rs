//! Which cable or switch explains the values of a test's pairs: names in words from [`railgauge_stats::fabric`].
//!
//! Only flows count whose path is known, and which did not share a link that was full: what a flow loses to another one on the same
//! link is no fault of it.

use std::collections::{BTreeMap, HashMap};

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

/// A link with more than this share of its rate on it, from several flows, was full: a flow may have lost to the others.
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
    /// Flows that were left out because they shared a full link with others.
    pub contended: usize,
    /// Directions of links between switches that a judged flow passed.
    pub passed: usize,
    /// All directions of links between switches.
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
    /// Difference from good flows in percent, with its 95 % interval.
    pub change_percent: [f64; 3],
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
    /// Rounds of further cases that were measured for links.
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
    let mut ports = BTreeMap::new();
    let mut cell = None;
    let mut flows = Vec::new();
    let mut rounds: Vec<u32> = Vec::new();
    for (is_further, (results, rows)) in [(false, of_run.tests), (true, of_run.further)] {
        let cases: HashMap<u64, &CaseResult<'_>> = results
            .iter()
            .filter(|result| result.case.test == test.name)
            .map(|result| (result.case.id, result))
            .collect();
        let of_test = |row: &&Row| row.test == test.name && row.metric == Metric::Bandwidth && row.value.is_some();
        if !is_further {
            let most = rows.iter().filter(of_test).max_by_key(|row| (row.size_bytes, row.qps))?;
            cell = cases.get(&most.case).map(|result| result.case.cell.clone());
        }
        for row in rows.iter().filter(of_test) {
            let Some(result) = cases.get(&row.case) else { continue };
            if Some(&result.case.cell) != cell.as_ref() {
                continue;
            }
            let [from, to] = ends(row, &result.case.flow);
            let way = if result.case.cell.op.pulls() { [to, from] } else { [from, to] };
            let (Taken::This(path), Some(value)) = (ways.taken(result.case.cell.transport, way), row.value) else {
                continue;
            };
            for (port, device) in [from, to] {
                if let Some(nic) = ways.nic(&port.host, device) {
                    ports.entry(nic).or_insert_with(|| (port.clone(), device.to_owned()));
                }
            }
            // Numbers of rounds begin again for further cases.
            let round = match is_further {
                false => 0,
                true => {
                    let at = rounds.iter().position(|known| *known == row.round).unwrap_or_else(|| {
                        rounds.push(row.round);
                        rounds.len() - 1
                    });
                    at as u32 + 1
                }
            };
            let counts = result.state == State::Measured;
            flows.push(Flow { round, moment: (round, row.round), counts, path, value, ceiling: row.ceiling });
        }
    }
    let cell = cell?;
    let measured = flows.iter().filter(|flow| flow.counts).count();
    let flows = apart(ways, flows);
    let between = |hop: &Hop| ways.is_between_switches(*hop);
    let hops = 2 * ways.fabric.links.len() as Hop;
    let mut found = OnLinks {
        test: test.name.clone(),
        size_bytes: cell.size,
        flows: flows.len(),
        contended: measured - flows.len(),
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
            Some(Located { cell, parts, tests, findings, judgements, ports, rounds: rounds.len() as u32 })
        }
    };
    Some((found, located))
}

/// A measured flow with a known path.
struct Flow {
    /// 0 in the test, 1 and up in rounds of further cases.
    round: u32,
    /// Flows of one moment ran at one time.
    moment: (u32, u32),
    /// Whether its value may be trusted. A flow that is not took its place on the links all the same.
    counts: bool,
    path: Vec<Hop>,
    /// In Gbit/s.
    value: f64,
    ceiling: Option<f64>,
}

/// Below this share of what flows reach in the median a flow is low enough to ask whether it lost to others on its links.
const LOW: f64 = 0.9;

/// The flows without what they did to each other. On a link that was full nothing can be told. A low flow on a link with others may be low
/// because of them: if all of them together carried less than one good flow, the link itself is slow, and carried so much; else the
/// flow says nothing.
fn apart(ways: &Ways<'_>, flows: Vec<Flow>) -> Vec<Flow> {
    let mut on: HashMap<((u32, u32), Hop), (f64, usize)> = HashMap::new();
    for flow in &flows {
        for hop in &flow.path {
            let (sum, count) = on.entry((flow.moment, *hop)).or_default();
            (*sum, *count) = (*sum + flow.value, *count + 1);
        }
    }
    let good =
        median(&flows.iter().filter(|flow| flow.counts).map(|flow| flow.value).collect::<Vec<_>>()).unwrap_or_default();
    let judged = |mut flow: Flow| {
        let shared = |hop: &&Hop| on.get(&(flow.moment, **hop)).is_some_and(|(_, count)| *count > 1);
        let sum = |hop: &Hop| on.get(&(flow.moment, *hop)).map_or(0.0, |(sum, _)| *sum);
        let is_full = |hop: &Hop| ways.fabric.hop(*hop).0.rate_gbps.is_none_or(|rate| sum(hop) > FULL * rate);
        if flow.path.iter().filter(shared).any(is_full) {
            return None;
        }
        let least = flow.path.iter().filter(shared).map(sum).min_by(f64::total_cmp);
        if let Some(least) = least.filter(|_| flow.value < LOW * good) {
            if least >= LOW * good {
                return None;
            }
            flow.value = flow.value.max(least);
        }
        Some(flow)
    };
    flows.into_iter().filter(|flow| flow.counts).filter_map(judged).collect()
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
        change_percent: [suspect.effect, suspect.interval.low, suspect.interval.high].map(percent),
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
