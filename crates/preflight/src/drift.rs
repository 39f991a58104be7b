//! Facts that differ: between the hosts of a cluster, and between two looks at the same hosts.

use std::{borrow::Borrow, collections::BTreeMap};

use railgauge_wire::{HostFacts, natural};
use serde::{Deserialize, Serialize};

use super::comparable::comparable;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    pub fact: String,
    pub majority: String,
    pub holders: usize,
    /// Whether more than half of the hosts agree.
    pub decided: bool,
    pub others: BTreeMap<String, String>,
}

impl Drift {
    pub fn by_value(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (host, value) in &self.others {
            values.entry(value).or_default().push(host);
        }
        values.values_mut().for_each(|hosts| natural::sort(hosts));
        values
    }
}

pub fn drift<F: Borrow<HostFacts>>(hosts: &BTreeMap<String, F>) -> Vec<Drift> {
    let mut values: BTreeMap<String, BTreeMap<&str, String>> = BTreeMap::new();
    for (host, facts) in hosts {
        for fact in comparable(facts.borrow()) {
            values.entry(fact.name()).or_default().insert(host, fact.value);
        }
    }
    let absent = || "absent".to_owned();
    let row = |(fact, by_host): (String, BTreeMap<&str, String>)| {
        let of = |host: &str| by_host.get(host).cloned().unwrap_or_else(absent);
        let mut groups: BTreeMap<String, usize> = BTreeMap::new();
        for host in hosts.keys() {
            *groups.entry(of(host)).or_default() += 1;
        }
        let (majority, holders) = groups.into_iter().max_by_key(|(_, holders)| *holders)?;
        let others: BTreeMap<String, String> =
            hosts.keys().map(|host| (host.clone(), of(host))).filter(|(_, value)| *value != majority).collect();
        let decided = holders * 2 > hosts.len();
        (!others.is_empty()).then_some(Drift { fact, majority, holders, decided, others })
    };
    values.into_iter().filter_map(row).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub fact: String,
    pub before: Option<String>,
    pub after: Option<String>,
    pub hosts: Vec<String>,
}

/// What changed between two looks at a cluster, sorted by name. Only hosts seen both times count.
pub fn between(before: &BTreeMap<String, HostFacts>, after: &BTreeMap<String, HostFacts>) -> Vec<Change> {
    let mut changes: BTreeMap<(String, Option<String>, Option<String>), Vec<String>> = BTreeMap::new();
    for (host, then) in before {
        let Some(now) = after.get(host) else { continue };
        let mut then: BTreeMap<String, String> =
            comparable(then).into_iter().map(|fact| (fact.name(), fact.value)).collect();
        let mut add = |fact: String, was: Option<String>, is: Option<String>| {
            if was != is {
                changes.entry((fact, was, is)).or_default().push(host.clone());
            }
        };
        for fact in comparable(now) {
            let was = then.remove(&fact.name());
            add(fact.name(), was, Some(fact.value));
        }
        for (fact, was) in then {
            add(fact, Some(was), None);
        }
    }
    let change = |((fact, before, after), mut hosts): (_, Vec<String>)| {
        natural::sort(&mut hosts);
        Change { fact, before, after, hosts }
    };
    changes.into_iter().map(change).collect()
}
