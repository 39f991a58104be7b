//! Finds the cable or switch that explains the values of a test's pairs, with [`railgauge_stats::fabric`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use railgauge_model::{
    plan::model::{Test, Waiver},
    schedule::{self, Cell, Port},
    topology::fabric::{Hop, Node},
};
use railgauge_stats::{
    fabric::{self, Judgement, Part, Setting, Suspect},
    robust::outlier_cut,
};
use railgauge_wire::Bytes;
use serde::Serialize;

use super::{
    flows::{Flow, Gathered, Measured, gather},
    ways::Ways,
};
use crate::{journal::Journal, localise::Standing};

/// The effect that must be detectable: a link at half its rate, as a difference of logarithms.
const HALF: f64 = std::f64::consts::LN_2;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OnLinks {
    pub test: String,
    /// In bytes.
    pub size_bytes: Bytes,
    pub flows: usize,
    /// Low flows excluded because they shared a full link.
    pub contended: usize,
    /// Low flows excluded because they shared a link of unknown capacity or load.
    pub undecided: usize,
    pub failed: usize,
    pub passed: usize,
    pub of: usize,
    /// Lowest first.
    pub suspects: Vec<SuspectLink>,
    /// Low flows that no part explains: all their links were good in other flows.
    pub unexplained: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub not_searched: String,
    pub too_noisy: bool,
    pub waived: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SuspectLink {
    /// For example `leaf12 port 7, cable to gpu031 mlx5_3`.
    pub name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    pub standing: Standing,
    /// Difference from controls when measured again, in percent, and the number of flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_percent: Option<(f64, usize)>,
    pub between_switches: bool,
    pub change_percent: f64,
    /// 95 %; `None` with too few flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_percent: Option<(f64, f64)>,
    pub low: usize,
    pub good: usize,
    #[serde(skip)]
    pub passed_by: BTreeSet<schedule::Flow>,
}

impl OnLinks {
    pub fn standing(&self) -> impl Iterator<Item = &SuspectLink> {
        self.suspects.iter().filter(|suspect| suspect.between_switches && suspect.standing != Standing::Cleared)
    }

    pub fn explains_all(&self) -> bool {
        self.unexplained == 0 && self.standing().next().is_some()
    }

    /// Suspects on the path of all of these flows; `None` without any.
    pub fn passed_by_all(&self, flows: &[&schedule::Flow]) -> Option<&SuspectLink> {
        let all = |suspect: &&SuspectLink| flows.iter().all(|flow| suspect.passed_by.contains(*flow));
        self.standing().find(all).filter(|_| !flows.is_empty())
    }
}

pub(super) struct Located {
    pub cell: Arc<Cell>,
    pub parts: fabric::Fabric,
    pub tests: Vec<fabric::Test>,
    pub findings: fabric::Findings,
    pub judgements: Vec<Judgement>,
    pub ports: BTreeMap<u32, (Port, String)>,
    pub rounds: u32,
}

/// `None` without pairs whose bandwidth was measured in one direction, one by one on their NICs.
pub(super) fn search(
    ways: &Ways<'_>,
    journal: &Journal,
    test: &Test,
    of_run: &Measured<'_>,
) -> Option<(OnLinks, Option<Located>)> {
    let Gathered { cell, flows, failed, ports, rounds } = gather(ways, journal, test, of_run)?;
    let (flows, [contended, undecided]) = flows;
    let between = |hop: &Hop| ways.is_switch_cable(*hop);
    let mut found = OnLinks {
        test: test.name.clone(),
        size_bytes: cell.size,
        flows: flows.len(),
        contended,
        undecided,
        failed,
        of: ways.fabric.hops().filter(between).count(),
        waived: journal.plan.localise.waive.contains(&Waiver::All),
        ..OnLinks::default()
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
            found.passed =
                ways.fabric.hops().filter(between).filter(|hop| findings.passed[*hop as usize] >= 1.0).count();
            found.unexplained = findings.unexplained.len();
            found.too_noisy =
                findings.levels.values().any(|level| outlier_cut(flows.len(), Some(level.n)) * level.scale > HALF);
            let suspects = findings.suspects.iter().zip(&judgements);
            found.suspects = suspects.map(|(suspect, judged)| told((ways, &flows), &parts, suspect, judged)).collect();
            Some(Located { cell, parts, tests, findings, judgements, ports, rounds })
        }
    };
    Some((found, located))
}

fn parts(ways: &Ways<'_>) -> Result<fabric::Fabric, railgauge_stats::Refusal> {
    let link = |hop: Hop| {
        let (_, from, to) = ways.fabric.hop(hop);
        fabric::Link { from: device(ways, from.node), to: device(ways, to.node), reverse: Some(hop ^ 1) }
    };
    fabric::Fabric::new(ways.fabric.hops().map(link).collect())
}

fn device(ways: &Ways<'_>, node: Node) -> u32 {
    match node {
        Node::Switch(switch) => switch,
        Node::Nic(nic) => ways.fabric.switches.len() as u32 + nic,
    }
}

fn tests(ways: &Ways<'_>, flows: &[Flow]) -> Vec<fabric::Test> {
    // Ends of different rates are compared with their own capacity, if that is known for all.
    let by_ceiling = flows.iter().all(|flow| flow.ceiling.is_some_and(|ceiling| ceiling > 0.0));
    let end = |node| match node {
        Node::Nic(nic) | Node::Switch(nic) => nic,
    };
    let mut numbers: BTreeMap<&[Hop], u32> = BTreeMap::new();
    let test = |flow| {
        let Flow { round, path, value, ceiling, .. }: &Flow = flow;
        let next = numbers.len() as u32;
        let number = *numbers.entry(path.as_slice()).or_insert(next);
        let best = ceiling.filter(|_| by_ceiling).unwrap_or(1.0);
        fabric::Test {
            from: path.first().map_or(0, |hop| end(ways.fabric.hop(*hop).1.node)),
            to: path.last().map_or(0, |hop| end(ways.fabric.hop(*hop).2.node)),
            flow: number,
            routes: vec![path.clone()],
            kind: u32::from(path.len() > 2),
            round: *round,
            value: Some((value / best).ln()),
        }
    };
    flows.iter().map(test).collect()
}

fn told(
    (ways, flows): (&Ways<'_>, &[Flow]),
    parts: &fabric::Fabric,
    suspect: &Suspect,
    judged: &Judgement,
) -> SuspectLink {
    let hops = parts.links_of(&suspect.part);
    let passes = |flow: &&Flow| flow.round == 0 && flow.path.iter().any(|hop| hops.contains(hop));
    let all = || [suspect.part].into_iter().chain(suspect.alternatives.iter().copied());
    let percent = |effect: f64| 100.0 * effect.exp_m1();
    let mut alternatives: Vec<String> = suspect.alternatives.iter().map(|part| name(ways, part)).collect();
    let name = name(ways, &suspect.part);
    alternatives.retain(|other| *other != name);
    alternatives.dedup();
    let between = |part: Part| match part {
        Part::Device(device) => (device as usize) < ways.fabric.switches.len(),
        part => parts.links_of(&part).iter().any(|hop| ways.fabric.hop(*hop).0.is_between_switches()),
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
        passed_by: flows.iter().filter(passes).map(|flow| flow.ends.clone()).collect(),
    }
}

fn name(ways: &Ways<'_>, part: &Part) -> String {
    match *part {
        Part::Link(hop) => ways.fabric.hop_name(hop),
        Part::Cable(hop, _) => ways.cable(hop),
        Part::Device(device) => match ways.fabric.switches.get(device as usize) {
            Some(switch) => format!("switch {}", switch.name),
            None => format!("NIC port {device}"),
        },
    }
}
