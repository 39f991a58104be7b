//! Cases that were not simply measured, grouped by what became of them and why, every one by name.

use std::collections::{BTreeMap, HashMap};

use railgauge_wire::unit::Bytes;
use serde::Serialize;

use super::{section::telling, sizes};
use crate::analysis::{results::State, verdict::Trouble};

/// Cases with the same fate and cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TroubleGroup {
    /// What became of them.
    pub state: State,
    /// Whether bytes arrived wrong.
    pub wrong: bool,
    /// Which host, stage and cause.
    pub error: String,
    /// The next thing to look at or do; empty where none is known.
    pub help: String,
    /// How many.
    pub cases: usize,
    /// The links, with what was not measured on each.
    pub links: Vec<TroubleLink>,
}

/// One link of a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TroubleLink {
    /// Name of the test.
    pub test: String,
    /// `gpu01:0 → gpu02:0`.
    pub link: String,
    /// What sets it apart; empty for most tests.
    pub variant: String,
    /// The sizes, in words.
    pub sizes: String,
    /// Counters that speak of errors or congestion and moved; empty where none did.
    pub counters: String,
}

/// Groups troubles: wrong bytes first, then by the number of cases.
pub(super) fn groups(troubles: &[Trouble]) -> Vec<TroubleGroup> {
    let mut order: Vec<(State, String, Vec<&Trouble>)> = Vec::new();
    let mut known: HashMap<(State, String), usize> = HashMap::new();
    for trouble in troubles {
        let (state, error) = (trouble.state, trouble.against.to_string());
        let place = *known.entry((state, error.clone())).or_insert_with(|| {
            order.push((state, error, Vec::new()));
            order.len() - 1
        });
        order[place].2.push(trouble);
    }
    order.sort_by_key(|(state, _, cases)| (*state != State::Wrong, std::cmp::Reverse(cases.len())));
    order
        .into_iter()
        .map(|(state, error, cases)| TroubleGroup {
            state,
            wrong: state == State::Wrong,
            error,
            help: cases.first().and_then(|case| case.remedy.as_ref()).map_or_else(String::new, super::hosts::help),
            cases: cases.len(),
            links: links(&cases),
        })
        .collect()
}

/// A first case of a link, the sizes of all, and the counters that moved by host and name.
type Collected<'t> = (&'t Trouble, Vec<Bytes>, BTreeMap<(&'t str, &'t str), u64>);

fn links(cases: &[&Trouble]) -> Vec<TroubleLink> {
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
        })
        .collect()
}
