//! Grounds of the verdict on the parts of a test, and of that on flows at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use railgauge_model::plan::hostlist;
use railgauge_wire::{natural, unit::Bytes};
use serde::Serialize;

use crate::analysis::{
    localise::{AcrossRails, CarryLess, GroupsUnlike, OverTime, TOGETHER, TooNoisy, Way, only},
    verdict::{Untested, not_tested},
    words::{change, count, number, size},
};

/// Parts that a verdict names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedParts {
    /// Their names.
    parts: Vec<String>,
    /// The same as it is told, with hosts together where they are many.
    #[serde(skip)]
    told: Vec<String>,
}

/// A part before it is told.
#[derive(Debug, Clone)]
pub(in crate::analysis::verdict) struct ToName {
    /// Its name.
    pub(in crate::analysis::verdict) name: String,
    /// Of a part that is a host as a whole which one, and the direction in which it is bad.
    pub(in crate::analysis::verdict) host: Option<(String, Way)>,
    /// What was bad while it was measured, in words.
    pub(in crate::analysis::verdict) meanwhile: Option<String>,
    /// Names of what fits its values as well.
    pub(in crate::analysis::verdict) or: Vec<String>,
}

impl ToName {
    /// One of which only the name is known.
    pub(in crate::analysis::verdict) fn only(name: &str) -> Self {
        Self { name: name.to_owned(), host: None, meanwhile: None, or: Vec::new() }
    }
}

impl NamedParts {
    /// Parts in their order. [`TOGETHER`] hosts and more that are bad in the same direction are told at the place of the first.
    pub(in crate::analysis::verdict) fn of(named: &[ToName]) -> Self {
        let mut ways: BTreeMap<Way, Vec<&str>> = BTreeMap::new();
        for (host, way) in named.iter().filter_map(|one| one.host.as_ref()) {
            ways.entry(*way).or_default().push(host);
        }
        ways.retain(|_, hosts| hosts.len() >= TOGETHER);
        let parts = named.iter().map(|one| one.name.clone()).collect();
        let mut told: Vec<String> = Vec::new();
        let mut is_told: BTreeSet<Way> = BTreeSet::new();
        for ToName { name, host, meanwhile, or } in named {
            let name = [std::slice::from_ref(name), or.as_slice()].concat().join(" or ");
            match (host.as_ref().and_then(|(_, way)| ways.get_key_value(way)), meanwhile) {
                (Some((way, _)), _) if !is_told.insert(*way) => {}
                (Some((way, hosts)), _) => {
                    let mut hosts = hosts.clone();
                    natural::sort(&mut hosts);
                    told.push(format!("hosts {}{}", hostlist::fold(hosts.into_iter()), only(*way)));
                }
                (None, Some(words)) => told.push(format!("{name} ({words})")),
                (None, None) => told.push(name),
            }
        }
        Self { parts, told }
    }
}

/// Parts that are told by their names.
const NAMED: usize = 8;

impl fmt::Display for NamedParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (told, more) = self.told.split_at(self.told.len().min(NAMED));
        f.write_str(&told.join(", "))?;
        if more.is_empty() { Ok(()) } else { write!(f, " and {} more", more.len()) }
    }
}

/// What a test says of the parts of the cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OfParts {
    /// Parts that are worse than their peers and were measured again.
    Worse(NamedParts),
    /// Parts that stand out, neither confirmed nor cleared.
    Unsettled(NamedParts),
    /// Links that stand out by themselves and were not measured again.
    LinksStandOut {
        /// How many.
        links: usize,
        /// The worst of them.
        worst: Apart,
        /// The only host that all of several flows share.
        shared_host: Option<String>,
    },
    /// Groups of one size do not reach the same.
    GroupsUnlike(GroupsUnlike),
    /// Ends carry less than others at best.
    CarryLess(CarryLess),
    /// A collective in which something is wrong has no part that explains it.
    Unexplained {
        /// What is wrong, and what the search came to, in words.
        cause: String,
    },
    /// All values changed during the test.
    OverTime(OverTime),
    /// Results scatter too much to tell.
    TooNoisy(TooNoisy),
    /// What the plan waives.
    Waived(NamedParts),
    /// Nothing stands out.
    NothingStandsOut {
        /// How many were compared.
        among: usize,
        /// What was compared: `pair`, `group`, `flow`.
        counted: &'static str,
        /// Below which share of what good flows reach, in percent, one would stand out; `None` where that is not told.
        below_percent: Option<f64>,
    },
    /// Pairs across rails are all alike and worse than pairs on one rail.
    AcrossRails(AcrossRails),
    /// Parts of the cluster, or cases, that were not tested.
    NotTested {
        /// Which.
        untested: Vec<Untested>,
    },
}

impl OfParts {
    /// What of the parts of the cluster was not tested in a test; `None` where all was.
    pub(in crate::analysis::verdict) fn not_tested(untested: &[Untested], test: &str) -> Option<Self> {
        let of_test = untested.iter().filter(|one| one.is_of_parts() && one.is_in(test));
        let untested: Vec<Untested> = of_test.cloned().collect();
        (!untested.is_empty()).then_some(Self::NotTested { untested })
    }
}

/// A link that stands out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Apart {
    /// The link or group, in words.
    pub link: String,
    /// Message size in bytes.
    pub size_bytes: Bytes,
    /// By how much its value differs from the centre of its peers, in percent of that.
    pub change_percent: Option<f64>,
    /// Hosts of its ends, or of its group.
    #[serde(skip)]
    pub hosts: Vec<String>,
}

/// `gpu01:0 → gpu02:0 (64 KiB, −50.3 %)`.
impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.link, size(self.size_bytes))?;
        match self.change_percent {
            Some(percent) => write!(f, ", {})", change(percent)),
            None => f.write_str(")"),
        }
    }
}

impl fmt::Display for OfParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worse(parts) => write!(f, "worse than its peers, measured again: {parts}"),
            Self::Unsettled(parts) => write!(f, "stands out and is neither confirmed nor cleared: {parts}"),
            Self::LinksStandOut { links, worst, shared_host } => {
                let stand = if *links == 1 { "stands" } else { "stand" };
                write!(f, "{} {stand} out, not measured again: {worst}", count(*links, "link"))?;
                if *links > 1 {
                    write!(f, " and {} more", links - 1)?;
                }
                shared_host.as_ref().map_or(Ok(()), |host| write!(f, "; all of them are flows of {host}"))
            }
            Self::GroupsUnlike(unlike) => unlike.fmt(f),
            Self::CarryLess(less) => less.fmt(f),
            Self::Unexplained { cause } => f.write_str(cause),
            Self::OverTime(over_time) => over_time.fmt(f),
            Self::TooNoisy(noise) => write!(f, "too noisy to tell: {noise}"),
            Self::Waived(parts) => write!(f, "waived by the plan: {parts}"),
            Self::NothingStandsOut { among, counted, below_percent } => {
                write!(f, "nothing stands out among {}", count(*among, counted))?;
                let below =
                    |percent: f64| write!(f, " (a flow below {} % of what good flows reach would)", number(percent));
                below_percent.map_or(Ok(()), below)
            }
            Self::AcrossRails(across) => across.fmt(f),
            Self::NotTested { untested } => f.write_str(&not_tested(untested.iter()).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_together_by_direction() {
        let hosts = |way: Way, all: &[usize]| {
            let one = |n: &usize| ToName {
                // However a name is worded.
                name: format!("the machine gpu{n}"),
                host: Some((format!("gpu{n}"), way)),
                meanwhile: None,
                or: Vec::new(),
            };
            all.iter().map(one).collect::<Vec<_>>()
        };
        let told = |parts: &[Vec<_>]| NamedParts::of(&parts.concat()).told;
        let both = |all: &[usize]| hosts(Way::Both, all);
        let path = vec![ToName::only("path between gpu1 and gpu2")];
        assert_eq!(told(&[both(&[1, 2, 3]), path.clone(), both(&[4])]), ["hosts gpu[1-4]", &*path[0].name]);
        let receive = hosts(Way::Receive, &[5, 6, 7, 8]);
        assert_eq!(told(&[both(&[1]), receive.clone()]), ["the machine gpu1", "hosts gpu[5-8], receiving"]);
        assert_eq!(told(&[both(&[1, 2, 3]), receive[..1].to_vec()]).len(), 4);
    }
}
