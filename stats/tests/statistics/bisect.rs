//! Bisection of collectives on clusters that we generate.
//!
//! The figures of docs/methods.md are printed by
//! `cargo test -p railgauge-stats --test statistics bisect -- --nocapture`.

use std::collections::BTreeSet;

use crate::generators::Noise;
use railgauge_stats::bisect::{Found, Repeats, Search, Setting, unlike};

/// Never used while the rules were made; development used 173205080.
const FRESH: u64 = 223_606_797;
const TRIALS: usize = 200;

#[derive(Default, Clone)]
struct Faults {
    hosts: Vec<u32>,
    /// Sides that slow down every group with hosts of both.
    boundary: Option<(Vec<u32>, Vec<u32>)>,
    factor: f64,
}

/// Bus bandwidth falls with the group's size; noise is 1 %, and one result in 200 is 20 % low for once.
fn measure(group: &[u32], faults: &Faults, noise: &mut Noise) -> f64 {
    let meets = |side: &[u32]| group.iter().any(|host| side.contains(host));
    let slow = meets(&faults.hosts) || faults.boundary.as_ref().is_some_and(|(a, b)| meets(a) && meets(b));
    let glitch = if noise.chance(0.005) { 0.8_f64.ln() } else { 0.0 };
    let good = 360.0_f64.ln() - 0.03 * (group.len() as f64).ln();
    good + if slow { faults.factor.ln() } else { 0.0 } + glitch + 0.01 * noise.normal()
}

fn search(n: u32, faults: &Faults, noise: &mut Noise) -> Found {
    search_leaves(n, Vec::new(), faults, noise)
}

fn search_leaves(n: u32, leaves: Vec<Vec<u32>>, faults: &Faults, noise: &mut Noise) -> Found {
    let hosts: Vec<u32> = (0..n).collect();
    let setting = Setting { least: 0.03, noise: 0.01, leaves, ..Setting::default() };
    let mut search = Search::new(&hosts, setting).unwrap();
    while let Some(group) = search.next_group() {
        let unique: BTreeSet<&u32> = group.iter().collect();
        assert!(unique.len() == group.len() && group.len() >= 2, "{group:?}");
        let result = measure(group, faults, noise);
        search.answer(Some(result));
        assert!(search.found().tests < 1_000, "the search does not end");
    }
    search.found().clone()
}

#[test]
#[ignore = "slow: a simulation"]
fn bad_hosts_are_found_with_few_tests() {
    println!("hosts, bad | right, named, there | tests: mean, most");
    let mut noise = Noise::new(FRESH);
    for n in [16, 64, 232] {
        for bad in [0_usize, 1, 2, 3] {
            let (mut right, mut named, mut tests, mut most) = (0, 0, 0, 0);
            for _ in 0..TRIALS {
                let hosts: Vec<u32> = noise.choose(n as usize, bad).into_iter().map(|h| h as u32).collect();
                let faults = Faults { hosts: hosts.clone(), factor: 0.85, ..Faults::default() };
                let found = search(n, &faults, &mut noise);
                right += found.hosts.iter().filter(|host| hosts.contains(host)).count();
                named += found.hosts.len() + found.boundaries.len();
                tests += found.tests;
                most = most.max(found.tests);
            }
            let there = bad * TRIALS;
            println!("{n}, {bad} | {right}, {named}, {there} | {:.1}, {most}", tests as f64 / TRIALS as f64);
            assert!(right as f64 >= 0.98 * there as f64, "{n} hosts, {bad} bad: {right} of {there}");
            assert!((named - right) as f64 <= (0.02 * named as f64).max(1.0), "{n} hosts, {bad} bad: {named} named");
            if bad == 0 {
                let screen = f64::from(n).sqrt().ceil() + 1.0;
                assert!(tests as f64 / TRIALS as f64 <= screen + 1.0, "a healthy cluster costs more than its screen");
            }
        }
    }
}

#[test]
fn boundaries_and_single_paths_are_found() {
    let mut noise = Noise::new(FRESH + 1);
    let (mut whole, mut single) = (0, 0);
    for _ in 0..TRIALS {
        // 64 hosts in groups of 8: both halves of the third group are good, together they are not.
        let faults =
            Faults { boundary: Some(((16..20).collect(), (20..24).collect())), factor: 0.8, ..Faults::default() };
        let found = search(64, &faults, &mut noise);
        whole += usize::from(found.hosts.is_empty() && found.boundaries == [((16..20).collect(), (20..24).collect())]);
        let (a, b) = (16 + noise.below(4) as u32, 20 + noise.below(4) as u32);
        let faults = Faults { boundary: Some((vec![a], vec![b])), factor: 0.8, ..Faults::default() };
        let found = search(64, &faults, &mut noise);
        single += usize::from(found.hosts.is_empty() && found.boundaries == [(vec![a], vec![b])]);
    }
    println!("boundary found as a whole {whole}, single path {single}, of {TRIALS}");
    assert!(whole >= TRIALS * 95 / 100 && single >= TRIALS * 95 / 100);
}

/// Plans with one repeat: how much a result scatters is not known beforehand.
#[test]
fn few_hosts_whose_noise_is_unknown_are_not_named_by_chance() {
    let mut noise = Noise::new(FRESH + 9);
    for (n, scatter) in [(6, 0.02), (6, 0.1), (8, 0.1), (12, 0.1)] {
        for slow in [None, Some(3)] {
            let (mut right, mut wrong) = (0, 0);
            for _ in 0..TRIALS {
                let mut search =
                    Search::new(&(0..n).collect::<Vec<_>>(), Setting { least: 0.03, ..Setting::default() }).unwrap();
                while let Some(group) = search.next_group() {
                    let loss = if slow.is_some_and(|host| group.contains(&host)) { 0.5_f64.ln() } else { 0.0 };
                    search.answer(Some(loss + scatter * noise.normal()));
                }
                let found = search.found();
                right += usize::from(slow.is_some_and(|host| found.hosts.contains(&host)));
                wrong +=
                    usize::from(!found.boundaries.is_empty() || found.hosts.iter().any(|host| Some(*host) != slow));
            }
            println!("{n} hosts, noise {scatter}, slow {slow:?}: right {right}, wrong {wrong} of {TRIALS}");
            assert!(wrong <= TRIALS / 50, "{n} hosts, noise {scatter}, slow {slow:?}: {wrong} wrong");
            assert!(slow.is_none() || scatter > 0.05 || right >= TRIALS * 9 / 10, "{n} hosts: {right} found");
        }
    }
}

#[test]
fn a_collective_that_does_not_run_fails() {
    let hosts: Vec<u32> = (0..16).collect();
    let setting = Setting { least: 0.03, noise: 0.01, ..Setting::default() };
    let mut search = Search::new(&hosts, setting.clone()).unwrap();
    let mut noise = Noise::new(FRESH + 2);
    while let Some(group) = search.next_group() {
        let result = (!group.contains(&5)).then(|| measure(group, &Faults::default(), &mut noise));
        search.answer(result);
    }
    assert_eq!(search.found().hosts, [5]);
    // A result after the end changes nothing.
    let end = search.clone();
    search.answer(Some(1.0));
    assert_eq!(search, end);
    assert!(Search::new(&hosts[..5], setting.clone()).is_err());
    assert!(Search::new(&[1, 2, 3, 4, 5, 5], setting).is_err());
}

#[test]
fn nothing_runs_at_all() {
    let hosts: Vec<u32> = (0..16).collect();
    let mut search = Search::new(&hosts, Setting { least: 0.03, ..Setting::default() }).unwrap();
    while search.next_group().is_some() {
        search.answer(None);
        assert!(search.found().tests < 1_000);
    }
    // Nobody is known to be good, so nobody is blamed: every group stays open.
    assert!(search.found().hosts.is_empty());
    assert_eq!(search.found().open.len(), 4);
}

/// Sides as sets, the smaller first host first.
fn sorted((a, b): &(Vec<u32>, Vec<u32>)) -> [BTreeSet<u32>; 2] {
    let mut sides = [a.iter().copied().collect(), b.iter().copied().collect()];
    sides.sort();
    sides
}

/// What came of searches that should name one boundary, and who else was blamed.
#[derive(Default, Debug)]
struct Tally {
    all: usize,
    exact: usize,
    named: usize,
    innocent: usize,
    tests: usize,
    most: usize,
}

impl Tally {
    fn add(&mut self, found: &Found, faults: &Faults) {
        let boundary = faults.boundary.as_ref().map(sorted);
        self.all += 1;
        self.exact += usize::from(found.boundaries.iter().map(sorted).eq(boundary) && found.parted.is_empty());
        self.named += usize::from(!found.boundaries.is_empty());
        self.innocent += found.hosts.iter().filter(|host| !faults.hosts.contains(host)).count();
        self.tests += found.tests;
        self.most = self.most.max(found.tests);
    }

    fn show(&self, what: &str) {
        let mean = self.tests as f64 / self.all as f64;
        println!(
            "{what}: exact {}, named {} of {}, innocent {}, tests {mean:.1}, most {}",
            self.exact, self.named, self.all, self.innocent, self.most
        );
    }
}

/// The first hosts of the order on one side, the others on the other, at any place.
#[test]
fn a_boundary_at_any_place_blames_no_host() {
    let mut noise = Noise::new(FRESH + 3);
    let mut plain = Tally::default();
    let mut leafy = Tally::default();
    for n in 8..=40_u32 {
        for cut in 2..=n - 2 {
            let boundary = ((0..cut).collect(), (cut..n).collect());
            let faults = Faults { boundary: Some(boundary), factor: 0.47, ..Faults::default() };
            plain.add(&search(n, &faults, &mut noise), &faults);
            // Leaves of any size, which the cut may or may not keep to.
            let size = 2 + noise.below(n as usize / 2 - 1) as u32;
            let leaves = (0..n).step_by(size as usize).map(|start| (start..n.min(start + size)).collect()).collect();
            leafy.add(&search_leaves(n, leaves, &faults, &mut noise), &faults);
        }
    }
    plain.show("boundary anywhere");
    leafy.show("boundary anywhere, with leaves");
    for tally in [plain, leafy] {
        assert_eq!(tally.innocent, 0, "{tally:?}");
        assert!(tally.exact as f64 >= 0.99 * tally.all as f64, "{tally:?}");
    }
}

/// Hosts of two sides in any order, as where the plan's order says nothing of the wiring, with leaves that do.
#[test]
fn leaves_are_used_where_the_order_says_nothing() {
    let mut noise = Noise::new(FRESH + 4);
    let mut told = Tally::default();
    let mut untold = Tally::default();
    for _ in 0..TRIALS {
        let n = 12 + noise.below(29);
        let first: BTreeSet<u32> = noise.choose(n, n / 2).into_iter().map(|host| host as u32).collect();
        let all = 0..n as u32;
        let sides: (Vec<u32>, Vec<u32>) = all.partition(|host| first.contains(host));
        let faults = Faults { boundary: Some(sides.clone()), factor: 0.47, ..Faults::default() };
        told.add(&search_leaves(n as u32, vec![sides.0, sides.1], &faults, &mut noise), &faults);
        untold.add(&search(n as u32, &faults, &mut noise), &faults);
    }
    told.show("two leaves in any order, told");
    untold.show("two leaves in any order, not told");
    assert_eq!(told.innocent + untold.innocent, 0);
    assert!(told.exact as f64 >= 0.99 * told.all as f64, "{told:?}");
}

/// A slow host on one side of a boundary, and a boundary between two of several leaves.
#[test]
fn a_slow_host_beside_a_boundary_is_still_named() {
    let mut noise = Noise::new(FRESH + 5);
    let mut beside = Tally::default();
    let mut between = Tally::default();
    let mut right = 0;
    for _ in 0..TRIALS {
        let n = 12 + noise.below(29) as u32;
        let cut = 3 + noise.below(n as usize - 5) as u32;
        let host = noise.below(n as usize) as u32;
        let good = |hosts: std::ops::Range<u32>| hosts.filter(|other| *other != host).collect::<Vec<u32>>();
        let boundary = Some((good(0..cut), good(cut..n)));
        let faults = Faults { hosts: vec![host], boundary, factor: 0.7 };
        let found = search(n, &faults, &mut noise);
        right += usize::from(found.hosts == [host]);
        beside.add(&found, &faults);
        // Three leaves, of which one is good with both others.
        let leaf = |at: u32| (at * n / 3..(at + 1) * n / 3).collect::<Vec<u32>>();
        let pair = [(0, 1), (1, 2), (0, 2)][noise.below(3)];
        let faults = Faults { boundary: Some((leaf(pair.0), leaf(pair.1))), factor: 0.7, ..Faults::default() };
        between.add(&search_leaves(n, (0..3).map(leaf).collect(), &faults, &mut noise), &faults);
    }
    beside.show(&format!("host beside a boundary (host {right})"));
    between.show("two of three leaves");
    assert_eq!(beside.innocent + between.innocent, 0);
    assert!(right >= TRIALS * 98 / 100 && beside.exact >= TRIALS * 95 / 100, "{right}, {beside:?}");
    assert!(between.exact >= TRIALS * 95 / 100, "{between:?}");
}

/// Three leaves that are slow with one another: a level of the fabric that they share does that, and none of them is at fault.
#[test]
fn leaves_that_are_slow_with_one_another_are_told_as_such() {
    let mut noise = Noise::new(FRESH + 6);
    for n in [24_u32, 36] {
        let leaf = |at: u32| (at * n / 3..(at + 1) * n / 3).collect::<Vec<u32>>();
        let mut search = Search::new(
            &(0..n).collect::<Vec<u32>>(),
            Setting { least: 0.03, noise: 0.01, leaves: (0..3).map(leaf).collect(), ..Setting::default() },
        )
        .unwrap();
        while let Some(group) = search.next_group() {
            let of: BTreeSet<u32> = group.iter().map(|host| host * 3 / n).collect();
            let slow = if of.len() > 1 { 0.5_f64.ln() } else { 0.0 };
            let result = measure(group, &Faults::default(), &mut noise) + slow;
            search.answer(Some(result));
        }
        let found = search.found();
        assert!(found.hosts.is_empty() && found.boundaries.is_empty(), "{found:?}");
        assert_eq!(found.parted, [leaf(0), leaf(1), leaf(2)], "{found:?}");
    }
}

/// How often groups are told to be unlike, of which `low` of `n` have `factor` of the others' rate.
fn told_unlike(n: usize, low: usize, factor: f64, repeats: usize, noise: &mut Noise) -> f64 {
    let mut told = 0;
    for _ in 0..TRIALS * 5 {
        let mut results = Vec::new();
        let mut squares = 0.0;
        for at in 0..n {
            let all: Vec<f64> = (0..repeats).map(|_| 0.01 * noise.normal()).collect();
            let mean = all.iter().sum::<f64>() / repeats as f64;
            squares += all.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            results.push(mean + if at < low { factor.ln() } else { 0.0 });
        }
        let freedom = n * (repeats - 1);
        let deviation = (squares / freedom.max(1) as f64 / repeats as f64).sqrt();
        let repeats = (freedom > 0).then_some(Repeats { deviation, freedom });
        told += usize::from(unlike(&results, repeats, 0.03).is_some());
    }
    told as f64 / (TRIALS * 5) as f64
}

#[test]
fn groups_that_are_unlike_are_told_whichever_are_more() {
    let mut noise = Noise::new(FRESH + 7);
    for n in [2, 3, 4, 6, 8, 28] {
        for repeats in [1, 2, 3] {
            let healthy = told_unlike(n, 0, 1.0, repeats, &mut noise);
            let mut worst: f64 = 1.0;
            for low in 1..n {
                worst = worst.min(told_unlike(n, low, 0.5, repeats, &mut noise));
            }
            println!("{n} groups, {repeats} repeats: alike told {healthy}, half the rate told in {worst} at least");
            assert!(healthy <= 0.01 && worst == 1.0, "{n} groups, {repeats} repeats: {healthy} {worst}");
        }
    }
    // A fifth less is told where repeats show what a group's result scatters by, or enough groups do.
    assert!(told_unlike(2, 1, 0.95, 3, &mut noise) > 0.95 && told_unlike(4, 2, 0.95, 3, &mut noise) > 0.95);
    assert!(told_unlike(2, 1, 0.8, 3, &mut noise) > 0.95 && told_unlike(8, 5, 0.8, 1, &mut noise) > 0.99);
    assert_eq!(unlike(&[], None, 0.03), None);
    // Few repeats count for less than many, and hardly any for nothing.
    let noise = |freedom| Repeats { deviation: 0.01, freedom }.noise();
    assert!(noise(2) == 0.0 && noise(4) > 0.02 && noise(4) > noise(6) && noise(1_000) < 0.0101);
    assert_eq!(unlike(&[1.0], None, 0.03), None);
}
