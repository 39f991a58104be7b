//! Rounds that load every link between switches to a share of its rate, in few rounds.
//!
//! | file | holds |
//! | --- | --- |
//! | `network` | ends, links and ways |
//! | `demand` | what each link needs, and which links cannot be loaded |
//! | `greedy` | the choice of rounds |
//! | `loaded` | which links flows load |
//! | `switches` | a [`Network`] from the plan's topology |

mod demand;
mod greedy;
mod loaded;
mod network;
mod switches;
#[cfg(test)]
mod tests;

pub use demand::{Wanted, Why};
pub use loaded::Loaded;
pub use network::{End, Link, Network};
pub use switches::Switches;

use demand::{Demand, Flow};

#[derive(Debug, Clone, PartialEq)]
pub struct Cover {
    /// Pairs of ends by index, sender first. In a round an end is in at most one pair.
    pub rounds: Vec<Vec<(u32, u32)>>,
    /// Links that are loaded if the flows of a round share links fairly.
    pub loaded: Vec<Link>,
    pub not_loaded: Vec<(Link, Why)>,
    /// Links of unknown rate: a flow passes each of them in some round, unless it is in `not_loaded`.
    pub unknown: Vec<Link>,
}

pub fn cover(network: &Network, wanted: Wanted) -> Cover {
    let demand = Demand::new(network, wanted.share, wanted.both_ways);
    let mut rounds = greedy::rounds(network, &demand, wanted);
    let mut judged = judge(network, wanted, &rounds);
    for link in demand.links() {
        let (found, passed) = &judged;
        if found.loaded.binary_search(&link).is_ok() || passed.binary_search(&link).is_ok() {
            continue;
        }
        if let Some(alone) = greedy::alone(network, &demand, wanted, link) {
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
    Cover { rounds, loaded: found.loaded, not_loaded, unknown: found.unknown }
}

fn judge(network: &Network, wanted: Wanted, rounds: &[Vec<Flow>]) -> (Loaded, Vec<Link>) {
    let carried = rounds.iter().map(|round| loaded::carried(network, wanted.both_ways, round));
    let found = Loaded::of(&network.rates, wanted.share, carried);
    let passed = found.unknown.iter().copied().filter(|link| found.reached_gbps[*link as usize] > 0.0).collect();
    (found, passed)
}
