use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use railgauge_wire::{Distance, Memory, Transport};

use super::{Flow, Port, at_once::Pair, pattern::Directory};
use crate::{
    plan::{Host, Plan, Rails, Test},
    topology::{Fabric, attach::nic_of},
};

/// Known numbers of rails of every host on every fabric.
///
/// A host of unknown number is assumed to have as many rails as its peer in each pair, and one if neither is known: the cases of a host
/// that is down must not disappear.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inventory {
    known: HashMap<Transport, HashMap<String, u32>>,
    /// The host whose devices determined the number of rails of hosts that list none.
    told: HashMap<Transport, String>,
    distances: HashMap<String, Vec<BTreeSet<Distance>>>,
    fabric: Option<Arc<Fabric>>,
    places: HashMap<Transport, HashMap<String, Vec<Option<u32>>>>,
}

impl Inventory {
    /// From the plan alone: a host that lists its devices (or its TCP addresses) has that many rails.
    pub fn of_plan(plan: &Plan) -> Self {
        let mut inventory = Self::default();
        for Host { name, devices, tcp, .. } in &plan.hosts {
            // Loopback through a NIC uses the same ports as network traffic.
            for (transport, list) in [(Transport::Verbs, devices), (Transport::Nic, devices), (Transport::Tcp, tcp)] {
                if let Ok(count @ 1..) = u32::try_from(list.len()) {
                    inventory.set(name, transport, count);
                }
            }
        }
        inventory.join(plan);
        inventory
    }

    /// From the facts of a run: a host that lists its devices has exactly those; every other host should have as many as the best of them
    /// offers, so that a missing NIC is a failed case and not a gap. `found` is the number of usable devices of a host, `None` if it did
    /// not answer.
    pub fn of_run(plan: &Plan, found: impl Fn(&Host, Transport) -> Option<u32>) -> Self {
        let mut inventory = Self::of_plan(plan);
        for &transport in Transport::ALL {
            let open: Vec<&Host> =
                plan.hosts.iter().filter(|host| inventory.get(&host.name, transport).is_none()).collect();
            let offers = open.iter().filter_map(|host| Some((found(host, transport)?, host)));
            if let Some((most, host)) = offers.rev().max_by_key(|(offer, _)| *offer) {
                open.iter().for_each(|host| inventory.set(&host.name, transport, most));
                inventory.told.insert(transport, host.name.clone());
            }
        }
        inventory
    }

    /// Sets the number of rails of `host`. 0 counts as one: the case on that rail then fails by name instead of vanishing.
    pub fn set(&mut self, host: &str, transport: Transport, rails: u32) {
        self.known.entry(transport).or_default().insert(host.to_owned(), rails.max(1));
    }

    pub fn get(&self, host: &str, transport: Transport) -> Option<u32> {
        self.known.get(&transport)?.get(host).copied()
    }

    /// Joins the plan's topology, and places rails as far as names alone allow: the devices that the plan lists, else all NIC ports of a
    /// host in the order of the sources.
    fn join(&mut self, plan: &Plan) {
        let Some(topology) = &plan.topology else { return };
        let fabric = Arc::new(Fabric::join(&topology.told));
        for host in &plan.hosts {
            let names = [host.name.as_str(), host.address.as_str()];
            for (transport, devices) in [(Transport::Verbs, &host.devices), (Transport::Tcp, &host.tcp)] {
                let places = match devices.is_empty() {
                    true => fabric.of_host(&names).into_iter().map(Some).collect(),
                    false => devices.iter().map(|device| nic_of(&fabric, &names, Some(device), None)).collect(),
                };
                self.place(&host.name, transport, places);
            }
        }
        self.fabric = Some(fabric);
    }

    pub const fn fabric(&self) -> Option<&Arc<Fabric>> {
        self.fabric.as_ref()
    }

    /// Sets which NIC ports of the fabric the rails of `host` are, as far as known.
    pub fn place(&mut self, host: &str, transport: Transport, places: Vec<Option<u32>>) {
        self.places.entry(transport).or_default().insert(host.to_owned(), places);
    }

    pub fn places(&self, host: &str, transport: Transport) -> &[Option<u32>] {
        self.places.get(&transport).and_then(|hosts| hosts.get(host)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Sets how far the GPUs of `host` are from the RDMA device of each of its rails.
    pub fn set_distances(&mut self, host: &str, rails: Vec<BTreeSet<Distance>>) {
        self.distances.insert(host.to_owned(), rails);
    }

    /// Whether a port has a GPU at this distance; true for a host whose distances are unknown.
    fn has_gpu(&self, port: &Port, distance: Distance) -> bool {
        let of_host = self.distances.get(&*port.host);
        of_host.is_none_or(|rails| rails.get(port.rail as usize).is_none_or(|known| known.contains(&distance)))
    }

    /// Drops flows with an end whose memory is on no GPU at the distance of the test, and empty rounds.
    pub(super) fn at_distance(&self, rounds: Vec<Vec<Flow>>, test: &Test) -> Vec<Vec<Flow>> {
        let Some(distance) = test.gpu_distance else { return rounds };
        let has = |memory: Memory, port: &Port| memory == Memory::Host || self.has_gpu(port, distance);
        let fits = |flow: &Flow| has(test.memory.from, &flow.from) && has(test.memory.to, &flow.to);
        let rounds = rounds.into_iter().map(|round| round.into_iter().filter(fits).collect::<Vec<_>>());
        rounds.filter(|round| !round.is_empty()).collect()
    }

    pub(super) fn widest<'a>(&'a self, test: &'a Test) -> Option<(&'a str, u32)> {
        let hosts = test.hosts.iter().filter_map(|host| Some((&**host, self.get(host, test.transport)?)));
        let widest = hosts.rev().max_by_key(|(_, rails)| *rails)?;
        let told = self.told.get(&test.transport).map(|host| (&**host, self.get(host, test.transport)));
        Some(told.filter(|(_, rails)| *rails == Some(widest.1)).map_or(widest, |(host, _)| (host, widest.1)))
    }

    pub(super) fn counts(&self, plan: &Plan, transport: Transport) -> Vec<Option<u32>> {
        plan.hosts.iter().map(|host| self.get(&host.name, transport)).collect()
    }
}

fn of_pair((from, to): Pair, counts: &[Option<u32>]) -> (u32, u32) {
    let (from, to) = (counts[from as usize], counts[to as usize]);
    (from.or(to).unwrap_or(1), to.or(from).unwrap_or(1))
}

/// How many flows [`spread`] makes of these pairs.
pub(super) fn flows(pairs: &[Vec<Pair>], rails: &Rails, counts: &[Option<u32>]) -> u128 {
    let of = |&pair: &Pair| {
        let (from, to) = of_pair(pair, counts);
        match rails {
            Rails::Aligned | Rails::Each => u128::from(from.min(to)),
            Rails::Crossed => u128::from(from) * u128::from(to),
            Rails::Only(only) => only.len() as u128,
        }
    };
    pairs.iter().flatten().map(of).sum()
}

/// Rounds of flows from rounds of pairs: one each for aligned rails, as many as a host has rails for crossed ones and for each alone.
pub(super) fn spread(pairs: &[Vec<Pair>], rails: &Rails, counts: &[Option<u32>], names: &[Arc<str>]) -> Vec<Vec<Flow>> {
    let flow = |(from, to): Pair, (from_rail, to_rail): (u32, u32)| {
        let port = |host: u32, rail| Port { host: Arc::clone(&names[host as usize]), rail };
        Flow::pair(port(from, from_rail), port(to, to_rail))
    };
    let mut rounds = Vec::with_capacity(pairs.len());
    for round in pairs {
        match rails {
            Rails::Aligned => {
                let lanes = |&pair: &Pair| {
                    let (from, to) = of_pair(pair, counts);
                    (0..from.min(to)).map(move |rail| flow(pair, (rail, rail)))
                };
                rounds.push(round.iter().flat_map(lanes).collect());
            }
            Rails::Only(only) => {
                let mut seen = HashSet::new();
                let only: Vec<u32> = only.iter().copied().filter(|rail| seen.insert(*rail)).collect();
                let lanes = |&pair: &Pair| only.iter().map(move |&rail| flow(pair, (rail, rail))).collect::<Vec<_>>();
                rounds.push(round.iter().flat_map(lanes).collect());
            }
            Rails::Each => {
                let shared = |&pair: &Pair| {
                    let (from, to) = of_pair(pair, counts);
                    from.min(to)
                };
                let rails = round.iter().map(shared).max().unwrap_or(0);
                rounds.extend((0..rails).map(|rail| {
                    let have = round.iter().filter(|pair| rail < shared(pair));
                    have.map(|pair| flow(*pair, (rail, rail))).collect()
                }));
            }
            Rails::Crossed => {
                let turns = round.iter().map(|&pair| of_pair(pair, counts)).map(|(a, b)| a.max(b)).max().unwrap_or(0);
                rounds.extend((0..turns).map(|turn| {
                    let lanes = round
                        .iter()
                        .flat_map(|&pair| crossed(of_pair(pair, counts), turn).map(move |lane| (pair, lane)));
                    lanes.map(|(pair, lane)| flow(pair, lane)).collect()
                }));
            }
        }
    }
    rounds.retain(|round: &Vec<Flow>| !round.is_empty());
    rounds
}

/// One turn of crossed rails: rail i with rail (i + turn) mod n, n the larger number of rails. Over n turns every rail meets every rail of
/// the peer once; a pair that has had its turns is idle.
fn crossed((from, to): (u32, u32), turn: u32) -> impl Iterator<Item = (u32, u32)> {
    let all = from.max(to);
    let rails = if turn < all { 0..from } else { 0..0 };
    rails.map(move |rail| (rail, (rail + turn) % all)).filter(move |&(_, peer)| peer < to)
}

/// Notes hosts with other numbers of rails than the rest, and the consequence for the test.
pub(super) fn note_differences(
    test: &Test,
    directory: &Directory<'_>,
    counts: &[Option<u32>],
    names: &[Arc<str>],
    notes: &mut Vec<String>,
) {
    let mut by_count: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for host in directory.members(test) {
        if let Some(count) = counts[host as usize] {
            by_count.entry(count).or_default().push(&names[host as usize]);
        }
    }
    let listed = |hosts: &[&str]| match hosts {
        [first, second, third, rest @ ..] if rest.len() > 1 => {
            format!("`{first}`, `{second}`, `{third}` and {} more", rest.len())
        }
        hosts => hosts.iter().map(|host| format!("`{host}`")).collect::<Vec<_>>().join(", "),
    };
    if let Rails::Only(only) = &test.rails {
        for (count, hosts) in &by_count {
            let mut missing: Vec<u32> = only.iter().copied().filter(|rail| rail >= count).collect();
            missing.sort_unstable();
            missing.dedup();
            if !missing.is_empty() {
                let missing = missing.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                notes.push(format!(
                    "test `{}`: rail {missing} is asked for, and {} {} rails 0 to {}: those cases will fail",
                    test.name,
                    listed(hosts),
                    if hosts.len() == 1 { "has" } else { "have" },
                    count - 1,
                ));
            }
        }
    } else if by_count.len() > 1 {
        let each = by_count.iter().rev().map(|(count, hosts)| format!("{count} on {}", listed(hosts)));
        let meaning = match test.rails {
            Rails::Crossed => "every rail of a host meets every rail of its peer",
            _ => "a pair uses the rails that both of its hosts have, the rest stay idle",
        };
        notes.push(format!(
            "test `{}`: hosts have different numbers of rails ({}): {meaning}",
            test.name,
            each.collect::<Vec<_>>().join("; "),
        ));
    }
}
