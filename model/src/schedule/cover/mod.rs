//! Rounds that load every link between switches to a share of its rate, in as few rounds as can be found.
//!
//! | file | holds |
//! | --- | --- |
//! | `network` | ends, links and ways |
//! | `demand` | what each link needs, and which links cannot be loaded |
//! | `bound` | a lower bound on the number of rounds |
//! | `state` | rounds during the search |
//! | `search` | the search |
//! | `rescue` | rounds for single links that the search left open |
//! | `loaded` | which links flows load |
//! | [`hashed`] | number of flows needed where a hash chooses the way |
//! | `switches` | a [`Network`] from the plan's topology |

mod bound;
mod demand;
pub mod hashed;
mod loaded;
mod network;
mod rescue;
mod search;
mod state;
mod switches;
#[cfg(test)]
mod tests;

pub use demand::Why;
pub use loaded::Loaded;
pub use network::{End, Link, Network};
pub use switches::{Open, Switches};

use demand::Demand;
use state::{Flow, Manner, State};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// Share of its rate that a link must carry in some round, from 0 to 1.
    pub share: f64,
    /// The test is bidirectional: every flow has a simultaneous reverse flow.
    pub both_ways: bool,
    /// A host has at most one flow of a round, whatever its NIC ports.
    pub one_per_host: bool,
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cover {
    /// Pairs of ends by index, sender first. In a round an end is in at most one pair.
    pub rounds: Vec<Vec<(u32, u32)>>,
    pub at_least: u64,
    /// Links that are loaded if the flows of a round share links fairly.
    pub loaded: Vec<Link>,
    pub not_loaded: Vec<(Link, Why)>,
    /// Links of unknown rate: a flow passes each of them in some round, unless it is in `not_loaded`.
    pub unknown: Vec<Link>,
}

pub fn cover(network: &Network, wanted: Wanted) -> Cover {
    let manner = Manner { both_ways: wanted.both_ways, one_per_host: wanted.one_per_host };
    let mut demand = Demand::new(network, wanted.share, wanted.both_ways);
    let bound = |demand: &Demand| bound::rounds(network, demand, wanted.both_ways, wanted.one_per_host);
    let at_least = bound(&demand);
    if at_least == 0 {
        return outcome(network, wanted, &demand, Vec::new(), 0);
    }
    let rounds = found(network, &demand, manner, at_least, wanted.seed);
    let mut cover = outcome(network, wanted, &demand, rounds, at_least);
    let failed: Vec<Link> =
        cover.not_loaded.iter().filter(|(_, why)| *why == Why::NotFound).map(|(link, _)| *link).collect();
    if !failed.is_empty() {
        // Search again without them: rounds added for them may be unnecessary, and the bound is that of the others.
        failed.into_iter().for_each(|link| demand.lost[link as usize] = Some(Why::NotFound));
        let at_least = bound(&demand);
        let rounds = found(network, &demand, manner, at_least, wanted.seed);
        let again = outcome(network, wanted, &demand, rounds, at_least);
        let is_better = again.not_loaded.len() <= cover.not_loaded.len() && again.rounds.len() < cover.rounds.len();
        if is_better {
            cover = again;
        }
        cover.at_least = at_least;
    }
    cover
}

fn found(network: &Network, demand: &Demand, manner: Manner, at_least: u64, seed: u64) -> Vec<Vec<Flow>> {
    let start = |rounds: usize, order: &[u32]| {
        let mut state = State::new(network, demand, manner, rounds);
        search::opposite(&mut state, order);
        state
    };
    let drawn = |rounds, turn| start(rounds, &search::drawn(network.ends().len(), seed.wrapping_add(turn)));
    let (regular, random) = (start(at_least as usize, &search::order(network)), drawn(at_least as usize, 0));
    let mut state = if regular.cost <= random.cost { regular } else { random };
    loop {
        search::improve(&mut state, seed);
        for turn in 1..search::starts(demand) {
            if state.cost <= search::NOTHING {
                break;
            }
            let mut other = drawn(state.rounds(), turn);
            search::improve(&mut other, seed.wrapping_add(turn));
            if other.cost < state.cost {
                state = other;
            }
        }
        if state.cost <= search::NOTHING {
            break;
        }
        let mut more = state.with_one_more();
        search::improve(&mut more, seed.wrapping_add(1));
        // An empty round accepts any flow: if it improves nothing, further ones do not either.
        if more.cost > state.cost - search::NOTHING {
            break;
        }
        state = more;
    }
    let mut rounds = vec![Vec::new(); state.rounds()];
    state.all().into_iter().for_each(|(round, flow)| rounds[round].push(flow));
    rounds
}

fn outcome(network: &Network, wanted: Wanted, demand: &Demand, mut rounds: Vec<Vec<Flow>>, at_least: u64) -> Cover {
    let passes = |&(from, to): &Flow| network.path(from, to).is_some_and(|path| !path.is_empty());
    rounds.iter_mut().for_each(|round| round.retain(passes));
    let mut judged = judge(network, wanted, &rounds);
    for link in demand.links() {
        let (found, passed) = &judged;
        if found.loaded.binary_search(&link).is_ok() || passed.binary_search(&link).is_ok() {
            continue;
        }
        if let Some(alone) = rescue::round(network, wanted, demand, link) {
            rounds.push(alone);
            judged = judge(network, wanted, &rounds);
        }
    }
    for round in (0..rounds.len()).rev() {
        let mut fewer = rounds.clone();
        fewer.remove(round);
        let without = judge(network, wanted, &fewer);
        if without.0.loaded.len() == judged.0.loaded.len() && without.1.len() == judged.1.len() {
            (rounds, judged) = (fewer, without);
        }
    }
    let (found, passed) = judged;
    let why = |link: Link| demand.lost[link as usize].unwrap_or(Why::NotFound);
    let unpassed = found.unknown.iter().filter(|link| !passed.contains(link));
    let not_loaded = found.not_loaded.iter().chain(unpassed).map(|link| (*link, why(*link))).collect();
    Cover { rounds, at_least, loaded: found.loaded, not_loaded, unknown: found.unknown }
}

fn judge(network: &Network, wanted: Wanted, rounds: &[Vec<Flow>]) -> (Loaded, Vec<Link>) {
    let carried = rounds.iter().map(|round| loaded::carried(network, wanted.both_ways, round));
    let found = Loaded::of(network.rates(), wanted.share, carried);
    let passed = found.unknown.iter().copied().filter(|link| found.reached_gbps[*link as usize] > 0.0).collect();
    (found, passed)
}
