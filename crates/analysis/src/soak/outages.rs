//! Outages of ports as events: both ends of a cable, or all ports of a host or below a switch, are one, each with the flows that it hit.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::topology::fabric::Node;
use railgauge_wire::Nanoseconds;
use serde::Serialize;

use super::{
    hit::Hit,
    ports::{Down, Edge, Hidden, Port, PortName},
    span::Span,
};
use crate::switches::ways::Ways;

/// Ports that go down within this time and the errors of their times went down together.
const TOGETHER: Nanoseconds = Nanoseconds::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    Port,
    Cable,
    /// All watched ports of a host: the host or the switch, and not a single cable.
    Host,
    Switch,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outage {
    /// For example `leaf12 port 7, cable to gpu031 mlx5_3`.
    pub name: String,
    pub scope: Scope,
    pub ports: Vec<PortName>,
    pub begin: Edge,
    pub end: Edge,
    /// Its length in nanoseconds; a minimum if an end was not seen.
    pub length: Nanoseconds,
    /// In nanoseconds.
    pub length_error: Nanoseconds,
    pub words: String,
    #[serde(flatten)]
    pub hit: Hit,
    /// Positions of its ports and of the outages of each.
    #[serde(skip)]
    members: Vec<(usize, usize)>,
}

impl Outage {
    pub fn span(&self) -> Span {
        Span::new(self.begin.at, self.end.at)
    }

    pub fn is_whole(&self) -> bool {
        self.begin.seen && self.end.seen
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Break {
    pub name: String,
    pub port: PortName,
    #[serde(flatten)]
    pub hidden: Hidden,
    #[serde(flatten)]
    pub hit: Hit,
}

pub(super) struct Cables {
    names: Vec<String>,
    links: Vec<(Option<u32>, Option<u32>)>,
    switches: Vec<String>,
}

impl Cables {
    pub(super) fn of(ports: &[Port], ways: Option<&Ways<'_>>) -> Self {
        let mut links = vec![(None, None); ports.len()];
        let mut names: Vec<String> = ports.iter().map(|port| port.name.to_string()).collect();
        let Some(ways) = ways else { return Self { names, links, switches: Vec::new() } };
        let mut at_nic: BTreeMap<u32, u32> = BTreeMap::new();
        for (number, link) in (0..).zip(&ways.fabric.links) {
            for end in &link.ends {
                if let Node::Nic(nic) = end.node {
                    at_nic.entry(nic).or_insert(number);
                }
            }
        }
        for (place, port) in ports.iter().enumerate() {
            let Some(nic) = ways.nic(&port.name.host, &port.name.device()) else { continue };
            let Some(link) = at_nic.get(&nic).copied() else { continue };
            links[place] = (Some(link), ways.fabric.leaf(nic).map(|(_, switch)| switch));
            names[place] = ways.cable(2 * link);
        }
        Self { names, links, switches: ways.fabric.switches.iter().map(|switch| switch.name.clone()).collect() }
    }

    pub(super) fn name(&self, port: usize) -> &str {
        self.names.get(port).map_or("", String::as_str)
    }
}

pub(super) fn outages(ports: &[Port], cables: &Cables) -> Vec<Outage> {
    let mut joining = Joining { ports, taken: BTreeSet::new(), found: Vec::new() };
    let mut hosts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut switches: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut links: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, port) in ports.iter().enumerate() {
        hosts.entry(&port.name.host).or_default().push(place);
        let (link, switch) = cables.links[place];
        switch.into_iter().for_each(|switch| switches.entry(switch).or_default().push(place));
        link.into_iter().for_each(|link| links.entry(link).or_default().push(place));
    }
    for (switch, of) in switches {
        let several = of.iter().map(|place| &ports[*place].name.host).collect::<BTreeSet<_>>().len() > 1;
        if several {
            let name = cables.switches.get(switch as usize).cloned().unwrap_or_default();
            joining.group(&of, Scope::Switch, &format!("{name}, all {} watched ports below it", of.len()));
        }
    }
    for (host, of) in hosts {
        joining.group(
            &of,
            Scope::Host,
            &format!("{host}, all {} watched ports (the host or its switch, not a cable)", of.len()),
        );
    }
    for of in links.into_values() {
        let name = of.first().map_or("", |place| cables.name(*place));
        joining.group(&of, Scope::Cable, &format!("{name}, both ends"));
    }
    for (place, port) in ports.iter().enumerate() {
        for down in 0..port.outages.len() {
            joining.event(Scope::Port, cables.name(place).to_owned(), vec![(place, down)]);
        }
    }
    let mut found = joining.found;
    found.sort_by(|a, b| (a.begin.at, &a.name).cmp(&(b.begin.at, &b.name)));
    found
}

struct Joining<'p> {
    ports: &'p [Port],
    taken: BTreeSet<(usize, usize)>,
    found: Vec<Outage>,
}

impl Joining<'_> {
    fn down(&self, (port, down): (usize, usize)) -> &Down {
        &self.ports[port].outages[down]
    }

    fn group(&mut self, of: &[usize], scope: Scope, name: &str) {
        if of.len() < 2 {
            return;
        }
        let all = of.iter().flat_map(|port| (0..self.ports[*port].outages.len()).map(|down| (*port, down)));
        let mut all: Vec<(usize, usize)> = all.filter(|one| !self.taken.contains(one)).collect();
        all.sort_by_key(|one| self.down(*one).begin.at);
        let mut clusters: Vec<Vec<(usize, usize)>> = Vec::new();
        for one in all {
            let begin = self.down(one).begin;
            let with = |cluster: &&mut Vec<(usize, usize)>| {
                let last = cluster.last().map(|last| self.down(*last).begin).unwrap_or_default();
                let apart = begin.at.saturating_sub(last.at);
                let is_new = cluster.iter().all(|(port, _)| *port != one.0);
                // What was down at the first look may have gone down at any time before.
                is_new
                    && begin.seen == last.seen
                    && apart <= TOGETHER.saturating_add(begin.error).saturating_add(last.error)
            };
            match clusters.last_mut().filter(with) {
                Some(cluster) => cluster.push(one),
                None => clusters.push(vec![one]),
            }
        }
        for cluster in clusters.into_iter().filter(|cluster| cluster.len() == of.len()) {
            self.event(scope, name.to_owned(), cluster);
        }
    }

    fn event(&mut self, scope: Scope, name: String, members: Vec<(usize, usize)>) {
        if members.iter().any(|one| self.taken.contains(one)) {
            return;
        }
        let Some(longest) = members.iter().map(|one| self.down(*one)).max_by_key(|down| down.length()) else { return };
        let outage = Outage {
            name,
            scope,
            ports: members.iter().map(|(port, _)| self.ports[*port].name.clone()).collect(),
            begin: longest.begin,
            end: longest.end,
            length: longest.length(),
            length_error: longest.length_error(),
            words: longest.words.clone(),
            hit: Hit::default(),
            members: members.clone(),
        };
        self.taken.extend(members);
        self.found.push(outage);
    }
}

pub(super) fn breaks(ports: &[Port], cables: &Cables) -> Vec<Break> {
    let of = |(place, port): (usize, &Port)| {
        let name = cables.name(place).to_owned();
        let one = move |hidden: &Hidden| {
            (place, Break { name: name.clone(), port: port.name.clone(), hidden: hidden.clone(), hit: Hit::default() })
        };
        port.breaks.iter().map(one).collect::<Vec<_>>()
    };
    let mut found: Vec<(usize, Break)> = ports.iter().enumerate().flat_map(of).collect();
    found.sort_by_key(|(place, one)| (one.hidden.span, *place));
    found.into_iter().map(|(_, one)| one).collect()
}

pub(super) struct Index(Vec<OfPort>);

#[derive(Default, Clone)]
struct OfPort {
    events: Vec<(Span, Event)>,
    longest: Nanoseconds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Outage(usize),
    Break(usize),
}

impl Index {
    pub(super) fn of(ports: &[Port], outages: &[Outage], breaks: &[Break]) -> Self {
        let mut of = vec![OfPort::default(); ports.len()];
        let mut add = |port: usize, span: Span, event: Event| {
            of[port].longest = of[port].longest.max(span.length());
            of[port].events.push((span, event));
        };
        for (event, outage) in outages.iter().enumerate() {
            for (port, down) in &outage.members {
                let Down { begin, end, .. } = &ports[*port].outages[*down];
                let (from, until) = (begin.at.saturating_sub(begin.error), end.at.saturating_add(end.error));
                add(*port, Span::new(from, until), Event::Outage(event));
            }
        }
        let places: BTreeMap<&PortName, usize> = ports.iter().map(|port| &port.name).zip(0..).collect();
        for (event, one) in breaks.iter().enumerate() {
            if let Some(port) = places.get(&one.port) {
                add(*port, one.hidden.span.widened(one.hidden.error), Event::Break(event));
            }
        }
        of.iter_mut().for_each(|of| of.events.sort_by_key(|(span, _)| *span));
        Self(of)
    }

    pub(super) fn meeting(&self, port: usize, time: Span) -> impl Iterator<Item = Event> + '_ {
        let of = self.0.get(port);
        let events = of.map_or(&[][..], |of| &of.events);
        let earliest = time.from.saturating_sub(of.map_or(Nanoseconds::ZERO, |of| of.longest));
        let first = events.partition_point(|(span, _)| span.from < earliest);
        let reached = events[first..].iter().take_while(move |(span, _)| span.from <= time.until);
        reached.filter(move |(span, _)| span.meets(&time)).map(|(_, event)| *event)
    }
}
