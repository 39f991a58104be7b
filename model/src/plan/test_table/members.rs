use std::collections::HashSet;

use railgauge_wire::terms::Metric;

use crate::plan::{
    hosts::Hosts,
    limits::MEASUREMENTS as MOST,
    model::{AtOnce, Cut, OnFabric, Pattern, Rails, Test, Victim},
    read::Table,
};

#[derive(Debug)]
pub struct Members<'a> {
    pub list: Vec<String>,
    pub hosts: &'a Hosts,
    names: HashSet<String>,
}

impl<'a> Members<'a> {
    pub fn read(test: &Table<'_>, hosts: &'a Hosts) -> Option<Self> {
        let list = match test.texts("hosts") {
            Some(words) => hosts.select(test, &words.value)?,
            None if test.has("hosts") || !hosts.sound => return None,
            None if !test.book.afford(hosts.list.len(), &test.span) => return None,
            None => hosts.list.iter().map(|host| host.name.clone()).collect(),
        };
        if list.is_empty() {
            let span = test.raw("hosts").map_or(test.span.clone(), |raw| raw.span);
            test.wrong(span, "this test has no hosts", "name groups or hosts from [hosts] that are not excluded");
            return None;
        }
        let names = list.iter().cloned().collect();
        Some(Self { list, hosts, names })
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn pairs(&self, pattern: &Pattern) -> u64 {
        let n = self.list.len() as u64;
        let group = |name: &str| {
            let members = self.hosts.groups.get(name).map(Vec::as_slice).unwrap_or_default();
            members.iter().filter(|name| self.has(name)).count() as u64
        };
        match pattern {
            Pattern::Tournament => n * (n - 1) / 2,
            Pattern::Random(rounds) => u64::from(*rounds) * (n / 2),
            Pattern::Ring => n,
            Pattern::Neighbours => n / 2,
            Pattern::OneToMany(_) | Pattern::ManyToOne(_) => n - 1,
            Pattern::Between(one, other) => group(one) * group(other),
            Pattern::Pairs(pairs) => pairs.len() as u64,
            Pattern::AtOnce(at_once) => match at_once {
                AtOnce::Incast(Some(_)) | AtOnce::Outcast(Some(_)) => n - 1,
                AtOnce::Incast(None) | AtOnce::Outcast(None) | AtOnce::AllToAll => n * (n - 1),
                AtOnce::Ring => n,
                AtOnce::Permutation(rounds) => u64::from(*rounds) * n,
                AtOnce::Bisection(Cut::Drawn(rounds)) => u64::from(*rounds) * (n / 2 * 2),
                AtOnce::Bisection(Cut::Groups(one, other)) => 2 * group(one).min(group(other)),
                // The flow twice, and every host but three to one of these.
                AtOnce::Victim(victim) => u64::from(victim.draws) * (n - 1),
            },
            // The topology determines its pairs; a round has at most this many.
            Pattern::Fabric(OnFabric::SameLeaf(rounds) | OnFabric::CrossLeaf(rounds)) => {
                u64::from(rounds.unwrap_or(1)) * (n / 2)
            }
            Pattern::Fabric(OnFabric::CoverLinks(_)) => n / 2,
            Pattern::Within => n,
        }
    }

    /// Whether a sum over simultaneous flows concerns `group`: a NIC at an end of the flows, or for the sum of a round every host of the
    /// test.
    pub fn has_sum_in(&self, pattern: &Pattern, metric: Metric, group: &[String]) -> bool {
        let group: HashSet<&str> = group.iter().map(String::as_str).collect();
        let inside = |name: &String| group.contains(name.as_str());
        match (metric, pattern) {
            (Metric::TotalBandwidth, _) => self.list.iter().all(inside),
            (Metric::IngressBandwidth, Pattern::AtOnce(AtOnce::Incast(Some(one))))
            | (Metric::EgressBandwidth, Pattern::AtOnce(AtOnce::Outcast(Some(one)))) => inside(one),
            (Metric::IngressBandwidth, Pattern::AtOnce(AtOnce::Outcast(Some(one))))
            | (Metric::EgressBandwidth, Pattern::AtOnce(AtOnce::Incast(Some(one)))) => {
                self.list.iter().any(|name| name != one && inside(name))
            }
            _ => self.list.iter().any(inside),
        }
    }

    /// Whether a pattern makes a pair with both ends in `group`. For random rounds: whether it may.
    pub fn has_pair_in(&self, pattern: &Pattern, group: &[String]) -> bool {
        let group: HashSet<&str> = group.iter().map(String::as_str).collect();
        let inside = |name: &String| group.contains(name.as_str()) && self.has(name);
        let among = |name: &str| self.hosts.groups.get(name).is_some_and(|members| members.iter().any(inside));
        let two = || self.list.iter().filter(|name| inside(name)).count() >= 2;
        match pattern {
            Pattern::Tournament | Pattern::Random(_) => two(),
            Pattern::Ring | Pattern::AtOnce(AtOnce::Ring) => {
                let next = self.list.iter().cycle().skip(1);
                self.list.iter().zip(next).any(|(from, to)| inside(from) && inside(to))
            }
            Pattern::Neighbours => self.list.chunks(2).any(|pair| pair.iter().all(inside)),
            Pattern::OneToMany(one)
            | Pattern::ManyToOne(one)
            | Pattern::AtOnce(AtOnce::Incast(Some(one)) | AtOnce::Outcast(Some(one))) => {
                inside(one) && self.list.iter().any(|name| name != one && inside(name))
            }
            Pattern::Between(one, other) | Pattern::AtOnce(AtOnce::Bisection(Cut::Groups(one, other))) => {
                among(one) && among(other)
            }
            Pattern::AtOnce(AtOnce::Victim(Victim { flow: Some((from, to)), to: Some(one), .. })) => {
                let sends = |name: &String| ![from, to, one].contains(&name) && inside(name);
                (inside(from) && inside(to)) || (inside(one) && self.list.iter().any(sends))
            }
            Pattern::AtOnce(_) | Pattern::Fabric(_) => two(),
            Pattern::Within => self.list.iter().any(inside),
            Pattern::Pairs(pairs) => pairs.iter().any(|(from, to)| inside(from) && inside(to)),
        }
    }
}

/// Reports an excessive number of measurements. Rails that only the hosts know are not counted.
pub fn judge_amount(table: &Table<'_>, test: &Test, members: &Members<'_>, pattern: &Pattern) {
    let rails = match &test.rails {
        Rails::Only(rails) => rails.len() as u64,
        Rails::Aligned | Rails::Crossed | Rails::Each => 1,
    };
    let pairs = members.pairs(pattern);
    let cells = [rails, test.sizes.len() as u64, test.qps.len() as u64, u64::from(test.repeats)];
    let amount = cells.iter().fold(pairs, |amount, factor| amount.saturating_mul(*factor));
    if amount > MOST {
        let message = format!("this test has {amount} measurements of {pairs} pairs");
        let help = format!("a test has at most {MOST}: use fewer sizes or repeats, or pattern = \"random\"");
        table.wrong(table.span.clone(), message, help);
    }
}
