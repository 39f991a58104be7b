use std::{collections::HashSet, ops::Range};

use railgauge_wire::Metric;

use crate::plan::{
    AtOnce, Cut, Hosts, Pattern, Rails, Table, Test, Victim, Words,
    limits::{self, MEASUREMENTS as MOST},
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
            return test.reject(
                span,
                "this test has no hosts",
                "name groups or hosts from [hosts] that are not excluded",
            );
        }
        let names = list.iter().cloned().collect();
        Some(Self { list, hosts, names })
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
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

pub fn one(test: &Table<'_>, key: &str, members: &Members<'_>) -> Option<String> {
    let host = test.text(key)?;
    takes_part(test, &host.value, host.span, members).then_some(host.value)
}

pub fn takes_part(test: &Table<'_>, host: &str, span: Range<usize>, members: &Members<'_>) -> bool {
    if members.has(host) {
        return true;
    }
    let known = members.hosts.position.contains_key(host);
    let of = if known { "of this test" } else { "of the plan" };
    let near = test.book.nearest_host(host, members.list.iter().map(String::as_str)).filter(|_| !known);
    let help = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "name a host of the test, or add this one to `hosts`".into(),
    };
    test.wrong(span, format!("{host} is not one of the hosts {of}"), help);
    false
}

/// The two groups of `between`, which share no host; `None` after reporting a mistake.
pub fn two_groups(test: &Table<'_>, members: &Members<'_>) -> Option<(String, String)> {
    let two = test.texts("between")?;
    let [one, other] = two.value.as_slice() else { return None };
    let (first, second) = (group(test, one, members), group(test, other, members));
    let (first, second) = (first?, second?);
    let inside: HashSet<&str> = first.into_iter().collect();
    if let Some(shared) = second.into_iter().find(|name| inside.contains(name)) {
        let message = format!("{shared} is in both groups: a host cannot be its own peer");
        return test.reject(two.span, message, "use two groups without a common host");
    }
    Some((one.text.clone(), other.text.clone()))
}

fn group<'a>(test: &Table<'_>, name: &Words, members: &'a Members<'_>) -> Option<Vec<&'a str>> {
    let Some(group) = members.hosts.groups.get(&name.text) else {
        members.hosts.no_group(test.book, &name.text, name.span.clone());
        return None;
    };
    let chosen: Vec<&str> = group.iter().map(String::as_str).filter(|host| members.has(host)).collect();
    if chosen.is_empty() {
        let message = format!("no host of the group {} takes part in this test", name.text);
        let help = "add the group to `hosts`, or leave `hosts` out";
        return test.reject(name.span.clone(), message, help);
    }
    Some(chosen)
}

/// Reports an excessive number of measurements. Rails that only the hosts know are not counted.
pub fn judge_amount(table: &Table<'_>, test: &Test, hosts: &Hosts) {
    let rails = match &test.rails {
        Rails::Only(rails) if test.pattern != Pattern::Within => rails.len() as u128,
        _ => 1,
    };
    let amount = limits::least(&hosts.groups, test).saturating_mul(rails);
    if amount > MOST.into() {
        let pairs = limits::flows(&hosts.groups, test);
        let message = format!("this test has {amount} measurements of {pairs} pairs");
        let help = format!("a test has at most {MOST}: use fewer sizes or repeats, or pattern = \"random\"");
        table.wrong(table.span.clone(), message, help);
    }
}
