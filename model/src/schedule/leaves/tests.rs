use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

/// This many ends below each leaf, one host each.
fn places(below: &[u32]) -> Vec<Place> {
    let leaves = (0..).zip(below).flat_map(|(leaf, count)| (0..*count).map(move |_| leaf));
    leaves.zip(0..).map(|(leaf, host)| Place { host, leaf: Some(leaf) }).collect()
}

fn assert_valid(places: &[Place], paired: &Paired, same: bool) {
    for round in &paired.rounds {
        let mut ends: Vec<u32> = round.iter().flat_map(|&(a, b)| [a, b]).collect();
        let count = ends.len();
        ends.sort_unstable();
        ends.dedup();
        assert_eq!(ends.len(), count, "an end twice in {round:?}");
        for &(a, b) in round {
            let (a, b) = (places[a as usize], places[b as usize]);
            assert!(a.leaf.is_some() && b.leaf.is_some());
            assert_eq!(a.leaf == b.leaf, same);
            assert_ne!(a.host, b.host);
        }
    }
}

fn met(places: &[Place], paired: &Paired) -> HashSet<(u32, u32)> {
    let leaf = |end: u32| places[end as usize].leaf.unwrap();
    let pairs = paired.rounds.iter().flatten().map(|&(a, b)| (leaf(a), leaf(b)));
    pairs.map(|(a, b)| (a.min(b), a.max(b))).collect()
}

#[test]
fn below_each_leaf_everybody_meets_everybody_once() {
    let places = places(&[4, 5, 1, 2]);
    let paired = same_leaf(&places, None, 1);
    assert_valid(&places, &paired, true);
    let pairs: Vec<(u32, u32)> = paired.rounds.iter().flatten().map(|&(a, b)| (a.min(b), a.max(b))).collect();
    assert_eq!(pairs.len(), 6 + 10 + 1);
    assert_eq!(pairs.iter().collect::<HashSet<_>>().len(), pairs.len());
    // Five below one leaf: an odd tournament.
    assert_eq!(paired.rounds.len(), 5);
    assert_eq!(paired.alone, [9]);
}

#[test]
fn some_rounds_are_drawn_by_the_seed() {
    let places = places(&[16, 16]);
    let (one, other) = (same_leaf(&places, Some(3), 1), same_leaf(&places, Some(3), 2));
    assert_eq!(one.rounds.len(), 3);
    assert_eq!(one, same_leaf(&places, Some(3), 1));
    assert_ne!(one, other);
    assert!(one.rounds.iter().all(|round| round.len() == 16));
    assert_ne!(cross_leaf(&places, Some(3), 1, |_, _| true), cross_leaf(&places, Some(3), 2, |_, _| true));
}

/// 64 leaves with 16 ends each: a leaf can meet 16 others in a round, and there are 63.
#[test]
fn leaves_meet_as_many_others_in_a_round_as_they_have_ends() {
    let places = places(&[16; 64]);
    let paired = cross_leaf(&places, None, 3, |_, _| true);
    assert_valid(&places, &paired, false);
    assert_eq!(met(&places, &paired).len(), 64 * 63 / 2);
    assert_eq!((paired.leaves_apart, paired.alone.len()), (0, 0));
    assert_eq!(paired.rounds.len(), 4);
}

#[test]
fn who_cannot_be_paired_is_named() {
    let mut places = places(&[2, 2]);
    places[1].leaf = None;
    let paired = cross_leaf(&places, None, 1, |_, _| true);
    assert_eq!(paired.unplaced, [1]);
    assert_eq!(same_leaf(&places, None, 1).alone, [0]);
    // Two planes that nothing joins.
    let paired = cross_leaf(&places, None, 1, |_, _| false);
    assert_eq!((paired.rounds.len(), paired.leaves_apart, paired.alone), (0, 1, vec![0, 2, 3]));
    // One leaf has no others.
    assert_eq!(cross_leaf(&self::places(&[3]), None, 1, |_, _| true).alone, [0, 1, 2]);
    assert_eq!(cross_leaf(&[], None, 1, |_, _| true), Paired::default());
}

/// Two rails of each host, on a leaf each.
#[test]
fn a_host_is_never_its_own_partner() {
    let places: Vec<Place> = (0..8).map(|end| Place { host: end / 2, leaf: Some(end % 2) }).collect();
    let paired = cross_leaf(&places, None, 5, |_, _| true);
    assert_valid(&places, &paired, false);
    assert_eq!(paired.alone, [0; 0]);
    let alone: Vec<Place> = (0..2).map(|end| Place { host: 0, leaf: Some(end) }).collect();
    assert_eq!(cross_leaf(&alone, None, 5, |_, _| true).leaves_apart, 1);
    let shared: Vec<Place> = (0..6).map(|end| Place { host: end / 2, leaf: Some(0) }).collect();
    assert_valid(&shared, &same_leaf(&shared, None, 1), true);
}

/// Two leaves with 16 ends each: every round has all ends, and 16 rounds all pairs.
#[test]
fn rounds_of_two_leaves_are_full_until_all_have_met() {
    let places = places(&[16, 16]);
    let paired = cross_leaf(&places, Some(16), 7, |_, _| true);
    assert!(paired.rounds.iter().all(|round| round.len() == 16), "{:?}", paired.rounds);
    assert_eq!(times(&paired).len(), 256);
    // The next rounds start again.
    let paired = cross_leaf(&places, Some(17), 7, |_, _| true);
    assert_eq!(paired.rounds.len(), 17);
    assert!(!paired.rounds[16].is_empty());
}

fn times(paired: &Paired) -> HashMap<(u32, u32), u32> {
    let mut times = HashMap::new();
    for &(a, b) in paired.rounds.iter().flatten() {
        *times.entry((a.min(b), a.max(b))).or_default() += 1;
    }
    times
}

proptest! {
    #[test]
    fn nobody_meets_again_before_all_have_met(
        ends in prop::collection::vec((0..6_u32, 0..4_u32), 2..14),
        rounds in 1..40_u32,
        seed in any::<u64>(),
        apart in 0..5_u32,
    ) {
        let places: Vec<Place> = ends.iter().map(|&(host, leaf)| Place { host, leaf: Some(leaf) }).collect();
        let connected = |a: u32, b: u32| a != apart && b != apart;
        let times = times(&cross_leaf(&places, Some(rounds), seed, connected));
        let most = times.values().copied().max().unwrap_or(0);
        for (a, one) in (0..).zip(&places) {
            for (b, other) in (0..).zip(&places).skip(a as usize + 1) {
                let (x, y) = (one.leaf.unwrap(), other.leaf.unwrap());
                if x != y && one.host != other.host && connected(x, y) {
                    prop_assert!(times.get(&(a, b)).copied().unwrap_or(0) + 1 >= most, "{a} {b}: {times:?}");
                }
            }
        }
    }

    #[test]
    fn every_leaf_meets_every_other_and_everybody_has_a_partner(
        below in prop::collection::vec(1..9_u32, 2..9),
        seed in any::<u64>(),
    ) {
        let places = places(&below);
        let leaves = below.len();
        let paired = cross_leaf(&places, None, seed, |_, _| true);
        assert_valid(&places, &paired, false);
        prop_assert_eq!(met(&places, &paired).len(), leaves * (leaves - 1) / 2);
        prop_assert_eq!(&paired.alone, &Vec::<u32>::new());
        prop_assert_eq!(&paired, &cross_leaf(&places, None, seed, |_, _| true));
        // A leaf has one partner for each end in a round, and an end needs one: what must be.
        let least = below.iter().map(|ends| (leaves as u32 - 1).div_ceil(*ends)).max().unwrap();
        prop_assert!(paired.rounds.len() as u32 >= least);
        prop_assert!(paired.rounds.len() <= leaves * (leaves - 1) / 2 + places.len());
    }

    #[test]
    fn any_hosts_and_leaves_give_sound_rounds(
        ends in prop::collection::vec((0..6_u32, prop::option::of(0..4_u32)), 0..24),
        rounds in prop::option::of(0..6_u32),
        seed in any::<u64>(),
        apart in 0..4_u32,
    ) {
        let places: Vec<Place> = ends.iter().map(|&(host, leaf)| Place { host, leaf }).collect();
        assert_valid(&places, &same_leaf(&places, rounds, seed), true);
        let paired = cross_leaf(&places, rounds, seed, |a, b| a != apart && b != apart);
        assert_valid(&places, &paired, false);
        prop_assert!(met(&places, &paired).iter().all(|(a, b)| *a != apart && *b != apart));
        prop_assert!(rounds.is_none_or(|rounds| paired.rounds.len() <= rounds as usize));
    }
}
