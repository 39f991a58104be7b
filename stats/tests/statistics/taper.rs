//! Localisation where leaves matter: what is slow in one direction between them, and fabrics that carry less between leaves than within them, with faults that leave a part a fixed rate: such a fault
//! costs nothing where the way is as narrow.

use std::collections::BTreeSet;

use crate::generators::{
    Noise,
    cluster::{Cluster, confirmed},
};
use railgauge_stats::localise::{Part, Port, Role, Setting, Way, localise, probes};

const LEAF: u32 = 4;
const TRIALS: u64 = 40;

fn groups(hosts: u32) -> Vec<u32> {
    (0..hosts).map(|host| host / LEAF).collect()
}

fn fabric(hosts: u32, rounds: usize, taper: f64) -> Cluster {
    Cluster { leaf: LEAF, taper, glitches: 0.0, ..Cluster::healthy(hosts, rounds, 0.01) }
}

/// In how many of the trials exactly the faults were named, and the names of a trial in which they were not.
fn named(cluster: &Cluster) -> (u64, Option<BTreeSet<Part>>) {
    let groups = groups(cluster.hosts);
    let setting = Setting { groups: &groups, directed: true, ..Setting::default() };
    let truth: BTreeSet<Part> = cluster.faults.iter().map(|(part, _)| part.clone()).collect();
    let (mut right, mut other) = (0, None);
    for seed in 0..TRIALS {
        let mut noise = Noise::new(5077 + seed);
        let pairs = cluster.run(&mut noise);
        let names = confirmed(cluster, &setting, &pairs, &mut noise).0;
        if names == truth {
            right += 1;
        } else {
            other = Some(names);
        }
    }
    (right, other)
}

fn most(cluster: &Cluster, least: f64) {
    let (right, other) = named(cluster);
    let (hosts, rounds, taper) = (cluster.hosts, cluster.rounds, cluster.taper);
    assert!(
        right as f64 >= least * TRIALS as f64,
        "{hosts} hosts, {rounds} rounds, taper {taper}, {:?}: named in {right} of {TRIALS}, once {other:?}",
        cluster.faults
    );
}

#[test]
fn a_capped_host_is_named_where_the_fabric_hides_the_cap_between_leaves() {
    for (hosts, taper) in [(16, 0.5), (24, 0.5), (16, 0.6), (24, 0.6), (16, 0.8), (24, 0.8)] {
        let faults = vec![(Part::Host(2, Way::Both), 0.5)];
        most(&Cluster { faults, ..fabric(hosts, hosts as usize - 1, taper) }, 1.0);
    }
}

/// A cap as low as the fabric between leaves shows in few pairs within its leaf: they are neither the leaf nor paths, and never nothing.
#[test]
fn few_pairs_of_a_capped_host_are_neither_its_leaf_nor_paths() {
    let (mut of, mut right) = (0, 0);
    for (hosts, rounds, rails, host) in [(16, 3, 1, 5), (24, 3, 1, 5), (24, 3, 2, 18), (24, 6, 2, 18)] {
        let part = Part::Host(host, Way::Both);
        let cluster = Cluster { rails, faults: vec![(part.clone(), 0.5)], ..fabric(hosts, rounds, 0.5) };
        let groups = groups(hosts);
        let setting = Setting { groups: &groups, directed: true, ..Setting::default() };
        for seed in 0..TRIALS {
            let mut noise = Noise::new(6007 + seed);
            let pairs = cluster.run(&mut noise);
            let within = |bad: bool| {
                let mut inner = pairs.iter().filter(|pair| cluster.group(pair.from) == cluster.group(pair.to));
                inner.any(|pair| part.passed(pair.from, pair.to, &[]) == bad)
            };
            if !within(true) || !within(false) {
                continue;
            }
            let (names, _, findings) = confirmed(&cluster, &setting, &pairs, &mut noise);
            assert!(!findings.suspects.is_empty() || findings.two_clusters.is_some(), "{pairs:?}");
            assert!(names.iter().all(|name| *name == part), "{names:?} of {part:?}");
            (of, right) = (of + 1, right + names.len());
        }
    }
    assert!(of > 50 && 100 * right >= 95 * of, "{right} of {of}");
}

#[test]
fn one_rail_of_a_capped_host_is_its_nic() {
    for taper in [0.5, 0.8] {
        let faults = vec![(Part::Nic(Port { host: 2, rail: 1 }, Way::Both), 0.5)];
        most(&Cluster { rails: 2, faults, ..fabric(16, 15, taper) }, 1.0);
    }
}

/// Few pairs within leaves, one host bad: the fabric still has two levels, and none of its uplinks is bad for that.
#[test]
fn one_bad_host_does_not_turn_two_levels_into_bad_uplinks() {
    for (hosts, rounds) in [(24, 3), (24, 6), (16, 3)] {
        let faults = vec![(Part::Host(5, Way::Both), 0.5)];
        most(&Cluster { faults, ..fabric(hosts, rounds, 0.8) }, 0.95);
    }
}

/// A good pair between leaves says nothing of a cap that it hides: the tests that settle the host stay within its leaf.
#[test]
fn an_end_is_settled_by_pairs_of_the_kind_that_shows_it() {
    let groups = groups(16);
    let setting = Setting { groups: &groups, directed: true, ..Setting::default() };
    let suspect = Part::Host(2, Way::Both);
    let cluster = Cluster { faults: vec![(suspect.clone(), 0.5)], ..fabric(16, 15, 0.5) };
    let pairs = cluster.run(&mut Noise::new(1));
    let findings = localise(&pairs, &setting).unwrap();
    let number = findings.suspects.iter().position(|found| found.part == suspect).unwrap();
    let wanted = probes(&pairs, &findings, &setting);
    let own = || wanted.iter().filter(|probe| probe.suspect == number && probe.role == Role::Suspect);
    assert!(own().count() >= 5);
    assert!(own().all(|probe| cluster.group(probe.from) == cluster.group(probe.to)), "{wanted:#?}");
}

#[test]
fn two_slow_leaves_are_two_groups() {
    for (hosts, rounds) in [(20, 6), (24, 6), (20, 19), (24, 23)] {
        let faults = vec![(Part::Group(1), 0.5), (Part::Group(3), 0.5)];
        most(&Cluster { faults, ..fabric(hosts, rounds, 0.8) }, 0.95);
    }
}

#[test]
fn a_slow_leaf_is_a_group_where_the_fabric_hides_it_between_leaves() {
    for hosts in [16, 24] {
        most(&Cluster { faults: vec![(Part::Group(1), 0.5)], ..fabric(hosts, hosts as usize - 1, 0.5) }, 0.95);
    }
}

#[test]
fn two_slow_uplinks_are_two_uplinks() {
    for (hosts, rounds) in [(24, 3), (16, 6), (24, 6), (24, 23)] {
        let faults = vec![(Part::Uplink(1, Way::Both), 0.4), (Part::Uplink(3, Way::Both), 0.4)];
        most(&Cluster { faults, only_between: true, ..fabric(hosts, rounds, 0.8) }, 0.95);
    }
}

/// What leaves two leaves is slow on one rail of two, and what stays within them is good: no NIC is to blame.
#[test]
fn slow_uplinks_of_one_rail_are_no_bad_nics() {
    for (hosts, rounds) in [(20, 6), (24, 6), (24, 23)] {
        let rail = |group| (Part::GroupRail { group, rail: 0 }, 0.4);
        let faults = vec![rail(1), rail(3)];
        most(&Cluster { rails: 2, faults, only_between: true, ..fabric(hosts, rounds, 0.8) }, 0.95);
    }
}

/// What leads out of a leaf is slow, what leads into it is not: its uplinks in one direction, and none of its hosts.
#[test]
fn uplinks_that_are_slow_in_one_direction_are_named_with_it() {
    for (hosts, rounds) in [(12, 11), (16, 6), (24, 6)] {
        for way in [Way::Send, Way::Receive] {
            let faults = vec![(Part::Uplink(1, way), 0.5)];
            most(&Cluster { faults, ..fabric(hosts, rounds, 1.0) }, 0.95);
        }
    }
    let faults = vec![(Part::Boundary(0, 2, Way::Receive), 0.5)];
    most(&Cluster { faults, ..fabric(16, 15, 0.8) }, 0.95);
}
