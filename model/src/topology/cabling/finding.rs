//! Findings for technicians.

use std::{collections::BTreeMap, fmt};

use super::plugged::At;

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
    pub(super) fn new<'h>(hosts: impl IntoIterator<Item = &'h str>, why: impl Into<String>) -> Self {
        Self { hosts: hosts.into_iter().map(str::to_owned).collect(), why: why.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agree {
    pub agree: usize,
    /// Hosts or links that were compared, including the judged one.
    pub of: usize,
}

impl fmt::Display for Agree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.agree, self.of)
    }
}

impl Agree {
    /// Whether that is enough to call the rest wrong: at least two others, and two thirds, so that one fault among three is found and two
    /// designs in one cluster are not called faults.
    pub(super) fn is_rule(self) -> bool {
        self.agree >= 2 && 3 * self.agree >= 2 * self.of
    }
}

/// A fault of the cables, with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// Two rails of one host have each other's leaf.
    Swapped {
        host: String,
        /// Both rails: number, device, place.
        rails: [(u32, String, At); 2],
        agree: Agree,
    },
    /// One rail of a host is at another leaf than those of its peers.
    WrongLeaf { host: String, rail: u32, device: String, at: At, expected: String, like: Option<u32>, agree: Agree },
    /// Ports of one board are at unlike ports of their leaves.
    UnlikePorts {
        host: String,
        board: String,
        ports: Vec<(String, At)>,
        /// Hosts that have such a board at like ports.
        agree: Agree,
    },
    /// A NIC port has no working cable, unlike its peers.
    Uncabled { host: String, rail: u32, devices: Vec<String>, agree: Agree },
    /// Two hosts are reported at one port of a switch.
    Claimed { at: At, by: Vec<(String, String)> },
    /// A link is narrower or slower than its peers.
    Slower {
        /// The host, if one end is a host's.
        host: Option<String>,
        /// `gpu001 mlx5_0`, `leaf1 port 7`.
        ends: [String; 2],
        /// Its rate and width, in words.
        run: String,
        fellows: String,
        agree: Agree,
    },
}

impl Finding {
    /// Empty for a cable between switches.
    pub fn hosts(&self) -> Vec<&str> {
        match self {
            Self::Swapped { host, .. }
            | Self::WrongLeaf { host, .. }
            | Self::UnlikePorts { host, .. }
            | Self::Uncabled { host, .. } => vec![host],
            Self::Claimed { by, .. } => by.iter().map(|(host, _)| host.as_str()).collect(),
            Self::Slower { host, .. } => host.as_deref().into_iter().collect(),
        }
    }
}

/// Does not name the hosts.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Swapped { host, rails: [(one, device, at), (other, second, there)], agree } => write!(
                f,
                "rails {one} and {other} are swapped: {device} is at {at}, {second} at {there}; {agree} hosts have \
                 rail {one} at {} and rail {other} at {}. Exchange the two cables, or number the NICs of {host} as on the others",
                there.name, at.name
            ),
            Self::WrongLeaf { rail, device, at, expected, like, agree, .. } => {
                let whose = like.map(|rail| format!(", the leaf of rail {rail}")).unwrap_or_default();
                write!(
                    f,
                    "rail {rail} is at a wrong leaf: {device} is at {at}{whose}; {agree} hosts have rail {rail} at \
                     {expected}. Move the cable at {at} to {expected}"
                )
            }
            Self::UnlikePorts { host, board, ports, agree } => {
                let list: Vec<String> = ports.iter().map(|(device, at)| format!("{device} at {at}")).collect();
                write!(
                    f,
                    "the ports of board {board} are at unlike ports of their leaves: {}; {agree} hosts have them at \
                     ports of the same number. Follow the cables of {host}",
                    list.join(", ")
                )
            }
            Self::Uncabled { rail, devices, agree, .. } => write!(
                f,
                "no cable is seen at {} (rail {rail}); {agree} hosts have that rail cabled. Look whether a cable is \
                 plugged in at both ends and its link is up",
                devices.join(", ")
            ),
            Self::Claimed { at, by } => {
                let list: Vec<String> = by.iter().map(|(host, device)| format!("{host} {device}")).collect();
                write!(
                    f,
                    "{at} has one socket, and {} are said to be in it. Read the topology again",
                    list.join(" and ")
                )
            }
            Self::Slower { ends: [one, other], run, fellows, agree, .. } => write!(
                f,
                "{one} – {other} runs at {run}; {agree} peers run at {fellows}. Clean, reseat or replace the cable \
                 between {one} and {other}"
            ),
        }
    }
}

/// The most frequent value and its count; the least of several.
pub(super) fn most<T: Ord>(values: impl Iterator<Item = T>) -> Option<(T, Agree)> {
    let mut counts: BTreeMap<T, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let of = counts.values().sum();
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(value, agree)| (value, Agree { agree, of }))
}
