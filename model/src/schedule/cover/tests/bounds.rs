//! The rounds compared with what trying everything finds, on small fabrics.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{
    super::{Why, cover, loaded},
    *,
};

/// Every set of flows in which no end is twice.
fn matchings(network: &Network) -> Vec<Vec<(u32, u32)>> {
    fn grow(
        network: &Network,
        from: u32,
        taken: &mut Vec<bool>,
        now: &mut Vec<(u32, u32)>,
        all: &mut Vec<Vec<(u32, u32)>>,
    ) {
        let ends = &network.ends;
        if from as usize == ends.len() {
            all.push(now.clone());
            return;
        }
        grow(network, from + 1, taken, now, all);
        if taken[from as usize] {
            return;
        }
        for other in from + 1..ends.len() as u32 {
            if taken[other as usize] || ends[from as usize].host == ends[other as usize].host {
                continue;
            }
            taken[other as usize] = true;
            for flow in [(from, other), (other, from)] {
                if network.path(flow.0, flow.1).is_some() {
                    now.push(flow);
                    grow(network, from + 1, taken, now, all);
                    now.pop();
                }
            }
            taken[other as usize] = false;
        }
    }
    let mut all = Vec::new();
    grow(network, 0, &mut vec![false; network.ends.len()], &mut Vec::new(), &mut all);
    all
}

/// Fewest of these sets that have all of `wanted` together.
fn fewest(sets: &HashSet<u64>, wanted: u64) -> Option<u32> {
    let (mut reached, mut rounds) = (HashSet::from([0]), 0);
    while !reached.contains(&wanted) {
        let next: HashSet<u64> =
            reached.iter().flat_map(|have| sets.iter().map(move |set| have | set & wanted)).collect();
        if next.is_subset(&reached) {
            return None;
        }
        reached.extend(next);
        rounds += 1;
    }
    Some(rounds)
}

fn bits(links: impl IntoIterator<Item = Link>) -> u64 {
    links.into_iter().fold(0, |set, link| set | 1 << link)
}

/// Up to six ends below up to three leaves; ways of up to three of six links, chosen freely for each leaf and destination.
fn small() -> impl Strategy<Value = Network> {
    let rate = || prop::sample::select(vec![100.0, 200.0, 400.0]);
    let ends = prop::collection::vec((0..3_u32, rate()), 3..7);
    let ways = prop::collection::vec(prop::option::weighted(0.9, prop::collection::hash_set(0..6_u32, 1..4)), 18);
    (ends, prop::collection::vec(rate(), 6), ways).prop_map(|(ends, rates, ways)| {
        let ends = (0..).zip(ends).map(|(host, (leaf, rate))| End { host, leaf: Some(leaf), rate_gbps: Some(rate) });
        Network::new(ends.collect(), rates.into_iter().map(Some).collect(), |leaf, to| {
            ways[leaf as usize * 6 + to].as_ref().map(|way| {
                let mut way: Vec<Link> = way.iter().copied().collect();
                way.sort_unstable();
                way
            })
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn few_rounds_load_all_that_can_be_loaded(network in small(), share in 0.3..1.0_f64, both_ways in any::<bool>()) {
        let wanted = Wanted { share, both_ways, ..wanted() };
        let found = cover(&network, wanted);
        assert_valid(&network, &found);
        let is_known = |&(from, to): &(u32, u32)| !both_ways || network.path(to, from).is_some();
        let all: Vec<_> = matchings(&network).into_iter().filter(|round| round.iter().all(is_known)).collect();
        let judged = |round: &Vec<(u32, u32)>| {
            let flows = loaded::carried(&network, both_ways, round);
            bits(Loaded::of(&network.rates, share, [flows]).loaded)
        };
        let by_share: HashSet<u64> = all.iter().map(judged).collect();
        let covered = bits(found.loaded.iter().copied());
        // What is claimed is so.
        prop_assert_eq!(found.rounds.iter().map(judged).fold(0, |all, set| all | set), covered);
        prop_assert!(found.rounds.len() as u32 >= fewest(&by_share, covered).unwrap());
        // Flows do not slow each other; of such rounds a greedy choice takes at most 1 + ln n times the fewest for n links (Johnson 1974),
        // if each round loads as much as any can. Here the flows of a round are chosen greedily as well, which may cost a round.
        let is_calm = |round: &&Vec<(u32, u32)>| {
            let mut sums = vec![0.0; network.rates.len()];
            let back = round.iter().filter(|_| both_ways).map(|&(from, to)| (to, from));
            for (from, to) in round.iter().copied().chain(back) {
                network.path(from, to).unwrap().iter().for_each(|link| sums[*link as usize] += network.alone(from, to));
            }
            sums.iter().zip(&network.rates).all(|(sum, rate)| *sum <= rate.unwrap())
        };
        let calm: HashSet<u64> = all.iter().filter(is_calm).map(judged).collect();
        if let Some(calm) = fewest(&calm, covered) {
            let most = f64::from(calm) * (1.0 + f64::from(covered.count_ones().max(1)).ln()) + 1.0;
            prop_assert!(found.rounds.len() as f64 <= most, "{} rounds, {calm} are enough", found.rounds.len());
        }
        // What one flow loads is never given up, and what is said to be out of reach is.
        let alone = all.iter().filter(|round| round.len() == 1).map(judged).fold(0, |all, set| all | set);
        for (link, why) in &found.not_loaded {
            prop_assert!(alone >> link & 1 == 0, "a flow loads link {link}, and it is {why:?}");
            let can = by_share.iter().any(|set| set >> link & 1 == 1);
            prop_assert!(*why == Why::NotFound || !can, "link {link} can be loaded, and it is {why:?}");
        }
    }
}
