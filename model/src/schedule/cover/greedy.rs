//! Rounds one after the other: each takes flows over links that no round before loads, as long as no link carries more than it can.

use super::{
    demand::{Demand, Flow, ROUNDING, Wanted},
    loaded::carried,
    network::{Link, Network},
};
use crate::schedule::draw;

/// Orders of the ends that are tried: by place in the fabric, then at random.
const STARTS: u64 = 8;
const MOST_TRIES: usize = 256;

/// The fewest rounds of several starts, of those that load most links.
pub(super) fn rounds(network: &Network, demand: &Demand, wanted: Wanted) -> Vec<Vec<Flow>> {
    let ends = network.ends.len();
    let drawn = |turn| draw::distinct(ends, ends, wanted.seed.wrapping_add(turn)).into_iter().map(|end| end as u32);
    let orders = (0..STARTS).map(|turn| if turn == 0 { by_place(network) } else { drawn(turn).collect() });
    let tried = orders.map(|order| of_order(network, demand, wanted, &order));
    tried.min_by_key(|(left, rounds)| (*left, rounds.len())).map(|(_, rounds)| rounds).unwrap_or_default()
}

/// The rounds of one start, and the number of links that they leave open.
fn of_order(network: &Network, demand: &Demand, wanted: Wanted, order: &[u32]) -> (usize, Vec<Vec<Flow>>) {
    let mut open: Vec<bool> = demand.lost.iter().map(Option::is_none).collect();
    let mut rounds: Vec<Vec<Flow>> = Vec::new();
    loop {
        let left = open.iter().filter(|is_open| **is_open).count();
        let mut round = Round::new(network, demand, wanted);
        // Half of the ends with the other half, then back: in a regular tree this loads every link.
        let half = order.len() / 2;
        for place in 0..half {
            let (a, b) = (order[place], order[half + (place + rounds.len() / 2) % half]);
            round.take(if rounds.len().is_multiple_of(2) { (a, b) } else { (b, a) }, &open);
        }
        for link in demand.links().filter(|link| open[*link as usize]) {
            for &(leaf, to) in &demand.users[link as usize] {
                if round.loads(link) {
                    break;
                }
                if round.is_free(to) {
                    network.below(leaf).iter().find(|from| round.take((**from, to), &open));
                }
            }
        }
        let before = left;
        demand.links().filter(|link| round.loads(*link)).for_each(|link| open[link as usize] = false);
        let left = open.iter().filter(|is_open| **is_open).count();
        if left == before {
            return (left, rounds);
        }
        rounds.push(round.flows);
    }
}

struct Round<'n> {
    network: &'n Network,
    demand: &'n Demand,
    both_ways: bool,
    taken: Vec<bool>,
    /// By link, in Gbit/s.
    load: Vec<f64>,
    flows: Vec<Flow>,
}

impl<'n> Round<'n> {
    fn new(network: &'n Network, demand: &'n Demand, wanted: Wanted) -> Self {
        let (taken, load) = (vec![false; network.ends.len()], vec![0.0; network.rates.len()]);
        Self { network, demand, both_ways: wanted.both_ways, taken, load, flows: Vec::new() }
    }

    fn is_free(&self, end: u32) -> bool {
        !self.taken[end as usize]
    }

    fn loads(&self, link: Link) -> bool {
        let load = self.load[link as usize];
        load > 0.0 && load >= self.demand.need[link as usize] * ROUNDING
    }

    /// Adds a flow if it is possible, passes an open link, and slows no other. Returns whether it did.
    fn take(&mut self, (from, to): Flow, open: &[bool]) -> bool {
        if !self.is_free(from) || !self.is_free(to) || !may_be(self.network, self.both_ways, (from, to)) {
            return false;
        }
        let network = self.network;
        let ways = [(from, to), (to, from)].into_iter().take(if self.both_ways { 2 } else { 1 });
        let passed: Vec<(Link, f64)> = ways
            .flat_map(|(from, to)| {
                network.path(from, to).unwrap_or_default().iter().map(move |link| (*link, network.alone(from, to)))
            })
            .collect();
        passed.iter().for_each(|(link, gbps)| self.load[*link as usize] += gbps);
        let fits = |(link, _): &(Link, f64)| self.load[*link as usize] <= self.demand.limit[*link as usize];
        if passed.iter().all(fits) && passed.iter().any(|(link, _)| open[*link as usize]) {
            self.taken[from as usize] = true;
            self.taken[to as usize] = true;
            self.flows.push((from, to));
            return true;
        }
        passed.iter().for_each(|(link, gbps)| self.load[*link as usize] -= gbps);
        false
    }
}

/// Whether a flow is possible: its ends are of two hosts, and its way is known.
fn may_be(network: &Network, both_ways: bool, (from, to): Flow) -> bool {
    let host = |end: u32| network.ends[end as usize].host;
    let known = |from, to| network.path(from, to).is_some();
    host(from) != host(to) && known(from, to) && (!both_ways || known(to, from))
}

/// All ends, neighbours adjacent: leaves by the length of the way from the first of them, then from the first that is left; ends of a leaf by
/// the way that others take to them.
fn by_place(network: &Network) -> Vec<u32> {
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

/// A round for one link alone, whose flows may slow each other; `None` where those that send most, taken one by one, do not load it.
pub(super) fn alone(network: &Network, demand: &Demand, wanted: Wanted, link: Link) -> Option<Vec<Flow>> {
    let sum = |flows: &[Flow]| {
        let carried = carried(network, wanted.both_ways, flows);
        carried.iter().filter(|(_, path)| path.contains(&link)).map(|(gbps, _)| gbps).sum::<f64>()
    };
    let users = demand.users[link as usize].iter();
    let mut flows: Vec<(f64, Flow)> = users
        .flat_map(|&(leaf, to)| network.below(leaf).iter().map(move |from| (*from, to)))
        .filter(|flow| may_be(network, wanted.both_ways, *flow))
        .map(|flow| (sum(&[flow]), flow))
        .collect();
    flows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut taken, mut chosen, mut reached, mut tries) = (vec![false; network.ends.len()], Vec::new(), 0.0, 0);
    for (_, (from, to)) in flows {
        if taken[from as usize] || taken[to as usize] || tries == MOST_TRIES {
            continue;
        }
        tries += 1;
        chosen.push((from, to));
        let carried = sum(&chosen);
        if carried * ROUNDING <= reached {
            chosen.pop();
            continue;
        }
        reached = carried;
        taken[from as usize] = true;
        taken[to as usize] = true;
        if reached >= demand.need[link as usize] * ROUNDING {
            return Some(chosen);
        }
    }
    None
}
