use railgauge_model::topology::{
    Fabric,
    attach::{guid, nic_of},
    cabling::{At, Attached, Finding, Run, Unjudged, judge, plugged},
    lldp, same_host,
    told::{Device, Plug, Told},
};

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "[topology] of the plan; without `lldp` there, what lldpd hears on the hosts; GUIDs and names of RDMA ports",
    meaning: "flows of a rail cross switches that they should not, and share links with others",
    source: "a host is compared with its peers: most have rail i at one leaf, and ports of one board at ports of one number",
    spoils: Spoils::Everything,
    subject: Subject::Port,
    needs: &[Need::Plan(unknown)],
    find,
};

const UNJUDGED_MEANS: &str = "whether these cables are as they should be is not known";
const UNJUDGED: usize = 5;

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

/// Whether the plan has LLDP sources: they may be outdated, and are then not mixed with what the hosts receive now.
fn names_lldp(plan: &Plan) -> bool {
    plan.topology.iter().flat_map(|topology| &topology.told).any(|told| told.source.starts_with("lldp ("))
}

fn hears(facts: &HostFacts) -> bool {
    let heard = facts.neighbours.iter().flatten().filter(|neighbour| neighbour.is_switch);
    let ports = || facts.rdma.iter().flat_map(|device| &device.ports);
    heard.into_iter().any(|heard| ports().any(|port| port.netdev.as_ref() == Some(&heard.interface)))
}

fn sources<'p>(scene: &Scene<'p>) -> Cow<'p, [Told]> {
    let planned = scene.plan.topology.as_ref().map_or(&[][..], |topology| &topology.told);
    match lldp::heard(scene.hosts()).filter(|_| !names_lldp(scene.plan)) {
        Some(heard) => planned.iter().cloned().chain([heard]).collect(),
        None => Cow::Borrowed(planned),
    }
}

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let sources = sources(scene);
    if sources.is_empty() {
        return;
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
    if scene.plan.topology.is_some() && has_ports && !ports.is_empty() && ports.iter().all(|port| port.at.is_none()) {
        let what = "not judged: the topology has cables, and none at a NIC of these hosts";
        found.push(Found::fabric(Notice, what, remedy::MORE_TOPOLOGY).meaning(UNJUDGED_MEANS));
        return;
    }
    // LLDP at other interfaces does not concern the plan's ports.
    if !ports.iter().any(|port| port.at.as_ref().is_some_and(|at| at.port.is_some())) && !names_ports(&sources) {
        return;
    }
    let cabling = judge(&ports, &trunks);
    found.extend(cabling.findings.iter().flat_map(told));
    found.extend(not_judged(scene, &cabling.unjudged));
}

/// A notice at each host that was not judged: a plan that requires no findings must see that not everything was checked. Links between
/// switches may concern any host.
fn not_judged(scene: &Scene<'_>, unjudged: &[Unjudged]) -> Vec<Found> {
    // One reason at several hosts is one.
    let mut reasons: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in unjudged {
        let hosts = reasons.entry(&one.why).or_default();
        match one.hosts.as_slice() {
            [] => hosts.extend(scene.hosts().map(|(host, _)| host)),
            own => hosts.extend(own.iter().map(String::as_str)),
        }
    }
    let notice = |host: &str, why: &str| {
        let found = Found::host(Notice, host, format!("not judged: {why}"), remedy::MORE_TOPOLOGY);
        found.meaning(UNJUDGED_MEANS).unread()
    };
    let more = reasons.len().saturating_sub(UNJUDGED);
    let rest: BTreeSet<&str> = reasons.values().skip(UNJUDGED).flatten().copied().collect();
    let told = reasons.iter().take(UNJUDGED).flat_map(|(why, hosts)| hosts.iter().map(move |host| notice(host, why)));
    let rest = rest
        .into_iter()
        .map(|host| notice(host, &format!("for {}, some of them at this host", count(more, "more reason"))));
    told.chain(rest).collect()
}

/// Whether sources name the NIC ports at which cables end, by device or GUID.
fn names_ports(sources: &[Told]) -> bool {
    let mut ends = sources.iter().flat_map(|told| &told.cables).flat_map(|cable| [&cable.a, &cable.b]);
    ends.any(|plug| matches!(&plug.device, Device::Nic(nic) if nic.device.is_some() || nic.guid.is_some()))
}

type Places<'f> = (&'f Fabric, &'f [Option<(At, Run)>]);

fn attached(scene: &Scene<'_>, (fabric, places): Places<'_>, port: Port<'_>, rail: u32) -> Attached {
    let address = scene.plan.hosts.iter().find(|host| host.name == port.host).map_or(port.host, |host| &host.address);
    let nic = nic_of(fabric, &[port.host, address], Some(&port.name()), Some(port.facts));
    // Ports of one board are functions of one PCI device.
    let board = port.device.pci.as_ref().map(|pci| pci.split('.').next().unwrap_or(pci).to_owned());
    let (at, run) = nic.and_then(|nic| places.get(nic as usize)?.clone()).unzip();
    // A port of Ethernet is active if it has a carrier, hence a cable.
    let is_up = port.port.state.as_deref().map(|state| state == "ACTIVE");
    Attached { host: port.host.to_owned(), device: port.name(), rail, board, at, run: run.unwrap_or_default(), is_up }
}

fn told(finding: &Finding) -> Vec<Found> {
    let (meaning, remedy) = match finding {
        Finding::Swapped { .. } | Finding::WrongLeaf { .. } => (RULE.meaning, remedy::CABLES),
        Finding::UnlikePorts { .. } => {
            ("cables of this board are not where those of its peers are: one may be in another's place", remedy::CABLES)
        }
        Finding::Uncabled { .. } => ("nothing runs over this rail of the host", remedy::CHECK_CABLE),
        Finding::Claimed { .. } => (
            "where one of these hosts is plugged in is not known, and what is said of its rails may be wrong",
            remedy::CABLES,
        ),
        Finding::Slower { .. } => ("flows over this link reach no more than it runs at", remedy::CHECK_CABLE),
    };
    let hosts = finding.hosts();
    let what = finding.to_string();
    if hosts.is_empty() {
        return vec![Found::fabric(Warning, what, remedy).meaning(meaning)];
    }
    hosts.iter().map(|host| Found::host(Warning, host, what.clone(), remedy).meaning(meaning)).collect()
}
