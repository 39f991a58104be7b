//! A lower bound on the number of rounds that load every link.
//!
//! Take a set Q of ends: all below some leaves. Take links that only flows of Q pass, all of them as the k-th link of every way: a flow
//! passes one of them at most. Let U be the number of flows that load them all, each link by the fewest that can. Let D be the same for
//! links that only flows to Q pass, as the k-th from the end. An end is in one flow of a round, as sender or as receiver, so R rounds have
//! room for R |Q| of these: U + D ≤ R |Q|. Where flows run both ways an end sends and receives in the same round: max(U, D) ≤ R |Q|. With
//! all ends as Q the pairs count: half of them send. A single end receives once in a round.

use std::collections::{BTreeMap, HashSet};

use super::{demand::Demand, network::Network};

/// Most sets of leaves that are examined: each of them gives a bound, and fabrics have one for each leaf and pod.
const MOST_SETS: usize = 1_000;

/// Position of a link in the ways over it, if it is unique.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Nowhere,
    At(usize),
    Several,
}

impl Place {
    fn note(&mut self, at: usize) {
        *self = match *self {
            Self::Nowhere => Self::At(at),
            Self::At(known) if known == at => Self::At(at),
            _ => Self::Several,
        };
    }
}

/// One bit per leaf.
type Leaves = Vec<u64>;

fn insert(leaves: &mut Leaves, leaf: u32) {
    leaves[leaf as usize / 64] |= 1 << (leaf % 64);
}

fn is_within(inner: &Leaves, outer: &Leaves) -> bool {
    inner.iter().zip(outer).all(|(inner, outer)| inner & !outer == 0)
}

struct Seen {
    leaves: Leaves,
    place: Place,
    flows: u64,
}

/// The lower bound; 0 without links to load. `one_per_host`: a host has at most one flow of a round.
pub(super) fn rounds(network: &Network, demand: &Demand, both_ways: bool, one_per_host: bool) -> u64 {
    let words = network.leaves().div_ceil(64);
    let (mut up, mut down): (Vec<Seen>, Vec<Seen>) = (Vec::new(), Vec::new());
    let mut by_end: BTreeMap<(u32, usize), u64> = BTreeMap::new();
    for link in demand.links() {
        let flows = u64::from(demand.flows[link as usize]);
        let (mut from, mut to) = (vec![0; words], vec![0; words]);
        let (mut first, mut last, mut only) = (Place::Nowhere, Place::Nowhere, Place::Nowhere);
        for &(leaf, end) in &demand.users[link as usize] {
            let way = network.way(leaf, end).unwrap_or_default();
            for (at, _) in way.iter().enumerate().filter(|(_, passed)| **passed == link) {
                first.note(at);
                last.note(way.len() - at);
            }
            insert(&mut from, leaf);
            if let Some(leaf) = network.ends()[end as usize].leaf {
                insert(&mut to, leaf);
            }
            only.note(end as usize);
        }
        if let (Place::At(end), Place::At(at)) = (only, last) {
            *by_end.entry((end as u32, at)).or_default() += flows;
        }
        up.push(Seen { leaves: from, place: first, flows });
        down.push(Seen { leaves: to, place: last, flows });
    }
    if up.is_empty() {
        return 0;
    }
    let all = vec![u64::MAX; words];
    let sets: HashSet<&Leaves> = up.iter().chain(&down).map(|seen| &seen.leaves).take(MOST_SETS).collect();
    let of_sets = sets.into_iter().map(|set| {
        let (sent, taken, ends) = (most(&up, set), most(&down, set), seats(network, set, one_per_host));
        if both_ways { sent.max(taken).div_ceil(ends.max(1)) } else { (sent + taken).div_ceil(ends.max(1)) }
    });
    let pairs = (seats(network, &all, one_per_host) / 2).max(1);
    let directed = if both_ways { 2 * pairs } else { pairs };
    let of_all = most(&up, &all).max(most(&down, &all)).div_ceil(directed);
    let of_ends = by_end.into_values().max().unwrap_or(1);
    of_sets.max().unwrap_or(1).max(of_all).max(of_ends).max(1)
}

/// Flows that load only the links of these leaves, at the position with the most.
fn most(links: &[Seen], set: &Leaves) -> u64 {
    let mut by_place: BTreeMap<usize, u64> = BTreeMap::new();
    for link in links.iter().filter(|link| is_within(&link.leaves, set)) {
        if let Place::At(at) = link.place {
            *by_place.entry(at).or_default() += link.flows;
        }
    }
    by_place.into_values().max().unwrap_or_default()
}

fn seats(network: &Network, set: &Leaves, one_per_host: bool) -> u64 {
    let within = (0..network.leaves() as u32).filter(|leaf| set[*leaf as usize / 64] >> (leaf % 64) & 1 == 1);
    let ends = within.flat_map(|leaf| network.below(leaf));
    if one_per_host {
        let hosts: HashSet<u32> = ends.map(|end| network.ends()[*end as usize].host).collect();
        return hosts.len() as u64;
    }
    ends.count() as u64
}
