//! Numbers of hosts and groups, and parts in words.

use std::collections::BTreeMap;

use foldhash::HashMap;
use railgauge_model::{
    plan::{Plan, hostlist},
    schedule,
};
use railgauge_stats::localise::{Pair, Part, Port, Way};
use railgauge_wire::natural;

use super::PartName;
use crate::{case::CaseResult, journal::Journal, row::Row};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Names {
    hosts: Vec<String>,
    numbers: HashMap<String, u32>,
    /// By host; empty if the plan's groups are not a partition of the test's hosts.
    pub(super) groups: Vec<u32>,
    group_names: Vec<String>,
    devices: BTreeMap<Port, String>,
    pub(super) remark: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct One<'r> {
    pub(super) result: &'r CaseResult<'r>,
    pub(super) row: &'r Row,
    /// On the scale of the judgement; `None` if not trusted.
    pub(super) log: Option<f64>,
}

impl One<'_> {
    /// From the end that sends the bytes to the receiver. `None` if not trusted.
    pub(super) fn pair(&self, names: &Names) -> Option<Pair> {
        let flow = &self.result.case.flow;
        let (mut from, mut to) = (names.port(&flow.from)?, names.port(&flow.to)?);
        if self.result.case.cell.op.pulls() {
            std::mem::swap(&mut from, &mut to);
        }
        Some(Pair { from, to, path: 0, value: self.log? })
    }
}

const REST: &str = "the hosts in no group";

impl Names {
    pub(super) fn new(journal: &Journal, cases: &[One<'_>]) -> Self {
        let mut hosts: Vec<String> = Vec::new();
        let mut numbers: HashMap<String, u32> = HashMap::default();
        for One { result, .. } in cases {
            for port in [&result.case.flow.from, &result.case.flow.to] {
                if !numbers.contains_key(&*port.host) {
                    numbers.insert(port.host.to_string(), hosts.len() as u32);
                    hosts.push(port.host.to_string());
                }
            }
        }
        let (groups, group_names, remark) = groups(&journal.plan.groups, &hosts);
        let mut names = Self { hosts, numbers, groups, group_names, devices: BTreeMap::new(), remark };
        for One { result, row, .. } in cases {
            let flow = &result.case.flow;
            for (port, device) in [(&flow.from, &row.src_device), (&flow.to, &row.dst_device)] {
                let Some(port) = names.port(port).filter(|_| !device.is_empty()) else { continue };
                match names.devices.get_mut(&port) {
                    Some(known) if **known == **device => {}
                    Some(known) => *known = device.to_string(),
                    None => _ = names.devices.insert(port, device.to_string()),
                }
            }
        }
        names
    }

    /// `None` for a host without pairs.
    pub(super) fn port(&self, port: &schedule::Port) -> Option<Port> {
        Some(Port { host: *self.numbers.get(&*port.host)?, rail: port.rail })
    }

    pub(super) fn is_within(&self, a: Port, b: Port) -> bool {
        let group = |port: Port| self.groups.get(port.host as usize);
        group(a).is_some() && group(a) == group(b)
    }

    pub(super) fn host(&self, number: u32) -> &str {
        &self.hosts[number as usize]
    }

    pub(super) fn end(&self, port: Port) -> String {
        format!("{} rail {}", self.host(port.host), port.rail)
    }

    pub(super) fn group(&self, number: u32) -> &str {
        &self.group_names[number as usize]
    }

    pub(super) fn part(&self, part: &Part) -> PartName {
        let hosts = |numbers: &[u32]| numbers.iter().map(|&number| self.host(number).to_owned()).collect();
        let (kind, name, numbers, rail): (_, _, &[u32], _) = match part {
            Part::Host(host, way) => ("host", format!("host {}{}", self.host(*host), only(*way)), &[*host], None),
            Part::Nic(port, way) => {
                let device = self.devices.get(port).map_or_else(String::new, |device| format!(" ({device})"));
                let name = format!("rail {} of {}{device}{}", port.rail, self.host(port.host), only(*way));
                ("nic", name, &[port.host], Some(port.rail))
            }
            Part::Cut(side) => {
                let mut side: Vec<&str> = side.iter().map(|&host| self.host(host)).collect();
                natural::sort(&mut side);
                let side = hostlist::listed(side);
                ("cut", format!("what lies between {side} and the other hosts"), &[], None)
            }
            Part::Rail(rail) => ("rail", format!("rail {rail}, on all hosts"), &[], Some(*rail)),
            Part::Group(group) => ("group", format!("all links of group {}", self.group(*group)), &[], None),
            Part::GroupRail { group, rail } => {
                ("group rail", format!("rail {rail} of group {}", self.group(*group)), &[], Some(*rail))
            }
            Part::Uplink(group, way) => {
                ("uplink", format!("uplinks of group {}{}", self.group(*group), only(*way)), &[], None)
            }
            Part::Boundary(a, b, Way::Both) => {
                ("boundary", format!("boundary between {} and {}", self.group(*a), self.group(*b)), &[], None)
            }
            Part::Boundary(a, b, way) => {
                let (from, to) = if *way == Way::Send { (a, b) } else { (b, a) };
                ("boundary", format!("boundary from {} to {}", self.group(*from), self.group(*to)), &[], None)
            }
            Part::Hosts(a, b) => {
                let name = format!("path between {} and {}, on all rails", self.host(*a), self.host(*b));
                ("path", name, &[*a, *b], None)
            }
            Part::Link(a, b, Way::Both) => {
                ("path", format!("path between {} and {}", self.end(*a), self.end(*b)), &[a.host, b.host], None)
            }
            Part::Link(a, b, _) => {
                ("path", format!("path from {} to {}", self.end(*a), self.end(*b)), &[a.host, b.host], None)
            }
            Part::Paths(a, b, paths) => {
                let list: Vec<String> = paths.iter().map(u32::to_string).collect();
                let name = format!("path {} between {} and {}", list.join(", "), self.end(*a), self.end(*b));
                ("path", name, &[a.host, b.host], None)
            }
        };
        let groups: &[u32] = match part {
            Part::Group(group) | Part::GroupRail { group, .. } | Part::Uplink(group, _) => &[*group],
            Part::Boundary(a, b, _) => &[*a, *b],
            _ => &[],
        };
        let groups = groups.iter().map(|&number| self.group(number).to_owned()).collect();
        let way = match part {
            Part::Host(_, way) | Part::Nic(_, way) | Part::Uplink(_, way) => *way,
            Part::Boundary(_, _, way) | Part::Link(_, _, way) => *way,
            _ => Way::Both,
        };
        PartName { kind, name, hosts: hosts(numbers), groups, rail, way }
    }
}

pub const fn only(way: Way) -> &'static str {
    match way {
        Way::Both => "",
        Way::Send => ", sending",
        Way::Receive => ", receiving",
    }
}

/// The plan's groups as a partition of these hosts: groups that hold some of them but not all, if none overlaps
/// another; hosts in no group form one of their own.
pub(super) fn groups(
    plan: &BTreeMap<String, Vec<String>>,
    hosts: &[impl AsRef<str>],
) -> (Vec<u32>, Vec<String>, Option<String>) {
    let mut of: Vec<Option<u32>> = vec![None; hosts.len()];
    let mut names: Vec<String> = Vec::new();
    for (name, members) in plan {
        let inside: Vec<usize> =
            (0..hosts.len()).filter(|&host| members.iter().any(|member| member == hosts[host].as_ref())).collect();
        if inside.is_empty() || inside.len() == hosts.len() {
            continue;
        }
        if let Some(other) = inside.iter().find_map(|&host| of[host]) {
            let remark = format!(
                "the plan's groups {name} and {} overlap: boundaries between groups were not looked at",
                names[other as usize]
            );
            return (Vec::new(), Vec::new(), Some(remark));
        }
        inside.iter().for_each(|&host| of[host] = Some(names.len() as u32));
        names.push(name.clone());
    }
    if names.is_empty() {
        return (Vec::new(), Vec::new(), None);
    }
    let rest = names.len() as u32;
    if of.contains(&None) {
        names.push(REST.to_owned());
    }
    (of.into_iter().map(|group| group.unwrap_or(rest)).collect(), names, None)
}

pub(super) fn groups_of<'p>(plan: &'p Plan, hosts: &[&str]) -> Vec<&'p str> {
    let holds = |members: &[String]| members.iter().any(|member| hosts.contains(&member.as_str()));
    plan.groups.iter().filter(|(_, of)| holds(of)).map(|(name, _)| name.as_str()).collect()
}
