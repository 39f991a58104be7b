//! Which links measured or planned flows load.

use std::collections::BTreeMap;

use super::{
    demand::ROUNDING,
    network::{Link, Network},
};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loaded {
    /// Highest simultaneous sum of flows, in Gbit/s, by link.
    pub reached_gbps: Vec<f64>,
    /// Links whose highest sum is at least the wanted share of their rate.
    pub loaded: Vec<Link>,
    pub not_loaded: Vec<Link>,
    pub unknown: Vec<Link>,
}

impl Loaded {
    /// Judges simultaneous flows by round: each with its rate (Gbit/s) and its links. `rates` are those of all links (Gbit/s), `share` is
    /// from 0 to 1. Links without a rate are not counted.
    pub fn of<'f, F>(rates: &[Option<f64>], share: f64, rounds: impl IntoIterator<Item = F>) -> Self
    where
        F: IntoIterator<Item = (f64, &'f [Link])>,
    {
        let mut reached = vec![0.0_f64; rates.len()];
        for round in rounds {
            let mut sums = vec![0.0_f64; rates.len()];
            for (gbps, links) in round {
                for link in links {
                    if let Some(sum) = sums.get_mut(*link as usize).filter(|_| gbps.is_finite()) {
                        *sum += gbps;
                    }
                }
            }
            reached.iter_mut().zip(sums).for_each(|(most, sum)| *most = most.max(sum));
        }
        let mut found = Self::default();
        for (link, (rate, &most)) in (0..).zip(rates.iter().zip(&reached)) {
            match rate.filter(|rate| rate.is_finite() && *rate > 0.0) {
                None => found.unknown.push(link),
                Some(rate) if most > 0.0 && most >= rate * share * ROUNDING => found.loaded.push(link),
                Some(_) => found.not_loaded.push(link),
            }
        }
        found.reached_gbps = reached;
        found
    }
}

/// What the flows of a round carry while all run, in Gbit/s, and the links of each; including reverse flows.
pub(super) fn carried<'n>(network: &'n Network, both_ways: bool, round: &[(u32, u32)]) -> Vec<(f64, &'n [Link])> {
    let back = round.iter().filter(|_| both_ways).map(|&(from, to)| (to, from));
    let flows: Vec<(u32, u32)> = round.iter().copied().chain(back).collect();
    let paths = flows.iter().map(|&(from, to)| network.path(from, to).unwrap_or_default());
    shares(network, &flows).into_iter().zip(paths).collect()
}

/// Rates of these flows while all run, in Gbit/s, with fair sharing: all grow alike until a link is full, then those through it stop and
/// the others grow further (max-min fairness: Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2).
pub(super) fn shares(network: &Network, flows: &[(u32, u32)]) -> Vec<f64> {
    let alone: Vec<f64> = flows.iter().map(|&(from, to)| network.alone(from, to)).collect();
    let path = |flow: usize| network.path(flows[flow].0, flows[flow].1).unwrap_or_default();
    let mut through: BTreeMap<Link, Vec<usize>> = BTreeMap::new();
    for flow in 0..flows.len() {
        path(flow).iter().for_each(|link| through.entry(*link).or_default().push(flow));
    }
    let (mut given, mut done) = (alone.clone(), vec![false; flows.len()]);
    // Links that cannot carry all that their flows would send.
    let room = |link: Link| network.rates[link as usize].unwrap_or(f64::INFINITY);
    let is_full = |link: &Link| through[link].iter().map(|flow| alone[*flow]).sum::<f64>() * ROUNDING > room(*link);
    let full: Vec<Link> = through.keys().copied().filter(is_full).collect();
    loop {
        let level = |link: &Link| {
            let open = through[link].iter().filter(|flow| !done[**flow]).count();
            let taken: f64 = through[link].iter().filter(|flow| done[**flow]).map(|flow| given[*flow]).sum();
            (open > 0).then(|| ((room(*link) - taken).max(0.0) / open as f64, *link))
        };
        let Some((least, link)) = full.iter().filter_map(level).min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
        // Flows that want less than this level have it, and leave more to the others.
        let open = || (0..flows.len()).filter(|flow| !done[*flow] && path(*flow).iter().any(|at| full.contains(at)));
        let modest: Vec<usize> = open().filter(|flow| alone[*flow] <= least).collect();
        let stopped: Vec<usize> = if modest.is_empty() {
            through[&link].iter().copied().filter(|flow| !done[*flow]).collect()
        } else {
            modest
        };
        for flow in stopped {
            given[flow] = alone[flow].min(least);
            done[flow] = true;
        }
    }
    given
}
