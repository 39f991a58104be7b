//! Finds what changes at the same time have in common.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use railgauge_model::schedule::Flow;
use railgauge_stats::changepoint::{Member, Shared, together};
use railgauge_wire::terms::Transport;
use serde::Serialize;

use super::Subject;
use crate::words::{end_word, part_words};

pub const EVERY: &str = "every link";
/// Days without a change that separate causes.
const QUIET: i64 = 4;

#[derive(Debug, Default)]
pub struct Labels {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    of: Vec<Vec<usize>>,
}

/// A change of one subject's metric, on a scale on which higher is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moved {
    /// Position among the series of [`Labels`].
    pub series: usize,
    /// Night of the change; 0 without time.
    pub day: i64,
    /// Natural logarithm of after over before; of before over after where lower is better.
    pub better: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// For example `host gpu07`.
    pub name: String,
    pub series: (usize, usize),
    /// Median night of the changes; 0 without time.
    #[serde(skip)]
    pub day: i64,
    #[serde(skip)]
    pub members: Vec<usize>,
}

/// What links have in common, in words: everything, hosts, NICs, rails and named groups; within hosts GPUs or NUMA nodes.
pub fn common(flow: &Flow, by: Transport, groups: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
    let mut words: BTreeSet<String> = [EVERY.to_owned()].into();
    let hosts: Vec<&str> = flow.hosts().into_iter().map(|host| &**host).collect();
    words.extend(hosts.iter().map(|host| format!("host {host}")));
    let shared = groups.iter().filter(|(_, members)| hosts.iter().all(|host| members.iter().any(|m| m == host)));
    words.extend(shared.map(|(name, _)| format!("group {name}")));
    if flow.members.is_empty() {
        let ends = [&flow.from, &flow.to];
        let word = end_word(by);
        words.extend(ends.map(|port| format!("{word} {} of {}", port.rail, port.host)));
        words.extend(ends.map(|port| format!("{word} {}", port.rail)));
    }
    words
}

impl Labels {
    /// In order; `groups` are the plan's.
    pub fn add(&mut self, subject: &Subject, groups: &BTreeMap<String, Vec<String>>) {
        self.add_words(Self::words(subject, groups));
    }

    pub fn words(subject: &Subject, groups: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
        let flow = &subject.flow;
        let mut words = common(flow, subject.cell.transport, groups);
        words.insert(format!("test {}", subject.test));
        if flow.members.is_empty() && part_words(subject.cell.transport).is_none() {
            let mut link = [&flow.from, &flow.to].map(|port| format!("{}:{}", port.host, port.rail));
            link.sort();
            words.insert(format!("link {}", link.join(" – ")));
        }
        words
    }

    /// Positions of the series with this property.
    pub fn carrying(&self, name: &str) -> impl Iterator<Item = usize> + '_ {
        let number = self.numbers.get(name).copied();
        self.of.iter().enumerate().filter(move |(_, of)| number.is_some_and(|n| of.contains(&n))).map(|(at, _)| at)
    }

    /// Adds a series of several subjects, in order, by its properties.
    pub fn add_words(&mut self, words: BTreeSet<String>) {
        let numbers = words.into_iter().map(|word| self.number(word)).collect();
        self.of.push(numbers);
    }

    fn number(&mut self, word: String) -> usize {
        *self.numbers.entry(word).or_insert_with_key(|word| {
            self.names.push(word.clone());
            self.names.len() - 1
        })
    }

    /// Latest first; a change has at most one cause, and a cause at least three series.
    pub fn causes(&self, changes: &[Moved]) -> Vec<Cause> {
        let mut order: Vec<usize> = (0..changes.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(changes[at].day));
        // Changes of one cause are at most four days apart, so quiet days divide the work.
        let days = order.chunk_by(|&later, &earlier| changes[later].day - changes[earlier].day <= QUIET);
        days.flat_map(|cluster| self.causes_at_once(changes, cluster)).collect()
    }

    fn causes_at_once(&self, changes: &[Moved], cluster: &[usize]) -> Vec<Cause> {
        let member = |&at: &usize| {
            let Moved { series, day, better } = changes[at];
            Member { series, day, effect: better }
        };
        let members: Vec<Member> = cluster.iter().map(member).collect();
        let cause = |shared: Shared| Cause {
            name: self.names[shared.label].clone(),
            series: (shared.members.len(), shared.of),
            day: shared.day,
            members: shared.members.into_iter().map(|member| cluster[member]).collect(),
        };
        together(&members, &self.of).into_iter().map(cause).collect()
    }
}
