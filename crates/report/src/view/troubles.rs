//! Cases with problems, grouped by state and cause, all with their names.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use railgauge_analysis::{
    case::{NotRun, Objection, State},
    verdict::Trouble,
};
use railgauge_model::plan::hostlist;
use railgauge_wire::{Bytes, Kind, Stage};
use serde::Serialize;

use super::section::{sizes, telling};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TroubleGroup {
    pub anchor: String,
    pub state: State,
    pub wrong: bool,
    /// Host, stage and cause of the first of them, verbatim.
    pub error: String,
    /// Whether the words of others have other hosts, addresses or numbers.
    pub example: bool,
    /// Folded: hosts named by the failures, otherwise both ends.
    pub hosts: String,
    pub named: bool,
    /// The next step; may be empty.
    pub help: String,
    pub help_example: bool,
    pub cases: usize,
    pub links: Vec<TroubleLink>,
    pub links_more: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TroubleLink {
    pub test: String,
    pub link: String,
    /// Empty for most tests.
    pub variant: String,
    pub sizes: String,
    pub counters: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// Links listed per group. More only repeat their cause; verdicts.json has every case.
const LISTED: usize = 400;

/// Grouping key of an objection: its kind, the stage and kind of failure, and the shape of its words.
type Against = (std::mem::Discriminant<Objection>, Option<(Stage, Kind)>, String);

/// Text without the words that have digits: names, addresses, times and numbers of one case.
pub(crate) fn shape(text: &str) -> String {
    let plain = text.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    plain.collect::<Vec<_>>().join(" ")
}

/// Grouping key of cases: state, id of the remedy, and objections.
#[derive(PartialEq, Eq, Hash)]
struct Cause<'t> {
    state: State,
    remedy: Option<&'t str>,
    against: Vec<Against>,
}

impl<'t> Cause<'t> {
    fn of(trouble: &'t Trouble) -> Self {
        let against = |one: &Objection| {
            let failure = match one {
                Objection::Failed { failure, .. } | Objection::NotRun(NotRun::HostLost { failure, .. }) => {
                    Some(failure)
                }
                _ => None,
            };
            let words = failure.map_or_else(|| one.to_string(), |failure| failure.cause.clone());
            (std::mem::discriminant(one), failure.map(|failure| (failure.stage, failure.kind)), shape(&words))
        };
        Self {
            state: trouble.state,
            remedy: trouble.remedy.as_ref().map(|remedy| remedy.id.as_ref()),
            against: trouble.against.0.iter().map(against).collect(),
        }
    }
}

/// Wrong bytes first, then by the number of cases.
pub(super) fn groups(troubles: &[Trouble]) -> Vec<TroubleGroup> {
    let mut order: Vec<Vec<&Trouble>> = Vec::new();
    let mut known: HashMap<Cause<'_>, usize> = HashMap::new();
    for trouble in troubles {
        let place = *known.entry(Cause::of(trouble)).or_insert_with(|| {
            order.push(Vec::new());
            order.len() - 1
        });
        order[place].push(trouble);
    }
    let is_wrong = |cases: &[&Trouble]| cases.first().is_some_and(|first| first.state == State::Wrong);
    order.sort_by_key(|cases| (!is_wrong(cases), std::cmp::Reverse(cases.len())));
    order.iter().enumerate().filter_map(|(at, cases)| group(at, cases)).collect()
}

fn group(at: usize, cases: &[&Trouble]) -> Option<TroubleGroup> {
    let first = cases.first()?;
    let error = first.against.to_string();
    let (hosts, named) = hosts(cases);
    let mut links = links(cases, &error);
    let links_more = links.len().saturating_sub(LISTED);
    links.truncate(LISTED);
    Some(TroubleGroup {
        anchor: format!("trouble-{}", at + 1),
        state: first.state,
        wrong: first.state == State::Wrong,
        example: cases.iter().any(|case| case.against != first.against && case.against.to_string() != error),
        error,
        hosts,
        named,
        help: first.remedy.as_ref().map_or_else(String::new, super::hosts::help),
        help_example: cases.iter().any(|case| case.remedy != first.remedy),
        cases: cases.len(),
        links,
        links_more,
    })
}

fn hosts(cases: &[&Trouble]) -> (String, bool) {
    let lost = |one: &Objection| match one {
        Objection::NotRun(NotRun::HostLost { host, .. }) => Some(host.clone()),
        Objection::Failed { failure, .. } => failure.host.clone(),
        _ => None,
    };
    let of = |case: &Trouble| case.against.0.iter().find_map(lost);
    let blamed: Option<BTreeSet<String>> = cases.iter().map(|case| of(case)).collect();
    let named = blamed.is_some();
    let ends = || cases.iter().flat_map(|case| [case.src_host.clone(), case.dst_host.clone()]).collect();
    let hosts = blamed.unwrap_or_else(ends);
    let others = if named { common(cases, &hosts) } else { String::new() };
    (folded(hosts) + &others, named)
}

/// In natural order, abbreviated.
pub(super) fn folded(hosts: BTreeSet<String>) -> String {
    hostlist::listed(hosts.iter().map(String::as_str))
}

/// Most hosts reported as the other end.
const OTHERS: usize = 3;

/// `, each with gpu006`: the other ends of failures, if few hosts are the other end of many that noticed: the common end is the suspect.
fn common(cases: &[&Trouble], noticed: &BTreeSet<String>) -> String {
    let peer = |one: &Objection| match one {
        Objection::Failed { failure, .. } => failure.peer.clone(),
        _ => None,
    };
    let others: Option<BTreeSet<String>> = cases.iter().map(|case| case.against.0.iter().find_map(peer)).collect();
    let others = others.filter(|others| others.len() <= OTHERS && 2 * others.len() <= noticed.len());
    others.filter(|others| !others.is_empty()).map_or_else(String::new, |others| {
        let words = if others.len() == 1 { "each with" } else { "each with one of" };
        format!(", {words} {}", folded(others))
    })
}

/// The first case of a link, the sizes of all, and the counters that moved by host and name.
type Collected<'t> = (&'t Trouble, Vec<Bytes>, BTreeMap<(&'t str, &'t str), u64>);

fn links(cases: &[&Trouble], of_group: &str) -> Vec<TroubleLink> {
    let mut links: Vec<Collected<'_>> = Vec::new();
    let mut known = HashMap::new();
    for case in cases {
        let key = (&case.test, &case.link, &case.variant);
        let place = *known.entry(key).or_insert_with(|| {
            links.push((case, Vec::new(), BTreeMap::new()));
            links.len() - 1
        });
        links[place].1.push(case.size_bytes);
        for (host, name, change) in case.counters.iter().filter(|(_, name, _)| telling(name)) {
            let sum = links[place].2.entry((host.as_str(), name.as_str())).or_default();
            *sum = sum.saturating_add(*change);
        }
    }
    links
        .into_iter()
        .map(|(case, list, counters)| TroubleLink {
            test: case.test.clone(),
            link: case.link.clone(),
            variant: case.variant.clone(),
            sizes: sizes(&list),
            counters: counters
                .into_iter()
                .map(|((host, name), change)| format!("{name} of {host} +{change}"))
                .collect::<Vec<_>>()
                .join(", "),
            error: Some(case.against.to_string()).filter(|error| error != of_group).unwrap_or_default(),
        })
        .collect()
}
