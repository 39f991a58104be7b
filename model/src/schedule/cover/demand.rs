//! What each link needs to count as loaded, which flows can load it, and which links cannot be loaded.

use super::network::{Link, Network};

/// Sender and receiver.
pub(super) type Flow = (u32, u32);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// Share of its rate that a link must carry in some round, from 0 to 1.
    pub share: f64,
    /// The test is bidirectional: every flow has a simultaneous reverse flow.
    pub both_ways: bool,
    pub seed: u64,
}

pub(super) const ROUNDING: f64 = 1.0 - 1e-9;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Why {
    /// No pair of ends has a known way over it.
    NoPair,
    /// All flows that can pass it at one time carry too little together.
    TooSlow {
        /// In Gbit/s.
        most: f64,
    },
    /// The search found no round that loads it enough; one may exist.
    NotFound,
}

#[derive(Debug, Clone)]
pub(super) struct Demand {
    /// Gbit/s that load a link; 0 where its rate is unknown and any flow suffices.
    pub need: Vec<f64>,
    /// Gbit/s beyond which flows slow each other.
    pub limit: Vec<f64>,
    pub users: Vec<Vec<(u32, u32)>>,
    pub lost: Vec<Option<Why>>,
}

impl Demand {
    /// `share` of the rate of each link, from 0 to 1. Where flows run both ways, only those whose way back is known count.
    pub fn new(network: &Network, share: f64, both_ways: bool) -> Self {
        let count = network.rates.len();
        let (mut users, mut best) = (vec![Vec::new(); count], vec![0.0_f64; count]);
        for leaf in 0..network.leaves() as u32 {
            for to in 0..network.ends.len() as u32 {
                let Some(way) = network.way(leaf, to).filter(|way| !way.is_empty()) else { continue };
                let host = network.ends[to as usize].host;
                // Ends of other hosts only: a host does not send to itself through the fabric.
                let fits = |from: &&u32| {
                    let is_other = network.ends[**from as usize].host != host;
                    is_other && (!both_ways || network.path(to, **from).is_some())
                };
                let senders = network.below(leaf).iter().filter(fits);
                let Some(rate) = senders.map(|from| network.alone(*from, to)).reduce(f64::max) else { continue };
                for link in way {
                    users[*link as usize].push((leaf, to));
                    best[*link as usize] = best[*link as usize].max(rate);
                }
            }
        }
        let mut demand = Self { need: Vec::new(), limit: Vec::new(), users, lost: vec![None; count] };
        for (link, best) in best.iter().enumerate() {
            let rate = network.rates[link];
            let need = rate.map_or(0.0, |rate| rate * share.clamp(0.0, 1.0));
            let flows = if *best > 0.0 { (need * ROUNDING / best).ceil().max(1.0) } else { 1.0 };
            demand.need.push(need);
            demand.limit.push(rate.map_or(f64::INFINITY, |rate| rate.max(flows * best) / ROUNDING));
            demand.lost[link] = demand.hopeless(network, link, need);
        }
        demand
    }

    fn hopeless(&self, network: &Network, link: usize, need: f64) -> Option<Why> {
        let users = &self.users[link];
        if users.is_empty() {
            return Some(Why::NoPair);
        }
        let mut leaves: Vec<u32> = users.iter().map(|(leaf, _)| *leaf).collect();
        leaves.sort_unstable();
        leaves.dedup();
        let mut to: Vec<u32> = users.iter().map(|(_, to)| *to).collect();
        to.sort_unstable();
        to.dedup();
        let rate = |end: &u32| network.ends[*end as usize].rate_gbps.unwrap_or(f64::INFINITY);
        let sent: f64 = leaves.iter().flat_map(|leaf| network.below(*leaf)).map(rate).sum();
        let taken: f64 = to.iter().map(rate).sum();
        // A port that could be both ends is counted at both: an upper bound.
        let most = sent.min(taken);
        (most < need * ROUNDING).then_some(Why::TooSlow { most })
    }

    pub fn links(&self) -> impl Iterator<Item = Link> + '_ {
        (0..).zip(&self.lost).filter(|(_, lost)| lost.is_none()).map(|(link, _)| link)
    }
}
