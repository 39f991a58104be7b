//! What no host and no switch of a plan explains.

use std::collections::BTreeSet;

use crate::generators::{
    Noise,
    cluster::{Cluster, confirmed},
};
use railgauge_stats::localise::{Judgement, Pair, Part, Port, Probe, Role, Setting, Way, localise, probes, settle};

/// A slow trunk between switches that the plan does not name makes half of the pairs low. Its sides are named, and no host.
#[test]
fn a_trunk_that_no_plan_names_is_named_by_its_sides() {
    for (hosts, rounds, factor) in [(8, 7, 0.8), (16, 15, 0.5), (16, 6, 0.8), (32, 8, 0.9)] {
        let mut noise = Noise::new(7 + u64::from(hosts));
        for _ in 0..20 {
            let trunk = Part::Cut((0..hosts / 2).collect());
            let cluster =
                Cluster { faults: vec![(trunk, factor)], glitches: 0.0, ..Cluster::healthy(hosts, rounds, 0.005) };
            let pairs = cluster.run(&mut noise);
            let (names, _, findings) = confirmed(&cluster, &Setting::default(), &pairs, &mut noise);
            let upper = Part::Cut((hosts / 2..hosts).collect());
            assert_eq!(names.into_iter().collect::<Vec<_>>(), [upper], "{hosts} {rounds} {findings:#?}");
        }
    }
}

/// Ways that are slow at random, whichever their ends, name no host, and something is said of them.
#[test]
fn ways_that_are_slow_at_random_name_no_host() {
    for (hosts, share) in [(16, 0.3), (16, 0.5), (32, 0.1)] {
        let mut noise = Noise::new(11 + u64::from(hosts));
        let cluster = Cluster { glitches: 0.0, ..Cluster::healthy(hosts, hosts as usize - 1, 0.005) };
        for _ in 0..20 {
            let mut pairs = cluster.run(&mut noise);
            for pair in &mut pairs {
                pair.value += if noise.chance(share) { 0.8_f64.ln() } else { 0.0 };
            }
            let found = localise(&pairs, &Setting::default()).unwrap();
            let ends: Vec<&Part> = found.suspects.iter().map(|suspect| &suspect.part).filter(|p| p.is_end()).collect();
            assert!(ends.is_empty(), "{hosts} {share} {ends:?}");
            assert!(found.two_clusters.is_some());
        }
    }
}

/// Of few hosts, slow ways meet at one of them: each way of it is measured again more than once, in both directions. An end is named in at
/// most 1 % of runs; `bench/judgement --only wider` has 0.25 to 0.5 %.
#[test]
fn slow_ways_of_few_hosts_name_no_end() {
    let (mut runs, mut named) = (0_u32, 0);
    for (hosts, rails, share) in [(4, 8, 0.1), (6, 8, 0.1), (7, 2, 0.2), (8, 4, 0.1)] {
        let mut noise = Noise::new(19 + u64::from(hosts));
        for _ in 0..30 {
            let mut good = std::collections::BTreeSet::new();
            let mut faults = Vec::new();
            for (a, b, rail) in
                (0..hosts * hosts * rails).map(|at| (at / rails / hosts, at / rails % hosts, at % rails))
            {
                let ends = [a, b].map(|host| Port { host, rail });
                if a < b && noise.chance(share) {
                    faults.push((Part::Link(ends[0], ends[1], Way::Both), 0.8));
                } else if a < b {
                    good.extend(ends);
                }
            }
            // An end without a good way is as a bad one.
            if good.len() < (hosts * rails) as usize {
                continue;
            }
            let cluster = Cluster { rails, faults, glitches: 0.0, ..Cluster::healthy(hosts, 2, 0.005) };
            let setting = Setting { directed: true, ..Setting::default() };
            let pairs = cluster.run(&mut noise);
            let (names, ..) = confirmed(&cluster, &setting, &pairs, &mut noise);
            runs += 1;
            named += u32::from(names.iter().any(Part::is_end));
        }
    }
    assert!(runs > 80 && named <= runs.div_ceil(100), "{named} of {runs}");
}

/// A host that is faster than all others is no reason to suspect them.
#[test]
fn a_fast_host_makes_no_other_a_suspect() {
    let mut noise = Noise::new(17);
    let cluster = Cluster { glitches: 0.0, ..Cluster::healthy(16, 15, 0.005) };
    for _ in 0..20 {
        let mut pairs = cluster.run(&mut noise);
        for pair in &mut pairs {
            pair.value += if pair.from.host == 5 || pair.to.host == 5 { 0.2 } else { 0.0 };
        }
        assert_eq!(localise(&pairs, &Setting::default()).unwrap().suspects, []);
    }
}

/// One good pair between the two hosts of a side shows that the trunk is slow, and not the two hosts.
#[test]
fn a_trunk_to_two_hosts_is_named_by_one_good_pair() {
    let mut noise = Noise::new(19);
    for _ in 0..20 {
        let trunk = Part::Cut(vec![1, 4]);
        let cluster = Cluster { faults: vec![(trunk.clone(), 0.8)], glitches: 0.0, ..Cluster::healthy(8, 7, 0.005) };
        let pairs = cluster.run(&mut noise);
        let (names, _, findings) = confirmed(&cluster, &Setting::default(), &pairs, &mut noise);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), [trunk], "{findings:#?}");
    }
}

/// A host that is slow between groups only is measured again between groups, whichever its group.
#[test]
fn a_host_that_is_slow_between_groups_is_named_in_every_group() {
    let mut noise = Noise::new(23);
    let groups: Vec<u32> = (0..16).map(|host| host / 4).collect();
    let setting = Setting { groups: &groups, directed: true, ..Setting::default() };
    for host in 0..16 {
        let bad = Part::Host(host, Way::Both);
        let cluster = Cluster {
            faults: vec![(bad.clone(), 0.8)],
            glitches: 0.0,
            leaf: 4,
            only_between: true,
            ..Cluster::healthy(16, 15, 0.005)
        };
        let pairs = cluster.run(&mut noise);
        let (names, _, findings) = confirmed(&cluster, &setting, &pairs, &mut noise);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), [bad], "{findings:#?}");
    }
}

/// Where most ways are slow at random, a host all of whose few ways are slow is one by chance.
#[test]
fn no_host_is_named_where_most_ways_are_slow_at_random() {
    let mut noise = Noise::new(29);
    let cluster = Cluster { glitches: 0.0, rails: 4, ..Cluster::healthy(16, 6, 0.02) };
    for _ in 0..40 {
        let mut pairs = cluster.run(&mut noise);
        for pair in &mut pairs {
            pair.value += if noise.chance(0.6) { 0.5_f64.ln() } else { 0.0 };
        }
        let found = localise(&pairs, &Setting::default()).unwrap();
        let ends: Vec<&Part> = found.suspects.iter().map(|suspect| &suspect.part).filter(|p| p.is_end()).collect();
        assert!(ends.is_empty(), "{ends:?}");
    }
}

/// Flows that share a trunk at once get unequal parts of it. It is the trunk that is low, named in the plan or not, and no host.
#[test]
fn a_trunk_of_unequal_shares_is_no_fault_of_hosts() {
    for (hosts, grouped) in [(8, false), (8, true), (16, false), (16, true)] {
        let mut noise = Noise::new(31 + u64::from(hosts));
        let side: Vec<u32> = (hosts / 2..hosts).collect();
        let groups: Vec<u32> = (0..hosts).map(|host| u32::from(side.contains(&host))).collect();
        let setting = Setting { groups: if grouped { &groups } else { &[] }, directed: true, ..Setting::default() };
        let trunk = if grouped { Part::Boundary(0, 1, Way::Both) } else { Part::Cut(side.clone()) };
        for _ in 0..20 {
            let mut pairs =
                Cluster { glitches: 0.0, ..Cluster::healthy(hosts, hosts as usize - 1, 0.005) }.run(&mut noise);
            for pair in pairs.iter_mut().filter(|pair| trunk.passed(pair.from, pair.to, &groups)) {
                pair.value += 0.35_f64.ln() + 0.3 * noise.normal();
            }
            let found = localise(&pairs, &setting).unwrap();
            let shown = found.suspects.iter().filter(|suspect| !suspect.latent);
            let parts: Vec<&Part> = shown.map(|suspect| &suspect.part).collect();
            assert!(parts.contains(&&trunk) && !parts.iter().any(|part| part.is_end()), "{hosts} {grouped} {parts:?}");
        }
    }
}

/// Where low results are left that nothing separates from good ones, a host that is low again is not confirmed.
#[test]
fn a_run_that_separates_nothing_confirms_nothing() {
    let mut noise = Noise::new(37);
    let bad = Part::Host(3, Way::Both);
    let cluster = Cluster { faults: vec![(bad.clone(), 0.7)], glitches: 0.0, ..Cluster::healthy(16, 15, 0.005) };
    let mut seen = 0;
    for _ in 0..20 {
        let mut pairs = cluster.run(&mut noise);
        for pair in &mut pairs {
            pair.value += if noise.chance(0.3) { 0.8_f64.ln() } else { 0.0 };
        }
        let (names, _, found) = confirmed(&cluster, &Setting::default(), &pairs, &mut noise);
        if found.two_clusters.is_some() && found.suspects.iter().any(|suspect| suspect.part == bad) {
            seen += 1;
            assert!(names.is_empty(), "{names:?}");
        }
    }
    assert!(seen > 10, "{seen}");
}

/// Of four hosts half of the pairs pass a slow one, which may scatter more than good ones: it is a host, and not a second cluster.
/// `bench/judgement` also has two rails.
#[test]
fn a_slow_host_of_four_is_named_however_much_it_scatters() {
    let bad = Part::Host(2, Way::Both);
    let mut noise = Noise::new(42);
    let faults = vec![(bad.clone(), 0.5)];
    let cluster = Cluster { glitches: 0.0, faults, ..Cluster::healthy(4, 3, 0.005) };
    let is_named = |_: &i32| {
        let mut pairs = cluster.run(&mut noise);
        for pair in pairs.iter_mut().filter(|pair| bad.passed(pair.from, pair.to, &[])) {
            pair.value += 0.02 * noise.normal();
        }
        let found = localise(&pairs, &Setting { directed: true, ..Setting::default() }).unwrap();
        let mut suspects = found.suspects.iter().filter(|suspect| !suspect.latent);
        let is_bad = suspects.next().is_some_and(|suspect| suspect.part == bad && !suspect.contested);
        is_bad && suspects.next().is_none() && found.two_clusters.is_none()
    };
    let named = (0..20).filter(is_named).count();
    assert!(named >= 19, "{named} of 20");
}

/// Of four hosts half of the pairs pass one: whether that is fast or the other ways are slow, values do not show.
#[test]
fn one_fast_host_of_four_makes_no_way_a_bad_one() {
    let setting = Setting { directed: true, ..Setting::default() };
    for rails in [1, 2, 4] {
        let mut noise = Noise::new(37 + u64::from(rails));
        let faults = [(0, 2), (0, 3), (2, 3)].map(|(a, b)| (Part::Hosts(a, b), 0.8)).into();
        let cluster = Cluster { rails, glitches: 0.0, faults, ..Cluster::healthy(4, 3, 0.005) };
        for _ in 0..20 {
            let pairs = cluster.run(&mut noise);
            let (names, _, findings) = confirmed(&cluster, &setting, &pairs, &mut noise);
            assert!(names.is_empty(), "{rails} {names:?} {findings:#?}");
        }
    }
}

/// Four hosts in a ring have four pairs on each rail, and most rails may be slow.
#[test]
fn slow_rails_of_few_pairs_are_named() {
    let mut noise = Noise::new(41);
    for slow in [1, 3] {
        let rails: BTreeSet<Part> = (0..slow).map(Part::Rail).collect();
        let faults = rails.iter().map(|rail| (rail.clone(), 0.8)).collect();
        let cluster = Cluster { rails: 4, glitches: 0.0, faults, ..Cluster::healthy(4, 3, 0.005) };
        for _ in 0..20 {
            let mut pairs = cluster.run(&mut noise);
            pairs.retain(|pair| (pair.from.host + pair.to.host) % 2 == 1);
            let (names, _, findings) = confirmed(&cluster, &Setting::default(), &pairs, &mut noise);
            assert_eq!(names, rails, "{findings:#?}");
        }
    }
}

/// A port that saved credit while it was idle makes one result a little better. Where the others hardly scatter, that is not a reason to
/// measure anything again.
#[test]
fn one_result_that_is_a_little_better_makes_no_other_a_suspect() {
    let setting = Setting { directed: true, ..Setting::default() };
    for (hosts, rounds) in [(4, 3), (8, 7)] {
        let mut noise = Noise::new(43);
        let cluster = Cluster { glitches: 0.0, ..Cluster::healthy(hosts, rounds, 0.001) };
        for _ in 0..20 {
            let mut pairs = cluster.run(&mut noise);
            pairs[1].value += 0.02;
            let found = localise(&pairs, &setting).unwrap();
            assert!(found.suspects.is_empty() && found.two_clusters.is_none(), "{hosts} {found:#?}");
        }
    }
}

/// Two slow hosts of four leave one good pair. Two hosts are fewer parts than one and two paths.
#[test]
fn two_slow_hosts_of_four_are_named_by_one_good_pair() {
    let mut noise = Noise::new(53);
    let bad: BTreeSet<Part> = [1, 2].map(|host| Part::Host(host, Way::Both)).into();
    let faults = bad.iter().map(|host| (host.clone(), 0.8)).collect();
    let cluster = Cluster { glitches: 0.0, faults, ..Cluster::healthy(4, 3, 0.005) };
    let setting = Setting { directed: true, ..Setting::default() };
    let named =
        (0..20).filter(|_| confirmed(&cluster, &setting, &cluster.run(&mut noise), &mut noise).0 == bad).count();
    assert!(named >= 19, "{named} of 20");
}

/// Low pairs that pass neither side of a cut nor of its alternative do not name one of them.
#[test]
fn a_cut_is_not_named_where_no_alternative_fits() {
    let mut noise = Noise::new(41);
    let trunk = Part::Cut(vec![4, 5, 6, 7]);
    let cluster = Cluster { faults: vec![(trunk.clone(), 0.5)], glitches: 0.0, ..Cluster::healthy(8, 7, 0.005) };
    let pairs = cluster.run(&mut noise);
    let mut found = localise(&pairs, &Setting::default()).unwrap();
    let number = found.suspects.iter().position(|suspect| suspect.part == trunk).unwrap();
    let other = Part::Cut(vec![2, 3, 4, 5]);
    found.suspects[number].alternatives = vec![other.clone()];
    let probes = probes(&pairs, &found, &Setting::default());
    let results = |low: fn([bool; 2], usize) -> bool| -> Vec<_> {
        let value = |(at, probe): (usize, &Probe)| {
            let passes = [&trunk, &other].map(|part| part.passed(probe.from, probe.to, &[]));
            let is_low = probe.role == Role::Suspect && low(passes, at);
            (*probe, probe.level.centre + if is_low { -0.69 } else { 0.001 * (at % 5) as f64 })
        };
        probes.iter().enumerate().map(value).collect()
    };
    let settled = |low| settle(&found.suspects[number], &results(low), &Setting::default());
    let neither = settled(|[a, b], at| a != b && at % 2 == 0);
    assert!(matches!(neither.judgement, Judgement::Open { .. }), "{neither:?}");
    let second = settled(|[_, b], _| b);
    assert!(matches!(second.judgement, Judgement::Confirmed { .. }) && second.part == other, "{second:?}");
    let none = settled(|_, _| false);
    assert!(none.part == trunk && none.alternatives == [other.clone()], "{none:?}");
}

/// Few low pairs that cross the same two sides are a trunk and no paths, if pairs across that were not measured are low too.
#[test]
fn few_low_pairs_of_a_trunk_are_not_paths() {
    let mut named = 0;
    for seed in 0..40 {
        let mut noise = Noise::new(4300 + seed);
        let side: Vec<u32> = vec![3, 4, 5];
        let cluster =
            Cluster { faults: vec![(Part::Cut(side.clone()), 0.5)], glitches: 0.0, ..Cluster::healthy(6, 3, 0.01) };
        let pairs = cluster.run(&mut noise);
        let names = confirmed(&cluster, &Setting::default(), &pairs, &mut noise).0;
        assert!(!names.iter().any(Part::is_end), "{names:?}");
        named += usize::from(names.into_iter().eq([Part::Cut(side)]));
    }
    assert!(named >= 36, "{named}");
}

/// A trunk between halves of a ring passes two of its links. Of the partners of their ends in further tests every other one is beyond the
/// trunk: that is no direction of the end. A host that is slow in one direction is.
#[test]
fn a_trunk_that_two_links_of_a_ring_pass_is_no_direction_of_a_host() {
    let setting = Setting { directed: true, ..Setting::default() };
    let named = |hosts: u32, fault: Part, seed: u64| {
        let mut noise = Noise::new(seed);
        let cluster = Cluster { faults: vec![(fault, 0.7)], glitches: 0.0, ..Cluster::healthy(hosts, 0, 0.01) };
        let link = |from: u32| {
            let [from, to] = [from, (from + 1) % hosts].map(|host| Port { host, rail: 0 });
            Pair { from, to, path: 0, value: cluster.measure(from, to, &mut noise) }
        };
        let pairs: Vec<Pair> = (0..hosts).map(link).collect();
        confirmed(&cluster, &setting, &pairs, &mut noise).0
    };
    for (hosts, seed) in [8, 10, 14, 16, 24, 32].into_iter().flat_map(|hosts| (0..10).map(move |seed| (hosts, seed))) {
        let names = named(hosts, Part::Cut((0..hosts / 2).collect()), seed);
        assert!(!names.iter().any(Part::is_end), "{hosts} {names:?}");
        let sends = Part::Host(5, Way::Send);
        let names = named(hosts, sends.clone(), seed);
        assert!(names.iter().eq([&sends]), "{hosts} {names:?}");
    }
}
