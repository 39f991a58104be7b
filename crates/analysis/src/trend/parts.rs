//! Hosts, NICs, rails and groups of rotating plans: they are measured every night although the pairs change.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use railgauge_model::schedule::Flow;
use railgauge_wire::{Better, Metric, Transport};

use crate::{
    history::{EVERY, Subject},
    words::end_word,
};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    All,
    Rail(Ends, u32),
    Host(String),
    Nic(String, Ends, u32),
    Within(String),
    Out(String),
    Between(String, String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ends(&'static str);

impl Ends {
    pub(super) fn of(transport: Transport) -> Self {
        Self(end_word(transport))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Groups {
    of: HashMap<String, BTreeSet<String>>,
    two: bool,
}

impl Groups {
    /// From a plan's groups by name, and its hosts. A group of all hosts does not count.
    pub(super) fn new<'h>(
        groups: &BTreeMap<String, Vec<String>>,
        hosts: impl Iterator<Item = &'h str> + Clone,
    ) -> Self {
        let mut of: HashMap<String, BTreeSet<String>> = HashMap::new();
        let mut count = 0;
        for (name, members) in groups {
            let known: BTreeSet<&str> = members.iter().map(String::as_str).collect();
            if hosts.clone().all(|host| known.contains(host)) {
                continue;
            }
            members.iter().for_each(|host| _ = of.entry(host.clone()).or_default().insert(name.clone()));
            count += 1;
        }
        Self { of, two: count == 2 }
    }

    pub(super) fn of(&self, host: &str) -> impl Iterator<Item = &str> {
        self.of.get(host).into_iter().flatten().map(String::as_str)
    }

    fn hosts(&self, groups: &[&String]) -> impl Iterator<Item = &str> {
        self.of.iter().filter(|(_, of)| groups.iter().any(|name| of.contains(*name))).map(|(host, _)| host.as_str())
    }

    pub(super) fn has(&self, part: &Part) -> bool {
        let known = |name: &String| self.of.values().any(|groups| groups.contains(name));
        match part {
            Part::Within(name) => known(name),
            Part::Out(name) => !self.two && known(name),
            Part::Between(a, b) => self.two && known(a) && known(b),
            Part::All | Part::Rail(..) | Part::Host(_) | Part::Nic(..) => true,
        }
    }

    fn passed(&self, flow: &Flow) -> Vec<Part> {
        let [from, to] = [&flow.from, &flow.to].map(|port| self.of(&port.host).collect::<BTreeSet<&str>>());
        let name = |name: &&str| (*name).to_owned();
        let within = from.intersection(&to).map(|group| Part::Within(name(group)));
        let (out, into): (Vec<&str>, Vec<&str>) =
            (from.difference(&to).copied().collect(), to.difference(&from).copied().collect());
        if let (true, [a], [b]) = (self.two, &out[..], &into[..]) {
            let (a, b) = (a.min(b), a.max(b));
            return within.chain([Part::Between(name(a), name(b))]).collect();
        }
        within.chain(out.iter().chain(&into).map(|group| Part::Out(name(group)))).collect()
    }
}

impl Part {
    pub(super) fn of(subject: &Subject, groups: &Groups) -> BTreeSet<Self> {
        let (flow, ends_of) = (&subject.flow, Ends::of(subject.cell.transport));
        if !flow.members.is_empty() {
            return BTreeSet::new();
        }
        let ends = [&flow.from, &flow.to];
        let own = ends.into_iter().flat_map(|port| {
            let host = port.host.to_string();
            [Self::Rail(ends_of, port.rail), Self::Host(host.clone()), Self::Nic(host, ends_of, port.rail)]
        });
        own.chain([Self::All]).chain(groups.passed(flow)).collect()
    }

    /// Hosts that it is a part of, or whose links it has; empty for all hosts.
    pub(super) fn hosts<'a>(&'a self, groups: impl Iterator<Item = &'a Groups>) -> Vec<&'a str> {
        let of = |names: &[&String]| groups.flat_map(|groups| groups.hosts(names).collect::<Vec<_>>()).collect();
        match self {
            Self::All | Self::Rail(..) => Vec::new(),
            Self::Host(host) | Self::Nic(host, ..) => vec![host],
            Self::Within(group) | Self::Out(group) => of(&[group]),
            Self::Between(a, b) => of(&[a, b]),
        }
    }

    /// In words, as [`Labels`](crate::history::Labels) names it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::All => EVERY.to_owned(),
            Self::Rail(Ends(word), number) => format!("{word} {number}"),
            Self::Host(host) => format!("host {host}"),
            Self::Nic(host, Ends(word), number) => format!("{word} {number} of {host}"),
            Self::Within(group) => format!("links within group {group}"),
            Self::Out(group) => format!("links out of group {group}"),
            Self::Between(a, b) => format!("links between groups {a} and {b}"),
        }
    }

    pub(super) fn labels(&self, test: &str, groups: Option<&Groups>) -> BTreeSet<String> {
        let mut words: BTreeSet<String> = [Self::All.name(), format!("test {test}"), self.name()].into();
        if let Self::Nic(host, ends, number) = self {
            words.extend([Self::Host(host.clone()).name(), Self::Rail(*ends, *number).name()]);
        }
        let group = |name: &str| format!("group {name}");
        match self {
            Self::Host(host) | Self::Nic(host, ..) => {
                words.extend(groups.into_iter().flat_map(|of| of.of(host)).map(group))
            }
            Self::Within(name) | Self::Out(name) => _ = words.insert(group(name)),
            Self::Between(a, b) => words.extend([group(a), group(b)]),
            Self::All | Self::Rail(..) => {}
        }
        words
    }
}

#[derive(Debug, Default)]
pub(super) struct Night {
    groups: Groups,
    values: BTreeMap<(String, Metric, Part), (usize, Vec<f64>)>,
}

impl Night {
    pub(super) fn new(groups: Groups) -> Self {
        Self { groups, values: BTreeMap::new() }
    }

    /// Adds the value of a pair, on a logarithmic scale on which higher is better; `number` is the subject's. A pair
    /// without a value is the worst.
    pub(super) fn add(&mut self, number: usize, subject: &Subject, metric: Metric, value: Option<f64>) {
        let value = value.unwrap_or(f64::NEG_INFINITY);
        let kind = subject.kind(metric);
        for part in Part::of(subject, &self.groups) {
            let key = (kind.clone(), metric, part);
            self.values.entry(key).or_insert_with(|| (number, Vec::new())).1.push(value);
        }
    }

    /// Quantity, part, a subject of it, and the value: the median of its pairs, of two middle ones the better. All pairs of a bad part are
    /// low but only some of a partner's, and half of two must not look like all. `None` where it is a pair without a value.
    pub(super) fn values(self) -> impl Iterator<Item = ((String, Metric, Part), usize, Option<f64>)> {
        self.values.into_iter().map(|(key, (number, mut values))| {
            let middle = values.len() / 2;
            let (_, value, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
            (key, number, Some(*value).filter(|value| value.is_finite()))
        })
    }
}

pub(super) fn sign(metric: Metric) -> f64 {
    if metric.better() == Better::Higher { 1.0 } else { -1.0 }
}

#[cfg(test)]
mod tests {
    use railgauge_model::schedule::Port;

    use super::*;

    #[test]
    fn parts_within_hosts_are_gpus_and_numa_nodes() {
        let named = |transport| {
            let port = Port::new("gpu003", 1);
            let part = Part::Nic(port.host.to_string(), Ends::of(transport), port.rail);
            (part.name(), Part::Rail(Ends::of(transport), 1).name())
        };
        let words = |one: &str, all: &str| (one.to_owned(), all.to_owned());
        assert_eq!(named(Transport::Gpu), words("GPU 1 of gpu003", "GPU 1"));
        assert_eq!(named(Transport::Cpu), words("NUMA node 1 of gpu003", "NUMA node 1"));
        assert_eq!(named(Transport::Verbs), words("rail 1 of gpu003", "rail 1"));
        // A NIC that writes to itself is the one that writes to others.
        assert_eq!(named(Transport::Nic), named(Transport::Verbs));
        // Rail 1 and GPU 1 of a host are two parts.
        assert_ne!(Part::Rail(Ends::of(Transport::Gpu), 1), Part::Rail(Ends::of(Transport::Verbs), 1));
    }

    #[test]
    fn the_better_middle_of_a_part_is_not_its_bad_partner() {
        let mut values = BTreeMap::new();
        let key = |part| ("write".to_owned(), Metric::Bandwidth, part);
        values.insert(key(Part::All), (0, vec![1.0, 0.3]));
        values.insert(key(Part::Rail(Ends::of(Transport::Verbs), 0)), (0, vec![0.3, 1.0, 0.9]));
        values.insert(key(Part::Rail(Ends::of(Transport::Verbs), 1)), (0, vec![f64::NEG_INFINITY, 1.0]));
        values.insert(
            key(Part::Rail(Ends::of(Transport::Verbs), 2)),
            (0, vec![f64::NEG_INFINITY, f64::NEG_INFINITY, 1.0]),
        );
        let found: Vec<Option<f64>> =
            Night { values, ..Night::default() }.values().map(|(_, _, value)| value).collect();
        assert_eq!(found, [Some(1.0), Some(0.9), Some(1.0), None]);
    }
}
