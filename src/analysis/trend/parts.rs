//! Hosts, NICs and rails of plans that rotate: they are measured every night although the pairs change.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_wire::terms::{Better, Metric};

use crate::{
    analysis::history::{EVERY, Subject},
    schedule::Flow,
};

/// Something that many pairs pass.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Part {
    /// Everything that is measured.
    All,
    /// A rail of all hosts.
    Rail(u32),
    /// A host.
    Host(String),
    /// A NIC: a rail of a host.
    Nic(String, u32),
}

impl Part {
    /// The parts that a pair passes; none for a group.
    pub(super) fn of(flow: &Flow) -> BTreeSet<Self> {
        if !flow.members.is_empty() {
            return BTreeSet::new();
        }
        let ends = [&flow.from, &flow.to];
        let own = ends.into_iter().flat_map(|port| {
            let host = port.host.to_string();
            [Self::Rail(port.rail), Self::Host(host.clone()), Self::Nic(host, port.rail)]
        });
        own.chain([Self::All]).collect()
    }

    /// The part in words, as [`Labels`](crate::analysis::history::Labels) names it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::All => EVERY.to_owned(),
            Self::Rail(rail) => format!("rail {rail}"),
            Self::Host(host) => format!("host {host}"),
            Self::Nic(host, rail) => format!("rail {rail} of {host}"),
        }
    }

    /// What its series has in common with others.
    pub(super) fn labels(&self, test: &str) -> BTreeSet<String> {
        let mut words: BTreeSet<String> = [Self::All.name(), format!("test {test}"), self.name()].into();
        if let Self::Nic(host, rail) = self {
            words.extend([Self::Host(host.clone()).name(), Self::Rail(*rail).name()]);
        }
        words
    }

    /// Parts of one kind are held against each other.
    pub(super) fn class(&self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Rail(_) => "rail",
            Self::Host(_) => "host",
            Self::Nic(..) => "nic",
        }
    }
}

/// The values of one run's pairs by what is measured and part.
#[derive(Debug, Default)]
pub(super) struct Night(BTreeMap<(String, Metric, Part), (usize, Vec<f64>)>);

impl Night {
    /// Adds the value of a pair, on a logarithmic scale on which higher is better; `number` is the subject's. A pair without
    /// a value is the worst there is.
    pub(super) fn add(&mut self, number: usize, subject: &Subject, metric: Metric, value: Option<f64>) {
        let value = value.unwrap_or(f64::NEG_INFINITY);
        let kind = subject.kind(metric);
        for part in Part::of(&subject.flow) {
            let key = (kind.clone(), metric, part);
            self.0.entry(key).or_insert_with(|| (number, Vec::new())).1.push(value);
        }
    }

    /// What is measured, part, a subject of it, and its value: the better middle of its pairs. A bad part has all of them
    /// low; a partner of one has some, and half of two must not be taken for it. `None` where it is a pair without a value.
    pub(super) fn values(self) -> impl Iterator<Item = ((String, Metric, Part), usize, Option<f64>)> {
        self.0.into_iter().map(|(key, (number, mut values))| {
            let middle = values.len() / 2;
            let (_, value, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
            (key, number, Some(*value).filter(|value| value.is_finite()))
        })
    }
}

/// 1 where higher values are better, −1 where lower ones are: logarithms times this rise when things get better.
pub(super) fn sign(metric: Metric) -> f64 {
    if metric.better() == Better::Higher { 1.0 } else { -1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_middle_of_a_part_is_not_its_bad_partner() {
        let mut values = BTreeMap::new();
        let key = |part| ("write".to_owned(), Metric::Bandwidth, part);
        values.insert(key(Part::All), (0, vec![1.0, 0.3]));
        values.insert(key(Part::Rail(0)), (0, vec![0.3, 1.0, 0.9]));
        values.insert(key(Part::Rail(1)), (0, vec![f64::NEG_INFINITY, 1.0]));
        values.insert(key(Part::Rail(2)), (0, vec![f64::NEG_INFINITY, f64::NEG_INFINITY, 1.0]));
        let found: Vec<Option<f64>> = Night(values).values().map(|(_, _, value)| value).collect();
        assert_eq!(found, [Some(1.0), Some(0.9), Some(1.0), None]);
    }
}
