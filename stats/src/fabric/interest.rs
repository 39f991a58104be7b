//! The aims of the next tests: the links of every suspect, and which links are in doubt.

use super::{Fabric, Findings, Part, Suspect};

/// Most links of one suspect that are looked at in one round.
const MOST: usize = 32;

/// The links of a suspect in the order in which they matter: those of the part, those of its alternatives, then the other direction
/// of each cable, which shows whether one direction is bad or both.
pub(super) fn links(fabric: &Fabric, suspect: &Suspect, turn: usize) -> Vec<u32> {
    let own = fabric.links_of(&suspect.part);
    let mut links: Vec<u32> = match suspect.part {
        // Other cables of a device in every round.
        Part::Device(_) => (0..own.len()).map(|at| own[(at + turn * MOST / 2) % own.len()]).collect(),
        _ => own,
    };
    let others = suspect.alternatives.iter().filter(|part| !matches!(part, Part::Device(_)));
    links.extend(others.flat_map(|part| fabric.links_of(part)));
    let reverse = |&link: &u32| fabric.links()[link as usize].reverse;
    links.extend(links.clone().iter().filter_map(reverse));
    let mut seen = vec![false; fabric.links().len()];
    links.retain(|&link| !std::mem::replace(&mut seen[link as usize], true));
    links.truncate(MOST);
    links
}

/// For each link whether a suspect or an alternative has it.
pub(super) fn doubtful(fabric: &Fabric, findings: &Findings) -> Vec<bool> {
    let mut doubtful = vec![false; fabric.links().len()];
    let links = findings.suspects.iter().flat_map(|suspect| suspect.links(fabric));
    links.for_each(|link| doubtful[link as usize] = true);
    doubtful
}
