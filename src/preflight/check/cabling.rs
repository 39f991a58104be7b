//! Cables in a wrong port, told from the plan's topology before any traffic.

use std::{borrow::Cow, collections::BTreeMap};

use railgauge_model::{
    plan::Plan,
    topology::{
        Fabric,
        attach::{guid, nic_of},
        cabling::{At, Attached, Finding, Run, judge, plugged},
        lldp, same_host,
        told::{Device, Plug, Told},
    },
};
use railgauge_wire::{
    facts::{HostFacts, NEIGHBOURS},
    remedy,
};

use super::{Found, Need, Port, Rule, Scene, Severity, Spoils, Subject};

pub(super) const RULE: Rule = Rule {
    reads: "[topology] of the plan; without `lldp` there, what lldpd hears on the hosts; GUIDs and names of RDMA ports",
    meaning: "flows of a rail cross switches that they should not, and share links with others",
    source: "a host is compared with its fellows: most have rail i at one leaf, and ports of one board at ports of one number",
    spoils: Spoils::Everything,
    subject: Subject::Port,
    needs: &[Need::Plan(unknown)],
    find,
};

/// What it means that cables were not judged.
const UNJUDGED_MEANS: &str = "whether these cables are as they should be is not known";
/// Most notes on what could not be judged.
const UNJUDGED: usize = 5;

/// Why nothing is known of a host's cables.
fn unknown(plan: &Plan, host: &str, facts: &HostFacts) -> Option<String> {
    if !names_lldp(plan) && hears(facts) {
        return None;
    }
    let Some(topology) = &plan.topology else {
        let why = facts.unreadable.get(NEIGHBOURS).map_or("no switch is heard at its RDMA ports", String::as_str);
        return Some(format!("the plan has no [topology], and of LLDP: {why}"));
    };
    let address = plan.hosts.iter().find(|known| known.name == host).map_or(host, |known| &known.address);
    let guids: Vec<String> = facts.rdma.iter().flat_map(|device| &device.ports).filter_map(guid).collect();
    let is_its = |plug: &Plug| match &plug.device {
        Device::Nic(nic) => {
            let named = |told: &String| [host, address, &facts.hostname].iter().any(|name| same_host(name, told));
            nic.host.as_ref().is_some_and(named) || nic.guid.as_ref().is_some_and(|told| guids.contains(told))
        }
        Device::Switch(_) => false,
    };
    let cabled = topology.told.iter().flat_map(|told| &told.cables).any(|cable| is_its(&cable.a) || is_its(&cable.b));
    (!cabled).then(|| "the topology of the plan has no cable of it".into())
}

/// Whether the plan says what LLDP tells: that may be of another time, and is then not mixed with what the hosts hear now.
fn names_lldp(plan: &Plan) -> bool {
    plan.topology.iter().flat_map(|topology| &topology.told).any(|told| told.source.starts_with("lldp ("))
}

/// Whether a host hears a switch at one of its RDMA ports.
fn hears(facts: &HostFacts) -> bool {
    let heard = facts.neighbours.iter().flatten().filter(|neighbour| neighbour.is_switch);
    let ports = || facts.rdma.iter().flat_map(|device| &device.ports);
    heard.into_iter().any(|heard| ports().any(|port| port.netdev.as_ref() == Some(&heard.interface)))
}

/// What the plan tells, and behind it what the hosts hear.
fn sources<'p>(scene: &Scene<'p>) -> Cow<'p, [Told]> {
    let planned = scene.plan.topology.as_ref().map_or(&[][..], |topology| &topology.told);
    match lldp::heard(scene.hosts()).filter(|_| !names_lldp(scene.plan)) {
        Some(heard) => planned.iter().cloned().chain([heard]).collect(),
        None => Cow::Borrowed(planned),
    }
}

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let sources = sources(scene);
    if sources.is_empty() {
        return Vec::new();
    }
    let fabric = Fabric::join(&sources);
    let (places, trunks) = plugged(&fabric);
    let mut rails: BTreeMap<&str, u32> = BTreeMap::new();
    let ports: Vec<Attached> = scene
        .ports()
        .map(|port| {
            let rail = rails.entry(port.host).or_default();
            *rail += 1;
            attached(scene, (&fabric, &places), port, *rail - 1)
        })
        .collect();
    let has_ports = places.iter().flatten().any(|(at, _)| at.port.is_some());
    // What hosts hear at other interfaces than these is nobody's claim about them.
    if scene.plan.topology.is_some() && has_ports && !ports.is_empty() && ports.iter().all(|port| port.at.is_none()) {
        let what = "not judged: the topology has cables, and none at a NIC of these hosts";
        return vec![Found::fabric(Severity::Notice, what, remedy::MORE_TOPOLOGY).meaning(UNJUDGED_MEANS)];
    }
    // Sources that know no ports say nothing of single cables.
    if ports.iter().all(|port| port.at.as_ref().is_none_or(|at| at.port.is_none())) {
        return Vec::new();
    }
    let cabling = judge(&ports, &trunks);
    let mut found: Vec<Found> = cabling.findings.iter().flat_map(told).collect();
    // It may be any host's: who demands that nothing is found is not told that all was looked at.
    let notice = |why: &str| {
        let what = format!("not judged: {why}");
        let of_host = move |(host, _): (&str, &HostFacts)| {
            let found = Found::host(Severity::Notice, host, what.clone(), remedy::MORE_TOPOLOGY);
            found.meaning(UNJUDGED_MEANS).unread()
        };
        scene.hosts().map(of_host).collect::<Vec<Found>>()
    };
    found.extend(cabling.unjudged.iter().take(UNJUDGED).flat_map(|why| notice(why)));
    if cabling.unjudged.len() > UNJUDGED {
        found.extend(notice(&format!("{} more", cabling.unjudged.len() - UNJUDGED)));
    }
    found
}

/// What is known of each NIC port of a fabric.
type Places<'f> = (&'f Fabric, &'f [Option<(At, Run)>]);

fn attached(scene: &Scene<'_>, (fabric, places): Places<'_>, port: Port<'_>, rail: u32) -> Attached {
    let address = scene.plan.hosts.iter().find(|host| host.name == port.host).map_or(port.host, |host| &host.address);
    let nic = nic_of(fabric, &[port.host, address], Some(&port.name()), Some(port.facts));
    // Ports of one board are functions of one PCI device.
    let board = port.device.pci.as_ref().map(|pci| pci.split('.').next().unwrap_or(pci).to_owned());
    let (at, run) = nic.and_then(|nic| places.get(nic as usize)?.clone()).unzip();
    Attached { host: port.host.to_owned(), device: port.name(), rail, board, at, run: run.unwrap_or_default() }
}

/// A finding at each host that it is about.
fn told(finding: &Finding) -> Vec<Found> {
    let hosts = finding.hosts();
    if hosts.is_empty() {
        return vec![Found::fabric(Severity::Warning, finding.to_string(), remedy::CABLES)];
    }
    hosts.iter().map(|host| Found::host(Severity::Warning, host, finding.to_string(), remedy::CABLES)).collect()
}
