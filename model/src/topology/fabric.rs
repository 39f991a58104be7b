//! Joins all sources into a graph of NIC ports, switches and links.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Range,
    sync::OnceLock,
};

use super::{
    Nic, Switch, Told,
    join::{self, At, Joined},
    same_host, short,
    told::SwitchKey,
};

/// Known hosts, switches and links. Nodes and links are identified by index.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fabric {
    pub switches: Vec<Place>,
    pub nics: Vec<Nic>,
    pub links: Vec<Link>,
    /// Cables that were dropped because an earlier source has another one in the same port.
    pub remarks: Vec<String>,
    at_switch: Vec<Vec<u32>>,
    at_nic: Vec<u32>,
    by_host: HashMap<String, Vec<u32>>,
    distances: Vec<OnceLock<Vec<u8>>>,
    /// The hop that leaves a switch by a port, for numeric ports as in forwarding tables.
    by_port: HashMap<(u32, u32), Hop>,
    by_guid: HashMap<String, Vec<u32>>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Place {
    pub key: SwitchKey,
    /// Its name, or the key if unnamed.
    pub name: String,
    /// 1 for a switch with hosts, 2 for those above; `None` where no host is below.
    pub level: Option<u32>,
    routes: BTreeMap<u32, u32>,
}

/// A cable, or a place in a tree for possibly several cables.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    pub ends: [End; 2],
    /// In Gbit/s.
    pub rate_gbps: Option<f64>,
    pub width: Option<u32>,
    /// Speed of a lane: `HDR`.
    pub speed: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct End {
    pub node: Node,
    /// Port of a switch; `None` for NICs and where unknown.
    pub port: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    Switch(u32),
    Nic(u32),
}

/// A link in one direction: twice its index, plus one from its second end to its first.
pub type Hop = u32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    Known(Vec<Hop>),
    /// One of these shortest ones, chosen by a hash of addresses and ports, or by unread tables.
    OneOf(Vec<Vec<Hop>>),
    Unknown(String),
}

pub const MOST_PATHS: usize = 256;
/// Most links of a path: more are a loop of tables (a three-level tree has 6).
const LONGEST: usize = 16;
const FAR: u8 = u8::MAX;

impl Link {
    pub fn is_between_switches(&self) -> bool {
        self.ends.iter().all(|end| matches!(end.node, Node::Switch(_)))
    }

    /// Whether it is between two switches with both ports unknown: it may represent several cables.
    pub fn is_place(&self) -> bool {
        self.is_between_switches() && self.ends.iter().all(|end| end.port.is_none())
    }
}

impl Fabric {
    /// Joins sources. Where two differ in detail, the more detailed counts: ports rather than switches, NICs rather than hosts.
    pub fn join(told: &[Told]) -> Self {
        let mut fabric = Self::default();
        let keys = fabric.add_switches(told);
        let mut nics: HashMap<Nic, u32> = HashMap::new();
        for Joined { ends, rate_gbps, width, speed } in join::cables(told, &keys, &mut fabric.remarks) {
            let ends = ends.map(|(at, port)| {
                let node = match at {
                    At::Switch(place) => Node::Switch(place),
                    At::Nic(nic) => Node::Nic(*nics.entry(nic).or_insert_with_key(|nic| {
                        fabric.nics.push(nic.clone());
                        position(fabric.nics.len() - 1)
                    })),
                };
                End { node, port }
            });
            fabric.links.push(Link { ends, rate_gbps, width, speed });
        }
        fabric.index();
        fabric
    }

    pub fn has_table(&self, switch: u32) -> bool {
        self.switches.get(switch as usize).is_some_and(|place| !place.routes.is_empty())
    }

    pub fn has_tables(&self) -> bool {
        self.switches.iter().any(|place| !place.routes.is_empty())
    }

    /// Switches of two sources are the same if they have the same key, or the same name where each source has one switch of that name:
    /// unnamed switches all have their default name.
    fn add_switches<'t>(&mut self, told: &'t [Told]) -> HashMap<&'t str, u32> {
        let (mut keys, mut names): (HashMap<&str, u32>, HashMap<&str, u32>) = Default::default();
        for told in told {
            let mut times: HashMap<&str, usize> = HashMap::new();
            told.switches.values().for_each(|switch| *times.entry(&switch.name).or_default() += 1);
            let mut own: HashMap<&str, u32> = HashMap::new();
            for (key, Switch { name, routes, .. }) in &told.switches {
                let is_a_name = !name.is_empty() && times.get(name.as_str()) == Some(&1);
                let by_name = names.get(name.as_str()).filter(|_| is_a_name);
                let place = keys.get(key.as_str()).or(by_name).copied().unwrap_or_else(|| {
                    self.switches.push(Place { key: key.clone(), name: key.clone(), ..Place::default() });
                    position(self.switches.len() - 1)
                });
                keys.insert(key, place);
                let at = &mut self.switches[place as usize];
                if !name.is_empty() {
                    at.name.clone_from(name);
                }
                if is_a_name {
                    own.insert(name, place);
                }
                at.routes.extend(routes);
            }
            for (name, place) in own {
                names.entry(name).or_insert(place);
            }
        }
        let mut times: HashMap<String, usize> = HashMap::new();
        self.switches.iter().for_each(|place| *times.entry(place.name.clone()).or_default() += 1);
        for place in self.switches.iter_mut().filter(|place| times[&place.name] > 1 && place.name != place.key) {
            place.name = format!("{} ({})", place.name, place.key);
        }
        keys
    }

    fn index(&mut self) {
        self.at_switch = vec![Vec::new(); self.switches.len()];
        self.at_nic = vec![u32::MAX; self.nics.len()];
        self.distances = vec![OnceLock::new(); self.switches.len()];
        for (place, nic) in (0..).zip(&self.nics) {
            if let Some(host) = &nic.host {
                self.by_host.entry(short(host)).or_default().push(place);
            }
            if let Some(guid) = &nic.guid {
                self.by_guid.entry(guid.clone()).or_default().push(place);
            }
        }
        for (number, link) in (0..).zip(&self.links) {
            for end in &link.ends {
                match end.node {
                    Node::Switch(switch) => {
                        self.at_switch[switch as usize].push(number);
                        if let Some(port) = end.port.as_ref().and_then(|port| port.parse().ok()) {
                            self.by_port.insert((switch, port), 2 * number + u32::from(*end != link.ends[0]));
                        }
                    }
                    Node::Nic(nic) if self.at_nic[nic as usize] == u32::MAX => self.at_nic[nic as usize] = number,
                    Node::Nic(_) => {}
                }
            }
        }
        let mut edge: Vec<u32> = (0..)
            .zip(&self.at_switch)
            .filter(|(_, links)| {
                links
                    .iter()
                    .any(|link| self.links[*link as usize].ends.iter().any(|end| matches!(end.node, Node::Nic(_))))
            })
            .map(|(switch, _)| switch)
            .collect();
        let mut level = 1;
        while !edge.is_empty() {
            edge.iter().for_each(|switch| self.switches[*switch as usize].level = Some(level));
            let next: HashSet<u32> = edge
                .iter()
                .flat_map(|switch| self.neighbours(*switch))
                .map(|(_, other)| other)
                .filter(|other| self.switches[*other as usize].level.is_none())
                .collect();
            edge = next.into_iter().collect();
            level += 1;
        }
    }

    fn neighbours(&self, switch: u32) -> impl Iterator<Item = (Hop, u32)> + '_ {
        self.at_switch[switch as usize].iter().filter_map(move |&number| {
            let [first, second] = &self.links[number as usize].ends;
            match (first.node, second.node) {
                (Node::Switch(here), Node::Switch(there)) if here == switch => Some((2 * number, there)),
                (Node::Switch(there), Node::Switch(here)) if here == switch => Some((2 * number + 1, there)),
                _ => None,
            }
        })
    }

    pub fn leaf(&self, nic: u32) -> Option<(u32, u32)> {
        let number = *self.at_nic.get(nic as usize)?;
        let link = self.links.get(number as usize)?;
        link.ends.iter().find_map(|end| match end.node {
            Node::Switch(switch) => Some((number, switch)),
            Node::Nic(_) => None,
        })
    }

    pub fn hop(&self, hop: Hop) -> (&Link, &End, &End) {
        let link = &self.links[(hop / 2) as usize];
        let [first, second] = &link.ends;
        if hop.is_multiple_of(2) { (link, first, second) } else { (link, second, first) }
    }

    /// An end of a link for technicians: `leaf12 port 7`, `gpu031 mlx5_3`.
    pub fn end_name(&self, end: &End) -> String {
        let port = end.port.as_ref().map(|port| format!(" port {port}")).unwrap_or_default();
        match end.node {
            Node::Switch(switch) => format!("{}{port}", self.switches[switch as usize].name),
            Node::Nic(nic) => {
                let nic = &self.nics[nic as usize];
                let names: Vec<&str> = [nic.host.as_deref(), nic.device.as_deref()].into_iter().flatten().collect();
                match (names.is_empty(), &nic.guid) {
                    (false, _) => names.join(" "),
                    (true, Some(guid)) => format!("NIC port {guid}"),
                    (true, None) => "a NIC port".to_owned(),
                }
            }
        }
    }

    /// A hop for technicians: `leaf12 port 7 to spine1 port 3`, `gpu031 mlx5_3 to leaf12 port 7`.
    pub fn hop_name(&self, hop: Hop) -> String {
        let (_, from, to) = self.hop(hop);
        format!("{} to {}", self.end_name(from), self.end_name(to))
    }

    pub fn hops(&self) -> Range<Hop> {
        0..2 * position(self.links.len())
    }

    /// The NIC ports that match: by GUID, else by host and device, else by host.
    pub fn nics_of(&self, host: &[&str], device: Option<&str>, port: u32, guids: &[String]) -> Vec<u32> {
        let by_guid: Vec<u32> = guids.iter().filter_map(|guid| self.by_guid.get(guid)).flatten().copied().collect();
        if !by_guid.is_empty() {
            return by_guid;
        }
        let of_host = self.of_host(host);
        let at = |wanted: Option<&str>| -> Vec<u32> {
            let fits = |place: &u32| {
                let nic = &self.nics[*place as usize];
                nic.device.as_deref() == wanted && nic.port.is_none_or(|told| told == port)
            };
            of_host.iter().copied().filter(fits).collect()
        };
        let named = device.map(|device| at(Some(device))).unwrap_or_default();
        if named.is_empty() { at(None) } else { named }
    }

    pub fn of_host(&self, names: &[&str]) -> Vec<u32> {
        let known: BTreeSet<u32> =
            names.iter().filter_map(|name| self.by_host.get(&short(name))).flatten().copied().collect();
        let is_one = |place: &u32| {
            let told = self.nics[*place as usize].host.as_deref().unwrap_or_default();
            names.iter().any(|name| same_host(name, told))
        };
        known.into_iter().filter(is_one).collect()
    }

    pub fn leaves_of(&self, names: &[&str]) -> Vec<u32> {
        let places = self.of_host(names);
        let leaves: BTreeSet<u32> = places.iter().filter_map(|nic| self.leaf(*nic)).map(|(_, switch)| switch).collect();
        leaves.into_iter().collect()
    }

    pub fn route(&self, from: u32, to: u32) -> Route {
        let (Some((up, first)), Some((down, last))) = (self.leaf(from), self.leaf(to)) else {
            return Route::Unknown("a NIC port has no cable to a switch".into());
        };
        let (up, down) = (self.leaving(up, Node::Nic(from)), self.leaving(down, Node::Nic(to)) ^ 1);
        if first == last {
            return Route::Known(vec![up, down]);
        }
        match self.nics[to as usize].lid {
            Some(lid) if !self.switches[first as usize].routes.is_empty() => self.by_tables(up, first, lid, to),
            _ => self.shortest(up, first, last, down),
        }
    }

    fn leaving(&self, link: u32, node: Node) -> Hop {
        2 * link + u32::from(self.links[link as usize].ends[0].node != node)
    }

    fn by_tables(&self, up: Hop, first: u32, lid: u32, to: u32) -> Route {
        let (mut path, mut at) = (vec![up], first);
        let lost = |at: u32, why: &str| {
            Route::Unknown(format!("the tables of {} {why} LID {lid}", self.switches[at as usize].name))
        };
        while path.len() < LONGEST {
            let Some(port) = self.switches[at as usize].routes.get(&lid) else { return lost(at, "have no port for") };
            let next = self.by_port.get(&(at, *port)).copied();
            let Some(hop) = next else {
                return lost(at, &format!("lead to port {port}, where no cable is known, for"));
            };
            path.push(hop);
            match self.hop(hop).2.node {
                Node::Nic(nic) if nic == to => return Route::Known(path),
                Node::Nic(_) => return lost(at, "lead to another host for"),
                Node::Switch(next) => at = next,
            }
        }
        lost(at, "lead in a circle for")
    }

    /// How many links every switch is away from this one; [`FAR`] where no path is known, and beyond as many links.
    fn distances(&self, from: u32) -> &[u8] {
        self.distances[from as usize].get_or_init(|| {
            let mut away = vec![FAR; self.switches.len()];
            away[from as usize] = 0;
            let mut edge = vec![from];
            let mut far = 0;
            while !edge.is_empty() && far < FAR - 1 {
                far += 1;
                let mut next = Vec::new();
                for (_, other) in edge.iter().flat_map(|switch| self.neighbours(*switch)) {
                    if away[other as usize] == FAR {
                        away[other as usize] = far;
                        next.push(other);
                    }
                }
                edge = next;
            }
            away
        })
    }

    fn shortest(&self, up: Hop, first: u32, last: u32, down: Hop) -> Route {
        let distance = self.distances(last);
        if distance[first as usize] == FAR {
            return Route::Unknown("no path of known links".into());
        }
        let mut paths = vec![(vec![up], first)];
        while paths.iter().any(|(_, at)| *at != last) {
            let step = |(path, at): (Vec<Hop>, u32)| {
                let far = distance[at as usize];
                self.neighbours(at)
                    .filter(|(_, next)| distance[*next as usize] < far)
                    .map(|(hop, next)| ([&path[..], &[hop]].concat(), next))
                    .collect::<Vec<_>>()
            };
            paths = paths.into_iter().flat_map(step).collect();
            if paths.len() > MOST_PATHS {
                return Route::Unknown(format!("more than {MOST_PATHS} equal paths"));
            }
        }
        let mut paths: Vec<Vec<Hop>> = paths
            .into_iter()
            .map(|(mut path, _)| {
                path.push(down);
                path
            })
            .collect();
        if paths.len() == 1 { Route::Known(paths.remove(0)) } else { Route::OneOf(paths) }
    }
}

/// Never overflows: sources are limited to fewer cables.
fn position(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
