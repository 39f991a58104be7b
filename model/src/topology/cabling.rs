//! Finds miscabling from where the ports of hosts and switches are plugged in, before any traffic.
//!
//! The right cabling is unknown: a host is compared with its peers. Where they do not agree, nothing is found, and [`Cabling::unjudged`]
//! says so.

mod boards;
mod finding;
mod links;
mod plugged;
mod rails;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use finding::Finding;
pub use plugged::plugged;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attached {
    pub host: String,
    pub device: String,
    /// Ports of one rail may be plugged into several leaves (dual ToR).
    pub rail: u32,
    /// A system image GUID, or the PCI address of the board.
    pub board: Option<String>,
    /// The switch's port; `None` if no source knows a cable of the port.
    pub at: Option<At>,
    pub run: Run,
    /// Whether its host reports the link as up; `None` where unknown.
    pub is_up: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct At {
    pub key: String,
    pub name: String,
    pub port: Option<String>,
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.port {
            Some(port) => write!(f, "{} port {port}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// In Gbit/s.
    pub rate_gbps: Option<f64>,
    pub width: Option<u32>,
    /// Speed of a lane: `HDR`.
    pub speed: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trunk {
    pub ends: [At; 2],
    pub run: Run,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cabling {
    pub findings: Vec<Finding>,
    pub unjudged: Vec<Unjudged>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unjudged {
    /// By name; empty for links between switches only.
    pub hosts: Vec<String>,
    pub why: String,
}

impl Unjudged {
    fn new<'h>(hosts: impl IntoIterator<Item = &'h str>, why: impl Into<String>) -> Self {
        Self { hosts: hosts.into_iter().map(str::to_owned).collect(), why: why.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agree {
    pub agree: usize,
    /// Hosts or links that were compared, including the judged one.
    pub of: usize,
}

impl std::fmt::Display for Agree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.agree, self.of)
    }
}

impl Agree {
    /// Whether that is enough to call the rest wrong: at least two others, and two thirds, so that one fault among three is found and two
    /// designs in one cluster are not called faults.
    fn is_rule(self) -> bool {
        self.agree >= 2 && 3 * self.agree >= 2 * self.of
    }
}

/// Judges the cables. `ports` must include those unknown to all sources.
pub fn judge(ports: &[Attached], trunks: &[Trunk]) -> Cabling {
    let mut cabling = Cabling::default();
    let hosts = rails::hosts(ports);
    rails::judge(&hosts, &mut cabling);
    boards::judge(ports, &mut cabling);
    rails::uncabled(&hosts, &mut cabling);
    claimed(ports, &mut cabling);
    links::judge(ports, trunks, &mut cabling);
    cabling
}

/// Finds switch ports with two hosts: a host was exchanged, or a source is out of date.
fn claimed(ports: &[Attached], cabling: &mut Cabling) {
    let mut claims: BTreeMap<(&str, &str), Vec<&Attached>> = BTreeMap::new();
    for one in ports {
        if let Some(At { key, port: Some(port), .. }) = &one.at {
            claims.entry((key, port)).or_default().push(one);
        }
    }
    for by in claims.into_values() {
        let hosts: BTreeSet<&str> = by.iter().map(|one| one.host.as_str()).collect();
        if let (true, Some(at)) = (hosts.len() > 1, by[0].at.clone()) {
            let by = by.iter().map(|one| (one.host.clone(), one.device.clone())).collect();
            cabling.findings.push(Finding::Claimed { at, by });
        }
    }
}

/// The most frequent value and its count; the least of several.
fn most<T: Ord>(values: impl Iterator<Item = T>) -> Option<(T, Agree)> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let of = counts.values().sum();
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(value, agree)| (value, Agree { agree, of }))
}
