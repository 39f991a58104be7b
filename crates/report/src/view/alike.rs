//! Groups hosts that stand out alike: a slow leaf of 32 hosts is one card and not 32 if the plan has no leaf.

use std::collections::HashMap;

use railgauge_analysis::{
    localise::{TOGETHER, Way, only},
    outliers::Part,
};
use railgauge_model::plan::hostlist;

/// What grouped hosts share: state, direction, and the tests in which they stand out, in order.
type Key<'p> = (String, Way, Vec<&'p str>);

fn host<'p>(part: &'p Part<'_>) -> Option<&'p str> {
    let mut hosts = part.evidence.iter().map(|one| one.named.host());
    let first = hosts.next()??;
    hosts.all(|host| host == Some(first)).then_some(first)
}

fn way(part: &Part<'_>) -> Way {
    part.evidence.first().map_or(Way::Both, |one| one.named.way)
}

fn key<'p>(part: &'p Part<'_>) -> Key<'p> {
    (part.state(), way(part), part.evidence.iter().map(|one| one.test.test.as_str()).collect())
}

/// In the order of the parts: at least four hosts of one state in the same tests form a group at the position of the
/// first; every other part is alone.
pub(super) fn groups<'o, 'a>(parts: &[&'o Part<'a>]) -> Vec<Vec<&'o Part<'a>>> {
    let mut sizes: HashMap<Key<'o>, usize> = HashMap::new();
    parts.iter().filter(|part| host(part).is_some()).for_each(|part| *sizes.entry(key(part)).or_default() += 1);
    let mut places: HashMap<Key<'o>, usize> = HashMap::new();
    let mut groups: Vec<Vec<&Part<'a>>> = Vec::new();
    for part in parts {
        let key = host(part).map(|_| key(part)).filter(|key| sizes.get(key).is_some_and(|size| *size >= TOGETHER));
        match key.as_ref().and_then(|key| places.get(key)) {
            Some(place) => groups[*place].push(part),
            None => {
                key.map(|key| places.insert(key, groups.len()));
                groups.push(vec![part]);
            }
        }
    }
    groups
}

/// `hosts gpu[0065-0096]` or `hosts gpu[0065-0096], receiving`; a single part keeps its name.
pub(super) fn name(group: &[&Part<'_>]) -> String {
    match group {
        [one] => one.name.to_owned(),
        all => {
            let hosts = hostlist::listed(all.iter().filter_map(|part| host(part)));
            format!("hosts {hosts}{}", all.first().map_or("", |one| only(way(one))))
        }
    }
}
