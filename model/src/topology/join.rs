use std::collections::{HashMap, HashSet};

use super::{Device, Nic, Plug, Told, short};

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum At {
    Switch(u32),
    Nic(Nic),
}

#[derive(Debug, Clone)]
pub(super) struct Joined {
    pub ends: [(At, Option<String>); 2],
    pub rate_gbps: Option<f64>,
    pub width: Option<u32>,
    pub speed: Option<String>,
}

/// Every cable once, merged from all sources. A port has one cable: where an earlier source has another one in it, the later cable is
/// dropped with a remark. Cables without ports, or with hosts only, yield to more detailed ones.
pub(super) fn cables(told: &[Told], keys: &HashMap<&str, u32>, remarks: &mut Vec<String>) -> Vec<Joined> {
    let mut all: Vec<Joined> = Vec::new();
    let mut place: HashMap<Vec<Half>, usize> = HashMap::new();
    let mut taken: HashSet<Half> = HashSet::new();
    for told in told {
        let mut own = Vec::new();
        for cable in &told.cables {
            let (Some(a), Some(b)) = (at(&cable.a, keys), at(&cable.b, keys)) else { continue };
            let mut name = vec![a.clone(), b.clone()];
            name.sort();
            let joined =
                Joined { ends: [a, b], rate_gbps: cable.rate_gbps, width: cable.width, speed: cable.speed.clone() };
            if let Some(&known) = place.get(&name) {
                fill(&mut all[known], joined);
                continue;
            }
            let is_port = |half: &&Half| half.1.is_some() || matches!(&half.0, At::Nic(nic) if !is_whole(nic));
            if name.iter().filter(is_port).any(|half| taken.contains(half)) {
                remarks.push(format!(
                    "left out, because an earlier source has another cable there: {} to {} of {}",
                    words(&cable.a),
                    words(&cable.b),
                    told.source
                ));
                continue;
            }
            own.extend(name.iter().filter(is_port).cloned());
            place.insert(name, all.len());
            all.push(joined);
        }
        taken.extend(own);
    }
    finest(all, keys, remarks)
}

type Half = (At, Option<String>);

fn words(plug: &Plug) -> String {
    let port = plug.port.as_ref().map(|port| format!(" port {port}")).unwrap_or_default();
    match &plug.device {
        Device::Switch(key) => format!("{key}{port}"),
        Device::Nic(nic) => {
            let names: Vec<&str> = [nic.host.as_deref(), nic.device.as_deref()].into_iter().flatten().collect();
            if names.is_empty() { nic.guid.clone().unwrap_or_default() } else { names.join(" ") }
        }
    }
}

fn at(plug: &Plug, keys: &HashMap<&str, u32>) -> Option<(At, Option<String>)> {
    let at = match &plug.device {
        Device::Switch(key) => At::Switch(*keys.get(key.as_str())?),
        Device::Nic(nic) => At::Nic(nic.clone()),
    };
    Some((at, plug.port.clone()))
}

fn fill(known: &mut Joined, other: Joined) {
    known.rate_gbps = known.rate_gbps.or(other.rate_gbps);
    known.width = known.width.or(other.width);
    known.speed = known.speed.take().or(other.speed);
}

fn is_whole(nic: &Nic) -> bool {
    nic.device.is_none() && nic.guid.is_none()
}

fn of_host(cable: &Joined) -> Option<(String, u32)> {
    let [a, b] = &cable.ends;
    let nic = |(at, _): &(At, Option<String>)| match at {
        At::Nic(nic) if is_whole(nic) => nic.host.as_deref().map(short),
        _ => None,
    };
    let switch = |(at, _): &(At, Option<String>)| if let At::Switch(at) = at { Some(*at) } else { None };
    nic(a).zip(switch(b)).or_else(|| nic(b).zip(switch(a)))
}

/// Drops cables known in more detail, with a remark where that is at another switch.
fn finest(all: Vec<Joined>, keys: &HashMap<&str, u32>, remarks: &mut Vec<String>) -> Vec<Joined> {
    let between = |cable: &Joined| match &cable.ends {
        [(At::Switch(one), _), (At::Switch(other), _)] => Some((*one.min(other), *one.max(other))),
        _ => None,
    };
    let has_ports = |cable: &Joined| cable.ends.iter().any(|(_, port)| port.is_some());
    let cabled: HashSet<(u32, u32)> = all.iter().filter(|cable| has_ports(cable)).filter_map(between).collect();
    let host_of = |nic: &Nic| nic.host.as_deref().map(short);
    let nics = |cable: &Joined| -> Vec<Nic> {
        cable.ends.iter().filter_map(|(at, _)| if let At::Nic(nic) = at { Some(nic.clone()) } else { None }).collect()
    };
    let detailed: HashSet<String> =
        all.iter().flat_map(nics).filter(|nic| !is_whole(nic)).filter_map(|nic| host_of(&nic)).collect();
    let mut plugged: HashMap<String, HashSet<u32>> = HashMap::new();
    for (host, switch) in all.iter().filter(|cable| has_ports(cable)).filter_map(of_host) {
        plugged.entry(host).or_default().insert(switch);
    }
    let mut counts = |cable: &Joined| {
        if let Some((host, switch)) = of_host(cable).filter(|_| !has_ports(cable))
            && let Some(known) = plugged.get(&host)
        {
            if !known.contains(&switch) {
                let name = keys.iter().find(|(_, at)| **at == switch).map_or("?", |(name, _)| *name);
                remarks.push(format!(
                    "left out, because another source knows the port of {host}, at another switch: {host} to {name}"
                ));
            }
            return false;
        }
        let coarse = !has_ports(cable) && between(cable).is_some_and(|pair| cabled.contains(&pair));
        let whole =
            nics(cable).iter().any(|nic| is_whole(nic) && host_of(nic).is_some_and(|host| detailed.contains(&host)));
        !coarse && !whole
    };
    all.into_iter().filter(|cable| counts(cable)).collect()
}
