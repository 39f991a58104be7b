//! Finds what changes at the same time have in common.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexSet;
use railgauge_model::schedule::Flow;
use railgauge_stats::changepoint::{Member, Shared, together};
use railgauge_wire::Transport;

use super::Subject;
use crate::words::{end_word, part_words};

pub const EVERY: &str = "every link";
/// Days without a change that separate causes.
const QUIET: i64 = 4;

#[derive(Debug, Default)]
pub struct Labels {
    names: IndexSet<String>,
    of: Vec<Vec<usize>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// For example `host gpu07`.
    pub name: String,
    /// Number of series with this property.
    pub of: usize,
    /// Median night of the changes; 0 without time.
    pub day: i64,
    /// Positions of its changes.
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
        let number = self.names.get_index_of(name);
        self.of.iter().enumerate().filter(move |(_, of)| number.is_some_and(|n| of.contains(&n))).map(|(at, _)| at)
    }

    /// Adds a series, in order, by its properties.
    pub fn add(&mut self, words: BTreeSet<String>) {
        self.of.push(words.into_iter().map(|word| self.names.insert_full(word).0).collect());
    }

    /// Latest first; a change has at most one cause, and a cause at least three series. Effects are logarithms on a scale on which higher
    /// is better, and 0 is the day without time.
    pub fn causes(&self, changes: &[Member]) -> Vec<Cause> {
        let mut order: Vec<usize> = (0..changes.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(changes[at].day));
        // Changes of one cause are at most four days apart, so quiet days divide the work.
        let days = order.chunk_by(|&later, &earlier| changes[later].day - changes[earlier].day <= QUIET);
        let causes = |cluster: &[usize]| {
            let members: Vec<Member> = cluster.iter().map(|&at| changes[at]).collect();
            let cause = |Shared { label, day, members, of }| Cause {
                name: self.names[label].clone(),
                of,
                day,
                members: members.into_iter().map(|member: usize| cluster[member]).collect(),
            };
            together(&members, &self.of).into_iter().map(cause).collect::<Vec<Cause>>()
        };
        days.flat_map(causes).collect()
    }
}
