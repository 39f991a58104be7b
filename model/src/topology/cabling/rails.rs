use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    finding::{Agree, Cabling, Finding, Unjudged, most},
    plugged::Attached,
};

type Leaves<'a> = BTreeSet<&'a str>;

pub(super) struct Host<'a> {
    name: &'a str,
    rails: BTreeMap<u32, Vec<&'a Attached>>,
    at: BTreeMap<u32, Leaves<'a>>,
    all: Leaves<'a>,
}

pub(super) fn hosts(ports: &[Attached]) -> Vec<Host<'_>> {
    let mut by_name: BTreeMap<&str, BTreeMap<u32, Vec<&Attached>>> = BTreeMap::new();
    for port in ports {
        by_name.entry(&port.host).or_default().entry(port.rail).or_default().push(port);
    }
    let bare = |(name, rails)| Host { name, rails, at: BTreeMap::new(), all: Leaves::new() };
    let mut hosts: Vec<Host<'_>> = by_name.into_iter().map(bare).collect();
    for host in &mut hosts {
        for (rail, ports) in &host.rails {
            let leaves: Leaves<'_> =
                ports.iter().filter_map(|port| port.at.as_ref()).map(|at| at.key.as_str()).collect();
            host.all.extend(&leaves);
            if !leaves.is_empty() {
                host.at.insert(*rail, leaves);
            }
        }
    }
    hosts
}

/// Reasons for missing judgements, and the hosts.
type Silence<'a> = BTreeMap<String, BTreeSet<&'a str>>;

pub(super) fn judge(hosts: &[Host<'_>], cabling: &mut Cabling) {
    let mut below: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, host) in hosts.iter().enumerate() {
        for leaf in &host.all {
            below.entry(leaf).or_default().push(place);
        }
    }
    let mut silence = Silence::new();
    for (place, host) in hosts.iter().enumerate().filter(|(_, host)| !host.all.is_empty()) {
        match fellows(hosts, place, &below) {
            Ok(fellows) => among(host, &fellows, &below, cabling, &mut silence),
            Err(Alone(why)) => {
                silence.entry(why.to_owned()).or_default().insert(host.name);
            }
        }
    }
    for (why, names) in silence {
        cabling.unjudged.push(Unjudged::new(names, why));
    }
}

/// Why a host has no peers.
struct Alone(&'static str);

/// The peers of a host: those that share the most leaves, at least two, and more than half of the host's.
fn fellows<'h, 'a>(
    hosts: &'h [Host<'a>],
    place: usize,
    below: &HashMap<&str, Vec<usize>>,
) -> Result<Vec<&'h Host<'a>>, Alone> {
    let host = &hosts[place];
    let mut shared: BTreeMap<usize, usize> = BTreeMap::new();
    for leaf in &host.all {
        for other in below[leaf].iter().filter(|other| **other != place) {
            *shared.entry(*other).or_default() += 1;
        }
    }
    if shared.is_empty() {
        return Err(Alone("rails: no other host is at the same leaves"));
    }
    // Rails are numbered from the first NIC of a plan: hosts with other numbers of rails are not comparable.
    shared.retain(|other, _| hosts[*other].rails.keys().eq(host.rails.keys()));
    let mut counts: Vec<usize> = shared.values().copied().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    match counts.get(1) {
        None => Err(Alone("rails: fewer than two other hosts with as many rails are at the same leaves")),
        Some(least) if 2 * least <= host.all.len() => {
            Err(Alone("rails: no two other hosts share more than half of the leaves"))
        }
        Some(least) => {
            Ok(shared.iter().filter(|(_, count)| *count >= least).map(|(other, _)| &hosts[*other]).collect())
        }
    }
}

/// What the rails of a host's peers have in common, and where the host differs.
fn among<'a>(
    host: &Host<'a>,
    fellows: &[&Host<'a>],
    below: &HashMap<&str, Vec<usize>>,
    cabling: &mut Cabling,
    silence: &mut Silence<'a>,
) {
    let mut expected: BTreeMap<u32, (&Leaves<'a>, Agree)> = BTreeMap::new();
    for rail in host.at.keys() {
        let all = fellows.iter().copied().chain([host]).filter_map(|one| one.at.get(rail));
        match most(all) {
            Some((leaves, agree)) if agree.is_rule() => {
                expected.insert(*rail, (leaves, agree));
            }
            _ => {
                let why = format!("rail {rail}: the hosts at these leaves have no common leaf for it");
                silence.entry(why).or_default().insert(host.name);
            }
        }
    }
    let mut off: BTreeMap<u32, (Leaves<'a>, Leaves<'a>)> = BTreeMap::new();
    for (rail, (leaves, _)) in &expected {
        let own = &host.at[rail];
        if own != *leaves {
            off.insert(*rail, (own - leaves, *leaves - own));
        }
    }
    swaps(host, &expected, &mut off, cabling);
    if 2 * off.len() > host.at.len() {
        let why = "rails: most are at other leaves than those of the other hosts there";
        silence.entry(why.into()).or_default().insert(host.name);
        return;
    }
    for (rail, (extra, missing)) in off {
        let (Some(extra), Some(missing)) = (extra.first(), missing.first()) else { continue };
        let is_shared = fellows.iter().any(|fellow| fellow.at.get(&rail) == host.at.get(&rail));
        // A design of a few hosts, or a leaf with no other host: not one cable in the wrong place.
        if is_shared || below[extra].len() < 2 {
            let why = format!("rail {rail}: it is at a leaf where no other host has it");
            silence.entry(why).or_default().insert(host.name);
            continue;
        }
        let Some(port) = at_leaf(host, rail, extra) else { continue };
        let Some(at) = port.at.clone() else { continue };
        cabling.findings.push(Finding::WrongLeaf {
            host: host.name.into(),
            rail,
            device: port.device.clone(),
            at,
            expected: name_of(fellows, missing),
            like: expected.iter().find(|(_, (leaves, _))| leaves.contains(extra)).map(|(rail, _)| *rail),
            agree: expected[&rail].1,
        });
    }
}

fn swaps<'a>(
    host: &Host<'a>,
    expected: &BTreeMap<u32, (&Leaves<'a>, Agree)>,
    off: &mut BTreeMap<u32, (Leaves<'a>, Leaves<'a>)>,
    cabling: &mut Cabling,
) {
    let rails: Vec<u32> = off.keys().copied().collect();
    for one in &rails {
        let Some((extra, missing)) = off.get(one) else { continue };
        let mirrored = |(rail, (its_extra, its_missing)): (&u32, &(Leaves<'_>, Leaves<'_>))| {
            (rail > one && its_extra == missing && its_missing == extra).then_some(*rail)
        };
        let Some(other) = off.iter().find_map(mirrored) else { continue };
        let found = |rail: u32, leaf: &Leaves<'_>| {
            let port = at_leaf(host, rail, leaf.first()?)?;
            Some((rail, port.device.clone(), port.at.clone()?))
        };
        if let (Some(first), Some(second)) = (found(*one, extra), found(other, missing)) {
            let agree =
                [expected[one].1, expected[&other].1].into_iter().min_by_key(|agree| agree.agree).unwrap_or_default();
            cabling.findings.push(Finding::Swapped { host: host.name.into(), rails: [first, second], agree });
            off.remove(one);
            off.remove(&other);
        }
    }
}

fn at_leaf<'a>(host: &Host<'a>, rail: u32, leaf: &str) -> Option<&'a Attached> {
    let at = |port: &&&Attached| port.at.as_ref().is_some_and(|at| at.key == leaf);
    host.rails.get(&rail)?.iter().find(at).copied()
}

fn name_of(hosts: &[&Host<'_>], leaf: &str) -> String {
    let all = hosts.iter().flat_map(|host| host.rails.values().flatten());
    let name = all.filter_map(|port| port.at.as_ref()).find(|at| at.key == leaf).map(|at| at.name.clone());
    name.unwrap_or_else(|| leaf.to_owned())
}

/// Finds rails with fewer cables than the others have. Hosts unknown to all sources are not judged.
pub(super) fn uncabled(hosts: &[Host<'_>], cabling: &mut Cabling) {
    let cabled = |ports: &[&Attached]| ports.iter().filter(|port| port.at.is_some()).count();
    let unseen: BTreeSet<&str> = hosts.iter().filter(|host| host.all.is_empty()).map(|host| host.name).collect();
    if !unseen.is_empty() {
        cabling.unjudged.push(Unjudged::new(unseen, "no source knows a cable here"));
    }
    let mut counts: BTreeMap<(Vec<u32>, u32), Vec<usize>> = BTreeMap::new();
    let kind = |host: &Host<'_>| host.rails.keys().copied().collect::<Vec<_>>();
    let seen = || hosts.iter().filter(|host| !host.all.is_empty());
    for host in seen() {
        for (rail, ports) in &host.rails {
            counts.entry((kind(host), *rail)).or_default().push(cabled(ports));
        }
    }
    for host in seen() {
        for (rail, ports) in &host.rails {
            let Some((usual, agree)) = most(counts[&(kind(host), *rail)].iter().copied()) else { continue };
            let bare = || ports.iter().filter(|port| port.at.is_none());
            let devices: Vec<String> = bare().map(|port| port.device.clone()).collect();
            if cabled(ports) < usual && agree.is_rule() && bare().all(|port| port.is_up == Some(true)) {
                // The cable exists: only its end is unknown.
                let list = devices.join(", ");
                let why = format!("rail {rail}: no source shows where {list} is plugged in, and its link is up");
                cabling.unjudged.push(Unjudged::new([host.name], why));
            } else if cabled(ports) < usual && agree.is_rule() {
                cabling.findings.push(Finding::Uncabled { host: host.name.into(), rail: *rail, devices, agree });
            } else if cabled(ports) < ports.len() && !agree.is_rule() {
                let why = format!("rail {rail}: no source knows a cable of it, and the other hosts do not agree");
                cabling.unjudged.push(Unjudged::new([host.name], why));
            }
        }
    }
}
