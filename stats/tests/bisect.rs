//! Bisection of collectives on clusters that we generate.
//!
//! The figures of docs/statistics.md are printed by
//! `cargo test -p railgauge-stats --test bisect -- --nocapture`.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod generators;

use std::collections::{BTreeMap, BTreeSet};

use generators::Noise;
use railgauge_stats::bisect::{Found, Search, Setting};

/// Never used while the rules were made; development used 173205080.
const FRESH: u64 = 223_606_797;
/// Searches of each kind.
const TRIALS: usize = 200;

/// What slows a collective down.
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
    let hosts: Vec<u32> = (0..n).collect();
    let setting = Setting { least: 0.03, noise: 0.01, references: BTreeMap::new() };
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

#[test]
fn a_collective_that_does_not_run_fails() {
    let hosts: Vec<u32> = (0..16).collect();
    let setting = Setting { least: 0.03, noise: 0.01, references: BTreeMap::new() };
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
    let mut search = Search::new(&hosts, Setting { least: 0.03, noise: 0.0, references: BTreeMap::new() }).unwrap();
    while search.next_group().is_some() {
        search.answer(None);
        assert!(search.found().tests < 1_000);
    }
    // Nobody is known to be good, so nobody is blamed: every group stays open.
    assert!(search.found().hosts.is_empty());
    assert_eq!(search.found().open.len(), 4);
}
