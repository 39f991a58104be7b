//! What is miscabled, told from where the ports of hosts and switches are plugged in, before any traffic.
//!
//! Nothing here knows how a cluster should be cabled: a host is compared with its fellows. Where they do not agree, nothing is found,
//! and [`Cabling::unjudged`] says so.

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

/// A port of a host's NIC, and what it is plugged into.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attached {
    pub host: String,
    /// The port as a plan names it: `mlx5_3`.
    pub device: String,
    /// The host's rail it belongs to. Ports of one rail may be plugged into several leaves (dual ToR).
    pub rail: u32,
    /// The board it is on: a system image GUID, or the PCI address of the board.
    pub board: Option<String>,
    /// The switch's port; `None` for a port of which no source knows a cable.
    pub at: Option<At>,
    /// How the link runs.
    pub run: Run,
    /// Whether its host says that the link is up; `None` where it does not say.
    pub is_up: Option<bool>,
}

/// A switch, and a port of it if that is known.
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

/// How a link runs, as far as it is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// Gbit/s.
    pub rate_gbps: Option<f64>,
    pub width: Option<u32>,
    /// Speed of a lane: `HDR`.
    pub speed: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trunk {
    pub ends: [At; 2],
    /// How the link runs.
    pub run: Run,
}

/// What was found, and what could not be judged.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cabling {
    pub findings: Vec<Finding>,
    /// What was not judged, and of whom.
    pub unjudged: Vec<Unjudged>,
}

/// What was not judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unjudged {
    /// The hosts that it is about, by name; none where it is about links between switches alone.
    pub hosts: Vec<String>,
    /// What and why, in words that do not name the hosts.
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
    /// Hosts or links that were compared, the judged one among them.
    pub of: usize,
}

impl std::fmt::Display for Agree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.agree, self.of)
    }
}

impl Agree {
    /// Whether that is enough to call the rest wrong: two others at least, and two thirds, so that one fault among three is found and
    /// two designs side by side are not called faults.
    fn is_rule(self) -> bool {
        self.agree >= 2 && 3 * self.agree >= 2 * self.of
    }
}

/// Judges the cables. Ports that no source knows belong into `ports` too.
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

/// Ports of switches at which two hosts are said to be plugged in: a host was exchanged, or a source is out of date.
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

/// The value that most have, and how many do; the least of several.
fn most<T: Ord>(values: impl Iterator<Item = T>) -> Option<(T, Agree)> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let of = counts.values().sum();
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(value, agree)| (value, Agree { agree, of }))
}
