//! Finds links that are narrower or slower than their neighbours.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    finding::{Agree, Cabling, Finding, Unjudged, most},
    plugged::{Attached, Run, Trunk},
};
use crate::topology::ibnetdiscover::lane_gbps;

/// Mbit/s, lanes, Mbit/s of a lane.
type Pace = [Option<u64>; 3];

fn pace(run: &Run) -> Pace {
    let mbit = |gbit: f64| (gbit * 1000.0).round() as u64;
    [run.rate_gbps.map(mbit), run.width.map(u64::from), run.speed.as_deref().and_then(lane_gbps).map(mbit)]
}

fn is_known(pace: Pace) -> bool {
    pace.iter().any(Option::is_some)
}

/// Whether a link is lower than another in something that is known of both. Fewer but faster lanes at the same rate are not lower.
fn is_lower(one: Pace, other: Pace) -> bool {
    let lower = |at: usize| one[at].zip(other[at]).map(|(one, other)| one < other);
    lower(0).unwrap_or_else(|| (1..3).any(|at| lower(at) == Some(true)))
}

fn words(pace: Pace) -> String {
    let [rate, width, lane] = pace;
    let rate = rate.map(|rate| format!("{} Gbit/s", rate as f64 / 1000.0));
    let lanes = match (width, lane) {
        (Some(width), Some(lane)) => Some(format!("{width} lanes of {} Gbit/s", lane as f64 / 1000.0)),
        (Some(width), None) => Some(format!("{width} lanes")),
        (None, Some(lane)) => Some(format!("lanes of {} Gbit/s", lane as f64 / 1000.0)),
        (None, None) => None,
    };
    match (rate, lanes) {
        (Some(rate), Some(lanes)) => format!("{rate} ({lanes})"),
        (one, other) => one.or(other).unwrap_or_default(),
    }
}

fn usual(paces: &[Pace]) -> Option<(Pace, Agree)> {
    most(paces.iter().copied()).filter(|(_, agree)| agree.is_rule())
}

/// Compares links of hosts with those of the same rail at the same leaf, and links between switches with the others at both ends: an uplink
/// to slower equipment is slow among a spine's links, but like all others at its far end.
pub(super) fn judge(ports: &[Attached], trunks: &[Trunk], cabling: &mut Cabling) {
    let mut alone = 0;
    let mut hosts: BTreeSet<&str> = BTreeSet::new();
    let mut beside: BTreeMap<(&str, u32), Vec<(&Attached, Pace)>> = BTreeMap::new();
    for port in ports {
        let pace = pace(&port.run);
        if let (Some(at), true) = (&port.at, is_known(pace)) {
            beside.entry((&at.key, port.rail)).or_default().push((port, pace));
        }
    }
    let mut at_leaf: BTreeMap<&str, Vec<Pace>> = BTreeMap::new();
    for ((leaf, _), links) in &beside {
        at_leaf.entry(leaf).or_default().extend(links.iter().map(|(_, pace)| *pace));
    }
    for ((leaf, _), links) in beside {
        let paces: Vec<Pace> = links.iter().map(|(_, pace)| *pace).collect();
        let Some((fellows, agree)) = usual(&paces) else {
            // Few links of the rail at a leaf do not decide against the other rails there, but may confirm the majority.
            let others = usual(&at_leaf[leaf]).map(|(pace, _)| pace);
            let unlike = links.iter().filter(|(_, pace)| Some(*pace) != others);
            let unlike: Vec<&str> = unlike.map(|(port, _)| port.host.as_str()).collect();
            alone += unlike.len();
            hosts.extend(unlike);
            continue;
        };
        for (port, pace) in links.iter().filter(|(_, pace)| is_lower(*pace, fellows)) {
            let Some(at) = &port.at else { continue };
            let ends = [format!("{} {}", port.host, port.device), at.to_string()];
            let host = Some(port.host.clone());
            cabling.findings.push(Finding::Slower { host, ends, run: words(*pace), fellows: words(fellows), agree });
        }
    }
    let mut at: BTreeMap<&str, Vec<Pace>> = BTreeMap::new();
    let known = || trunks.iter().map(|trunk| (trunk, pace(&trunk.run))).filter(|(_, pace)| is_known(*pace));
    for (trunk, pace) in known() {
        for end in &trunk.ends {
            at.entry(&end.key).or_default().push(pace);
        }
    }
    let usual: BTreeMap<&str, Option<(Pace, Agree)>> =
        at.into_iter().map(|(key, paces)| (key, usual(&paces))).collect();
    for (trunk, pace) in known() {
        let [Some(one), Some(other)] = [&trunk.ends[0], &trunk.ends[1]].map(|end| usual[end.key.as_str()]) else {
            alone += 1;
            continue;
        };
        if is_lower(pace, one.0) && is_lower(pace, other.0) {
            let ends = [trunk.ends[0].to_string(), trunk.ends[1].to_string()];
            let (fellows, agree) = one;
            let (run, fellows) = (words(pace), words(fellows));
            cabling.findings.push(Finding::Slower { host: None, ends, run, fellows, agree });
        }
    }
    if alone > 0 {
        let why = match alone {
            1 => "width and speed of 1 link: its peers are too few or do not agree".to_owned(),
            n => format!("width and speed of {n} links: their peers are too few or do not agree"),
        };
        cabling.unjudged.push(Unjudged::new(hosts, why));
    }
}
