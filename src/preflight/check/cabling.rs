//! Cables in a wrong port, told from the plan's topology before any traffic.

use std::collections::BTreeMap;

use railgauge_model::topology::{
    Fabric,
    attach::nic_of,
    cabling::{At, Attached, Finding, Run, judge, plugged},
};
use railgauge_wire::remedy;

use super::{Found, Port, Rule, Scene, Severity, Spoils, Subject};

pub(super) const RULE: Rule = Rule {
    reads: "[topology] of the plan; GUIDs and names of RDMA ports",
    meaning: "flows of a rail cross switches that they should not, and share links with others",
    source: "a host is compared with its fellows: most have rail i at one leaf, and ports of one board at ports of one number",
    spoils: Spoils::Everything,
    subject: Subject::Port,
    needs: &[],
    find,
};

/// What it means that cables were not judged.
const UNJUDGED_MEANS: &str = "whether these cables are as they should be is not known";
/// Most notes on what could not be judged.
const UNJUDGED: usize = 5;

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let Some(topology) = &scene.plan.topology else { return Vec::new() };
    let fabric = Fabric::join(&topology.told);
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
    // Sources that know no ports say nothing of single cables.
    if ports.iter().all(|port| port.at.as_ref().is_none_or(|at| at.port.is_none())) {
        return Vec::new();
    }
    let cabling = judge(&ports, &trunks);
    let mut found: Vec<Found> = cabling.findings.iter().flat_map(told).collect();
    found.extend(cabling.unjudged.iter().take(UNJUDGED).map(|why| {
        Found::fabric(Severity::Notice, format!("not judged: {why}"), remedy::MORE_TOPOLOGY).meaning(UNJUDGED_MEANS)
    }));
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
    let words = finding.to_string();
    let of_host = |host: &&str| {
        let what = words.strip_prefix(&format!("{host}: ")).unwrap_or(&words);
        Found::host(Severity::Warning, host, what, remedy::CABLES)
    };
    hosts.iter().map(of_host).collect()
}
