//! Search for rounds that load every link: changes pairs where a link is still open as long as nothing gets worse, and adds a round when
//! that makes no progress.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use super::{
    demand::Demand,
    network::Network,
    state::{Flow, State},
};
use crate::schedule::draw;

/// Changes without improvement after which a round is added, per link that can be loaded.
const PATIENCE_PER_LINK: usize = 60;
const PATIENCE: usize = 1_000;
/// One change in this many may make things worse, by 1 at most, to leave local minima.
const WORSE: u64 = 400;

/// Smaller differences of cost are rounding errors.
pub(super) const NOTHING: f64 = 1e-6;

/// Total changes without improvement for one number of rounds, over several starts.
const EFFORT: usize = 50_000;
const MOST_STARTS: usize = 8;

fn patience(demand: &Demand) -> usize {
    PATIENCE + PATIENCE_PER_LINK * demand.links().count()
}

/// How often the search restarts before it adds a round: small fabrics are searched quickly and easily get stuck.
pub(super) fn starts(demand: &Demand) -> u64 {
    (EFFORT / patience(demand)).clamp(1, MOST_STARTS) as u64
}

/// Changes pairs until the cost is zero or the patience ends. Leaves the best state it saw.
pub(super) fn improve(state: &mut State<'_>, seed: u64) {
    let mut rng = seeded(seed);
    let patience = patience(state.demand);
    let (mut best, mut kept, mut since) = (state.cost, None, 0_usize);
    while state.cost > NOTHING && since < patience {
        since += 1;
        let is_bold = rng.next_u64().is_multiple_of(WORSE);
        if is_bold && state.cost < best + NOTHING {
            kept = Some(state.all());
        }
        if !state.open.is_empty() {
            fill(state, is_bold, &mut rng);
        }
        if state.open.is_empty() || since.is_multiple_of(8) {
            thin(state, is_bold, &mut rng);
        }
        if state.cost < best - NOTHING {
            (best, since, kept) = (state.cost, 0, None);
        }
    }
    if let Some(kept) = kept.filter(|_| state.cost > best + NOTHING) {
        state.all().into_iter().for_each(|(round, flow)| state.remove(round, flow));
        kept.into_iter().for_each(|(round, flow)| state.add(round, flow));
    }
}

/// Adds a flow over an open link. The ends that lose their partners are paired with each other.
fn fill(state: &mut State<'_>, is_bold: bool, rng: &mut ChaCha8Rng) {
    let link = state.open[below(rng, state.open.len())];
    let users = &state.demand.users[link as usize];
    let (leaf, to) = users[below(rng, users.len())];
    let others = state.network.below(leaf);
    let from = others[below(rng, others.len())];
    let round = below(rng, state.rounds());
    insert(state, round, (from, to), is_bold, state.cost);
}

/// Removes a flow from an overloaded link. If that leaves others open, it goes into another round, or one of its ends gets another partner.
fn thin(state: &mut State<'_>, is_bold: bool, rng: &mut ChaCha8Rng) {
    let (ends, rounds) = (state.network.ends().len(), state.rounds());
    let (round, end, other) = (below(rng, rounds), below(rng, ends) as u32, below(rng, ends) as u32);
    let Some(flow) = state.flow_at(round, end).filter(|flow| state.is_crowded(round, *flow)) else { return };
    let before = state.cost;
    state.remove(round, flow);
    if state.cost < before + NOTHING {
        return;
    }
    let later = (round + 1 + below(rng, rounds)) % rounds;
    if later != round && insert(state, later, flow, is_bold, before) {
        return;
    }
    state.add(round, flow);
    insert(state, round, if flow.0 == end { (end, other) } else { (other, end) }, is_bold, before);
}

/// Adds a flow to a round unless that is worse than `before`; a bold change may be. Returns whether it did.
fn insert(state: &mut State<'_>, round: usize, flow: Flow, is_bold: bool, before: f64) -> bool {
    if !state.may_be(flow) {
        return false;
    }
    let (mut gone, mut left): (Vec<Flow>, Vec<u32>) = Default::default();
    for end in [flow.0, flow.1] {
        if let Some(old) = state.flow_at(round, end) {
            state.remove(round, old);
            gone.push(old);
            let is_left = |end: &u32| !state.share_a_seat(*end, flow.0) && !state.share_a_seat(*end, flow.1);
            left.extend([old.0, old.1].into_iter().filter(is_left));
        }
    }
    state.add(round, flow);
    let second = if let [a, b] = left[..] { partners(state, round, (a, b)) } else { None };
    let worse = state.cost - before;
    if worse < NOTHING || is_bold && worse < 1.0 + NOTHING {
        return true;
    }
    if let Some(pair) = second {
        state.remove(round, pair);
    }
    state.remove(round, flow);
    gone.into_iter().for_each(|old| state.add(round, old));
    false
}

/// Pairs two free ends, in the better direction, unless no flow is better.
fn partners(state: &mut State<'_>, round: usize, (a, b): Flow) -> Option<Flow> {
    if state.flow_at(round, a).is_some() || state.flow_at(round, b).is_some() {
        return None;
    }
    let (mut least, mut best) = (state.cost, None);
    for pair in [(a, b), (b, a)] {
        if state.may_be(pair) {
            state.add(round, pair);
            if state.cost < least + NOTHING {
                (least, best) = (state.cost, Some(pair));
            }
            state.remove(round, pair);
        }
    }
    best.inspect(|pair| state.add(round, *pair))
}

/// Pairs the halves of an order with neighbours adjacent, first half to second in even rounds, back in odd ones. In a regular tree that is
/// already the solution.
pub(super) fn opposite(state: &mut State<'_>, order: &[u32]) {
    let half = order.len() / 2;
    for round in 0..state.rounds() {
        for place in 0..half {
            let other = half + (place + round / 2) % half;
            let (a, b) = (order[place], order[other]);
            let flow = if round.is_multiple_of(2) { (a, b) } else { (b, a) };
            let is_free = state.flow_at(round, a).is_none() && state.flow_at(round, b).is_none();
            if is_free && state.may_be(flow) {
                state.add(round, flow);
            }
        }
    }
}

/// All ends, neighbours adjacent: leaves by the length of the way from the first of them, then from the first of the next. Below a leaf by
/// the way that others take to them.
pub(super) fn order(network: &Network) -> Vec<u32> {
    let mut left: Vec<u32> = (0..network.leaves() as u32).filter(|leaf| !network.below(*leaf).is_empty()).collect();
    let mut leaves = Vec::new();
    while let Some(&first) = left.first() {
        let far = |leaf: &u32| network.way(first, network.below(*leaf)[0]).map_or(usize::MAX, <[u32]>::len);
        let nearest = left.iter().skip(1).map(far).min().unwrap_or_default();
        let (near, others) = left.iter().partition(|leaf| **leaf == first || far(leaf) == nearest);
        leaves.extend::<Vec<u32>>(near);
        left = others;
    }
    let sorted = |leaf: &u32| {
        let from = leaves.iter().copied().find(|other| other != leaf).unwrap_or(*leaf);
        let mut ends = network.below(*leaf).to_vec();
        ends.sort_by_key(|end| network.way(from, *end).map(<[u32]>::to_vec));
        ends
    };
    leaves.iter().flat_map(sorted).collect()
}

pub(super) fn drawn(ends: usize, seed: u64) -> Vec<u32> {
    draw::distinct(ends, ends, seed).into_iter().map(|end| end as u32).collect()
}

fn seeded(seed: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// A number below `bound`. The remainder prefers small numbers by less than one in 10¹⁵, which is harmless for a choice among tries.
fn below(rng: &mut ChaCha8Rng, bound: usize) -> usize {
    (rng.next_u64() % bound as u64) as usize
}
