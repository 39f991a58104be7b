//! Fat trees with tables that choose the way by the destination, and what must hold for rounds over any fabric.

mod bounds;
mod judged;
mod plugged;
mod promises;
mod trees;

use super::{Cover, End, Link, Loaded, Network, Wanted};

fn wanted() -> Wanted {
    Wanted { share: 0.8, both_ways: false, seed: 7 }
}

/// Leaves and spines: each leaf has `hosts` ends of one rate and one uplink to every spine. The way to an end is over the spine of its number,
/// as OpenSM's ftree chooses it.
fn two_levels(leaves: u32, hosts: u32, spines: u32, rates: (f64, f64)) -> Network {
    let ends =
        (0..leaves * hosts).map(|host| End { host, leaf: Some(host / hosts), rate_gbps: Some(rates.0) }).collect();
    let (up, down) =
        (|leaf: u32, spine: u32| leaf * spines + spine, |spine, leaf| leaves * spines + leaf * spines + spine);
    Network::new(ends, vec![Some(rates.1); 2 * (leaves * spines) as usize], |leaf, to| {
        let (to_leaf, spine) = (to as u32 / hosts, to as u32 % hosts % spines);
        Some(vec![up(leaf, spine), down(spine, to_leaf)])
    })
}

/// A full tree of three levels from switches with `2 half` ports, of `pods` pods: half² ends in each, of one rate as all links.
fn three_levels(half: u32, pods: u32) -> Network {
    let in_pod = half * half;
    let ends = (0..pods * in_pod).map(|host| End { host, leaf: Some(host / half), rate_gbps: Some(200.0) }).collect();
    let links = 4 * pods * in_pod;
    let plane = |kind: u32, pod: u32, a: u32, b: u32| kind * pods * in_pod + pod * in_pod + a * half + b;
    Network::new(ends, vec![Some(200.0); links as usize], |leaf, to| {
        let to = to as u32;
        let (from_pod, from_leaf) = (leaf / half, leaf % half);
        let (pod, to_leaf, host) = (to / in_pod, to / half % half, to % half);
        // Leaf to pod spine by the host's number, pod spine to core by the leaf's.
        let mut path = vec![plane(0, from_pod, from_leaf, host)];
        if pod != from_pod {
            path.push(plane(1, from_pod, host, to_leaf));
            path.push(plane(2, pod, host, to_leaf));
        }
        path.push(plane(3, pod, to_leaf, host));
        Some(path)
    })
}

/// No end is twice in a round, no host with itself, every flow has a known way.
fn assert_valid(network: &Network, cover: &Cover) {
    for round in &cover.rounds {
        assert!(!round.is_empty());
        let mut seats: Vec<u32> = round.iter().flat_map(|&(from, to)| [from, to]).collect();
        let count = seats.len();
        seats.sort_unstable();
        seats.dedup();
        assert_eq!(seats.len(), count, "an end twice in {round:?}");
        for &(from, to) in round {
            let host = |end: u32| network.ends[end as usize].host;
            assert_ne!(host(from), host(to));
            assert!(network.path(from, to).is_some_and(|path| !path.is_empty()));
        }
    }
}

/// Links that some round loads by counting flows alone, worked out from the outside.
fn counted(network: &Network, wanted: Wanted, rounds: &[Vec<(u32, u32)>]) -> Vec<Link> {
    let mut loaded = Vec::new();
    for (link, rate) in (0..).zip(&network.rates) {
        let through = |&&(from, to): &&(u32, u32)| network.path(from, to).is_some_and(|path| path.contains(&link));
        let sum = |round: &Vec<(u32, u32)>| -> f64 {
            let back: Vec<(u32, u32)> = round.iter().map(|&(from, to)| (to, from)).collect();
            let both = round.iter().chain(back.iter().filter(|_| wanted.both_ways));
            both.filter(through).map(|&(from, to)| network.alone(from, to)).sum()
        };
        if rounds.iter().any(|round| sum(round) >= rate.unwrap_or(0.0) * wanted.share - 1e-6 && sum(round) > 0.0) {
            loaded.push(link);
        }
    }
    loaded
}
