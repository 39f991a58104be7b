//! Suspects that are one: both directions of an end, all NICs of a host, and what a larger part explains.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    LOWER, Part, Port, Way,
    cover::{Cover, Table},
    links::Effects,
    suspect::Draft,
};
use crate::robust::median_in_place;

/// Joins both directions of an end, and all NICs of a host.
pub(super) fn join(drafts: Vec<Draft>, table: &Table) -> Vec<Draft> {
    let mut by_part: BTreeMap<Part, Vec<u32>> = BTreeMap::new();
    let mut alternatives: BTreeMap<Part, Vec<Part>> = BTreeMap::new();
    // What lies between groups, as both directions of it.
    let mut across: BTreeSet<Part> = BTreeSet::new();
    for draft in drafts {
        if matches!(draft.part, Part::Uplink(..) | Part::Boundary(..)) {
            across.insert(draft.part.clone().only(Way::Both));
        }
        alternatives.insert(draft.part.clone(), draft.alternatives);
        by_part.entry(draft.part).or_default().extend(draft.cells);
    }
    // A pair of parts becomes one if both are there, or if the larger one is there already.
    let mut merge = |small: &[Part], large: Part| {
        let there = small.iter().all(|part| by_part.contains_key(part)) || by_part.contains_key(&large);
        if there && !small.is_empty() {
            let cells: Vec<u32> = small.iter().filter_map(|part| by_part.remove(part)).flatten().collect();
            by_part.entry(large).or_default().extend(cells);
        }
    };
    let mut ports: Vec<Port> = table.cells.iter().flat_map(|c| [c.from, c.to]).collect();
    ports.sort_unstable();
    ports.dedup();
    for &port in &ports {
        merge(&[Part::Nic(port, Way::Send), Part::Nic(port, Way::Receive)], Part::Nic(port, Way::Both));
    }
    for nics in ports.chunk_by(|a, b| a.host == b.host) {
        let host = nics[0].host;
        for way in [Way::Send, Way::Receive, Way::Both] {
            let small: Vec<Part> = nics.iter().map(|&port| Part::Nic(port, way)).collect();
            merge(&small, Part::Host(host, way));
        }
        merge(&[Part::Host(host, Way::Send), Part::Host(host, Way::Receive)], Part::Host(host, Way::Both));
    }
    for both in across {
        merge(&[both.clone().only(Way::Send), both.clone().only(Way::Receive)], both);
    }
    // What is low within a group and what leaves it are the group.
    let groups: Vec<u32> =
        by_part.keys().filter_map(|part| if let Part::Group(group) = part { Some(*group) } else { None }).collect();
    for group in groups {
        for way in [Way::Both, Way::Send, Way::Receive] {
            let cells = by_part.remove(&Part::Uplink(group, way)).unwrap_or_default();
            by_part.entry(Part::Group(group)).or_default().extend(cells);
        }
    }
    let with = |(part, cells): (Part, Vec<u32>)| {
        let alternatives = alternatives.remove(&part).unwrap_or_default();
        let mut draft = Draft::new(part, cells);
        draft.alternatives = alternatives;
        draft
    };
    by_part.into_iter().map(with).collect()
}

/// Leaves out ends that a shared part explains, and one rail of a group where the whole group is named: all their pairs pass it,
/// and they are no lower than the others there.
pub(super) fn absorb(drafts: Vec<Draft>, table: &Table, cover: &Cover) -> Vec<Draft> {
    let (small, mut shared): (Vec<Draft>, Vec<Draft>) =
        drafts.into_iter().partition(|draft| draft.part.is_end() || matches!(draft.part, Part::GroupRail { .. }));
    let (ends, rails): (Vec<Draft>, Vec<Draft>) = small.into_iter().partition(|draft| draft.part.is_end());
    let left = absorb_into(&mut shared, rails, table, cover);
    shared.extend(left);
    let left = absorb_into(&mut shared, ends, table, cover);
    shared.extend(left);
    shared
}

/// Gives the pairs of what shared parts explain to these; the rest comes back.
fn absorb_into(shared: &mut [Draft], small: Vec<Draft>, table: &Table, cover: &Cover) -> Vec<Draft> {
    let cells_of: HashMap<&Part, &Vec<u32>> = cover.parts.iter().zip(&cover.cells).collect();
    let effects: Vec<Effects> = shared.iter().map(|large| Effects::new(table, &large.cells, false)).collect();
    let mut left = Vec::new();
    for end in small {
        // What is low of the end and does not pass the shared part is what it would have to explain itself.
        let into = shared.iter_mut().zip(&effects).find(|(large, like)| {
            let parts = || [&large.part].into_iter().chain(&large.alternatives);
            let passes =
                |at: &&u32| parts().any(|part| cells_of.get(part).is_some_and(|of| of.binary_search(at).is_ok()));
            let outside = end.cells.iter().filter(|at| !passes(at));
            let low =
                outside.filter(|&&at| table.residual(at as usize) < like.nearest(table, at as usize) / 2.0).count();
            let beyond = |&at: &u32| table.residual(at as usize) - LOWER * like.nearest(table, at as usize);
            10 * low <= end.cells.len() && median_in_place(&mut end.cells.iter().map(beyond).collect::<Vec<_>>()) > 0.0
        });
        match into {
            Some((large, _)) => large.cells.extend(end.cells),
            None => left.push(end),
        }
    }
    left
}
