//! Localisation on clusters that we generate: how often the right part is named, and how often a wrong one.
//!
//! The figures of docs/methods.md are printed by
//! `cargo test -p railgauge-stats --test statistics localise -- --nocapture`.

use std::collections::BTreeSet;

use crate::generators::{
    Noise,
    cluster::{Cluster, confirmed},
    on_cpu,
};
use railgauge_stats::{
    Refusal,
    localise::{Doubt, Findings, Judgement, Pair, Part, Port, Setting, Way, judge, localise, probes},
};

/// Not used while the rules were made; development used 1, 2, 3, 9001, 20261121, 31415926 and
/// 271828182.
const FRESH: u64 = 1_618_033_988;
const TRIALS: usize = 200;

#[derive(Default, Debug)]
struct Score {
    right: usize,
    named: usize,
    there: usize,
    link_right: usize,
    link_named: usize,
    link_there: usize,
    probes: usize,
}

impl Score {
    fn share(part: usize, whole: usize) -> f64 {
        if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
    }
}

/// Trials with up to `most` bad hosts and up to two bad paths among those tested.
fn trials(hosts: u32, rounds: usize, noise_level: f64, factor: f64, count: usize, seed: u64, faulty: bool) -> Score {
    let mut noise = Noise::new(seed);
    let mut score = Score::default();
    for _ in 0..count {
        let mut cluster = Cluster::healthy(hosts, rounds, noise_level);
        let mut truth = BTreeSet::new();
        if faulty {
            let bad = noise.below(4);
            for host in noise.choose(hosts as usize, bad) {
                truth.insert(Part::Host(host as u32, Way::Both));
            }
        }
        // The paths that will be tested are known after a first draw of the schedule; the same stream is drawn again.
        let mut again = Noise(noise.0.clone());
        let schedule = cluster.run(&mut again);
        if faulty {
            for _ in 0..again.below(3) {
                let pair = schedule[again.below(schedule.len())];
                truth.insert(Part::Link(pair.from.min(pair.to), pair.from.max(pair.to), Way::Both));
            }
        }
        cluster.faults = truth.iter().map(|part| (part.clone(), factor)).collect();
        let pairs = cluster.run(&mut noise);
        // The retests do not change the next trial.
        noise = Noise(again.0.clone());
        let setting = Setting::default();
        let (names, tests, _) = confirmed(&cluster, &setting, &pairs, &mut again);
        let hit = |part: &Part| match part {
            Part::Link(a, b, _) => truth.contains(&Part::Link(*a, *b, Way::Both)),
            other => truth.contains(other),
        };
        score.probes += tests;
        score.right += names.iter().filter(|p| p.is_end() && hit(p)).count();
        score.named += names.iter().filter(|p| !p.is_link()).count();
        score.there += truth.iter().filter(|p| p.is_end()).count();
        score.link_right += names.iter().filter(|p| p.is_link() && hit(p)).count();
        score.link_named += names.iter().filter(|p| p.is_link()).count();
        // A bad path to a bad host cannot be told from the host.
        let hidden = |p: &Part| matches!(p, Part::Link(a, b, _) if [a, b].iter().any(|e| truth.contains(&Part::Host(e.host, Way::Both))));
        score.link_there += truth.iter().filter(|p| p.is_link() && !hidden(p)).count();
    }
    score
}

/// A bad path beside a pair that was low for once has low pairs at one end twice: that end looks bad at times. What is low
/// again is one of its paths.
#[test]
fn a_bad_path_is_no_bad_end_where_another_pair_was_low_once() {
    let (path, end) = ((Port { host: 0, rail: 0 }, Port { host: 2, rail: 0 }), 2);
    for hosts in [4, 6, 8] {
        let mut right = 0;
        for seed in 0..200 {
            let mut noise = Noise::new(FRESH + seed);
            let bad = Part::Link(path.0, path.1, Way::Both);
            let faults = vec![(bad.clone(), 0.5)];
            let cluster = Cluster { faults, glitches: 0.0, ..Cluster::healthy(hosts, hosts as usize - 1, 0.004) };
            let mut pairs = cluster.run(&mut noise);
            let at_end = |pair: &Pair| pair.from.host == end || pair.to.host == end;
            let once = pairs.iter_mut().find(|pair| at_end(pair) && !cluster.passes(&bad, pair.from, pair.to));
            once.unwrap().value += 0.89_f64.ln();
            let (names, _, _) = confirmed(&cluster, &Setting::default(), &pairs, &mut noise);
            let ends: Vec<&Part> = names.iter().filter(|part| part.is_end()).collect();
            assert!(ends.is_empty(), "{hosts} hosts, seed {seed}: {names:?}");
            let is_path = |part: &Part| matches!(part, Part::Link(a, b, _) if (*a.min(b), *a.max(b)) == path);
            right += usize::from(names.len() == 1 && names.iter().all(is_path));
        }
        assert!(right >= 196, "{hosts} hosts: the path is named in {right} of 200 runs");
    }
}

/// Of a host that was measured with one or two others all pairs are low if it is bad, and each looks like a bad path: further
/// tests with others tell which it is.
#[test]
fn a_host_with_one_or_two_pairs_is_told_from_its_paths() {
    for (hosts, rounds) in [(6, 2), (8, 2), (12, 1), (16, 1), (16, 2)] {
        let slow = |noise: &mut Noise, fault: Part, right: &dyn Fn(&Part) -> bool| {
            let cluster =
                Cluster { faults: vec![(fault, 0.5)], glitches: 0.0, ..Cluster::healthy(hosts, rounds, 0.005) };
            let pairs = cluster.run(noise);
            let (names, _, findings) = confirmed(&cluster, &Setting::default(), &pairs, noise);
            let tested = pairs.iter().any(|pair| cluster.passes(&cluster.faults[0].0, pair.from, pair.to));
            assert!(
                !tested || names.len() == 1 && names.iter().all(right),
                "{hosts}, {rounds}: {names:?} {findings:#?}"
            );
        };
        for seed in 0..40 {
            let mut noise = Noise::new(FRESH ^ seed);
            slow(&mut noise, Part::Host(3, Way::Both), &|part| *part == Part::Host(3, Way::Both));
            let path = (Port { host: 0, rail: 0 }, Port { host: 3, rail: 0 });
            let is_path = |part: &Part| matches!(part, Part::Link(a, b, _) if (*a.min(b), *a.max(b)) == path);
            slow(&mut noise, Part::Link(path.0, path.1, Way::Both), &is_path);
        }
    }
}

/// The levels of the clusters are those of the pairs that suspects do not explain: the others belong to neither.
#[test]
fn pairs_that_suspects_explain_are_in_no_cluster() {
    let mut noise = Noise::new(FRESH ^ 11);
    let mut told = 0;
    for trial in 0..400 {
        // An even number, so that no pair is measured twice.
        let hosts = 4 + 2 * (trial % 5);
        let mut pairs = Cluster { glitches: 0.0, ..Cluster::healthy(hosts, hosts as usize - 1, 0.002) }.run(&mut noise);
        for pair in &mut pairs {
            // One host carries half, and what the others carry falls into two clusters that no part separates.
            let of_bad = pair.from.host == 0 || pair.to.host == 0;
            pair.value -= if of_bad { 0.7 } else { 0.1 * noise.below(2) as f64 };
        }
        let Ok(found) = localise(&pairs, &Setting::default()) else { continue };
        let Some(clusters) = &found.two_clusters else { continue };
        let is_suspect = found.suspects.iter().any(|suspect| suspect.part == Part::Host(0, Way::Both));
        if !is_suspect {
            continue;
        }
        told += 1;
        let side = |good: bool| {
            let of = pairs.iter().zip(&clusters.is_good).filter(move |(_, side)| **side == Some(good));
            of.map(|(pair, _)| pair.value).collect::<Vec<f64>>()
        };
        for (good, centre) in [(true, clusters.good), (false, clusters.bad)] {
            assert!(side(good).iter().all(|value| (value - centre).abs() < 0.1), "{good}: {clusters:?}");
        }
    }
    assert!(told > 0);
}

/// Of two results nobody can say which is the odd one, and that they are far apart must not pass for nothing.
#[test]
fn two_pairs_far_apart_are_two_clusters() {
    let pair = |from, value: f64| Pair {
        from: Port { host: from, rail: 0 },
        to: Port { host: from + 1, rail: 0 },
        path: 0,
        value: value.ln(),
    };
    for (noise, value, apart) in
        [(0.0, 190.0, true), (0.0, 385.0, false), (0.004, 190.0, true), (0.004, 350.0, true), (0.1, 385.0, false)]
    {
        let setting = Setting { noise, ..Setting::default() };
        let found = localise(&[pair(0, value), pair(2, 391.0)], &setting).unwrap();
        assert_eq!(found.two_clusters.is_some(), apart, "{noise}, {value}: {found:#?}");
    }
}

/// What was low is never left without a word: where the further tests of a path settle nothing, an end that is low with one
/// partner only does not hide it.
#[test]
fn a_path_that_is_open_is_shown_where_its_ends_are_good() {
    let bad = Part::Link(Port { host: 0, rail: 0 }, Port { host: 2, rail: 0 }, Way::Both);
    let cluster = Cluster { faults: vec![(bad, 0.5)], glitches: 0.0, ..Cluster::healthy(4, 3, 0.004) };
    let findings = localise(&cluster.run(&mut Noise::new(FRESH)), &Setting::default()).unwrap();
    let of = |suspect: &railgauge_stats::localise::Suspect| match suspect.part {
        Part::Host(..) => Judgement::Ways { effect: -0.7, n: 10 },
        _ => Judgement::Open { n: 5, doubt: Doubt::Mixed },
    };
    let judgements: Vec<Judgement> = findings.suspects.iter().map(of).collect();
    let ends = judgements.iter().filter(|judgement| matches!(judgement, Judgement::Ways { .. })).count();
    assert!(ends > 0, "{:#?}", findings.suspects);
    assert!((0..judgements.len()).any(|at| findings.shows(at, &judgements)));
}

#[test]
fn bad_hosts_and_paths_are_named() {
    println!("hosts rounds noise fault | host precision recall | path precision recall | probes a run");
    for hosts in [16, 64, 256] {
        for (noise, factor) in [(0.005, 0.97), (0.01, 0.95), (0.02, 0.90), (0.02, 0.50)] {
            let s = trials(hosts, 6, noise, factor, TRIALS, FRESH + u64::from(hosts), true);
            let (precision, recall) = (Score::share(s.right, s.named), Score::share(s.right, s.there));
            let (lp, lr) = (Score::share(s.link_right, s.link_named), Score::share(s.link_right, s.link_there));
            println!(
                "{hosts:5} {:6} {noise:5} {factor:5} | {precision:.3} {recall:.3} ({}/{}) | {lp:.3} {lr:.3} ({}/{}) | {:.1}",
                6,
                s.named,
                s.there,
                s.link_named,
                s.link_there,
                s.probes as f64 / TRIALS as f64
            );
            assert!(precision >= 0.98, "hosts: precision {precision}");
            assert_eq!(s.right, s.there, "a bad host of {hosts} was missed");
            assert!(lp >= 0.95, "paths: precision {lp}");
            assert!(factor > 0.5 || lr >= 0.95, "paths: recall {lr}");
        }
    }
}

#[test]
fn healthy_clusters_have_no_suspects() {
    for (hosts, noise) in [(4, 0.005), (4, 0.02), (8, 0.02), (16, 0.01), (64, 0.02), (256, 0.02)] {
        let s = trials(hosts, 6, noise, 1.0, TRIALS, FRESH + 500 + u64::from(hosts), false);
        println!(
            "{hosts} hosts, noise {noise}: {} hosts and {} paths named in {TRIALS} healthy runs, {:.2} probes a run",
            s.named,
            s.link_named,
            s.probes as f64 / TRIALS as f64
        );
        let most = if hosts < 16 { 4 } else { 1 };
        assert!(s.named + s.link_named <= most, "false names in a healthy cluster");
    }
}

/// Each kind of part, alone, in a cluster of 64 hosts with 8 rails under 8 leaves.
#[test]
#[ignore = "slow: a simulation"]
fn every_kind_of_part_is_named_as_what_it_is() {
    let setting = |groups: &'static [u32]| Setting { groups, directed: true, ..Setting::default() };
    let groups: &'static [u32] = Box::leak((0..64).map(|h| h / 8).collect::<Vec<u32>>().into_boxed_slice());
    let port = |host, rail| Port { host, rail };
    let kinds = [
        Part::Host(13, Way::Both),
        Part::Host(13, Way::Send),
        Part::Host(13, Way::Receive),
        Part::Nic(port(13, 5), Way::Both),
        Part::Nic(port(13, 5), Way::Send),
        Part::Nic(port(13, 5), Way::Receive),
        Part::Rail(3),
        Part::Group(2),
        Part::GroupRail { group: 2, rail: 3 },
        Part::Uplink(2, Way::Both),
        Part::Boundary(2, 5, Way::Both),
    ];
    println!("part | named in the screen | confirmed | other names confirmed | of");
    for kind in kinds {
        let (mut noise, mut screened, mut right, mut other, mut gone) = (Noise::new(FRESH + 31), 0, 0, 0, Vec::new());
        let trials = 50;
        for _ in 0..trials {
            let mut cluster = Cluster { rails: 8, leaf: 8, ..Cluster::healthy(64, 6, 0.02) };
            cluster.faults = vec![(kind.clone(), 0.8)];
            let pairs = cluster.run(&mut noise);
            let (names, _, findings) = confirmed(&cluster, &setting(groups), &pairs, &mut noise);
            screened += usize::from(findings.suspects.iter().any(|s| s.part == kind));
            right += usize::from(names.contains(&kind));
            other += names.iter().filter(|p| **p != kind).count();
            gone.extend(names.into_iter().filter(|p| *p != kind));
        }
        println!("{kind:?} | {screened} | {right} | {other} | {trials} {:?}", gone.first());
        // Six rounds may give an end a single partner in one direction, or a group no pair inside.
        let tellable = if matches!(kind, Part::Host(_, Way::Both) | Part::Nic(_, Way::Both)) { 0.95 } else { 0.8 };
        assert!(right as f64 >= tellable * trials as f64, "{kind:?} named in {right} of {trials}");
        assert!(other <= trials / 5, "{kind:?}: {other} other names");
    }
}

/// One of four hosts is half of all pairs: the smallest cluster in which a host can be named. Where the noise of repeats
/// is known it is all but certain; three good pairs alone are little to judge the noise by.
#[test]
fn four_hosts_are_enough() {
    let mut noise = Noise::new(FRESH + 4);
    for (rails, known) in [(1, 0.0), (1, 0.02), (2, 0.0), (2, 0.02)] {
        let setting = Setting { directed: true, noise: known, ..Setting::default() };
        let (mut hosts, mut paths) = (0, 0);
        for _ in 0..TRIALS {
            let slow = Part::Host(2, Way::Both);
            let mut cluster = Cluster { rails, glitches: 0.0, ..Cluster::healthy(4, 3, 0.02) };
            cluster.faults = vec![(slow.clone(), 0.5)];
            let pairs = cluster.run(&mut noise);
            hosts += usize::from(confirmed(&cluster, &setting, &pairs, &mut noise).0 == BTreeSet::from([slow]));
            let port = |host| Port { host, rail: 0 };
            let path = |part: &Part| match part {
                Part::Link(a, b, _) => rails == 1 && (*a.min(b), *a.max(b)) == (port(1), port(3)),
                other => rails > 1 && *other == Part::Hosts(1, 3),
            };
            cluster.faults = vec![(Part::Hosts(1, 3), 0.5)];
            let pairs = cluster.run(&mut noise);
            let names = confirmed(&cluster, &setting, &pairs, &mut noise).0;
            paths += usize::from(names.len() == 1 && names.iter().all(path));
        }
        println!(
            "4 hosts, {rails} rails, noise known {}: host alone {hosts}, path alone {paths} of {TRIALS}",
            known > 0.0
        );
        let least = if known > 0.0 { 0.97 } else { 0.9 } * TRIALS as f64;
        assert!(hosts as f64 >= least && paths as f64 >= least);
    }
}

/// Eight paths between each pair of ports, one of which is slow.
#[test]
fn one_slow_path_of_several_is_named() {
    let mut noise = Noise::new(FRESH + 8);
    let cluster = Cluster { glitches: 0.0, ..Cluster::healthy(8, 7, 0.01) };
    let mut pairs = Vec::new();
    for pair in cluster.run(&mut noise) {
        for path in 0..8 {
            let ends = (pair.from.host.min(pair.to.host), pair.from.host.max(pair.to.host));
            let slow = if ends == (2, 5) && path == 3 { 0.5_f64.ln() } else { 0.0 };
            pairs.push(Pair { path, value: cluster.measure(pair.from, pair.to, &mut noise) + slow, ..pair });
        }
    }
    let findings = localise(&pairs, &Setting::default()).unwrap();
    let port = |host| Port { host, rail: 0 };
    assert_eq!(findings.suspects.iter().filter(|suspect| !suspect.latent).count(), 1);
    assert_eq!(findings.suspects[0].part, Part::Paths(port(2), port(5), vec![3]));
    assert!((findings.suspects[0].effect - 0.5_f64.ln()).abs() < 0.05);
    assert_eq!(judge(&findings.suspects[0], &[], &Setting::default()), Judgement::Open { n: 0, doubt: Doubt::TooFew });
}

/// Neither the order of results, nor the numbers of hosts, nor the unit changes what is named.
#[test]
fn order_numbers_and_units_do_not_matter() {
    let mut noise = Noise::new(FRESH + 9);
    for _ in 0..20 {
        let mut cluster = Cluster::healthy(24, 6, 0.02);
        let bad: Vec<u32> = noise.choose(24, 2).into_iter().map(|h| h as u32).collect();
        cluster.faults = bad.iter().map(|&h| (Part::Host(h, Way::Both), 0.85)).collect();
        let pairs = cluster.run(&mut noise);
        let plain = localise(&pairs, &Setting::default()).unwrap();
        let renumber = |port: Port| Port { host: (port.host * 7 + 3) % 24, ..port };
        let mut other: Vec<Pair> = pairs
            .iter()
            .map(|p| Pair { from: renumber(p.from), to: renumber(p.to), path: 0, value: p.value + 2.5 })
            .collect();
        noise.shuffle(&mut other);
        let other = localise(&other, &Setting::default()).unwrap();
        let names = |findings: &Findings, map: &dyn Fn(Port) -> Port| -> BTreeSet<u32> {
            let hosts = findings.suspects.iter().filter_map(|s| match s.part {
                Part::Host(host, _) => Some(map(Port { host, rail: 0 }).host),
                _ => None,
            });
            hosts.collect()
        };
        assert_eq!(names(&plain, &renumber), names(&other, &|port| port));
        assert!(bad.iter().all(|h| names(&plain, &|port| port).contains(h)));
        let (a, b) = (&plain.suspects[0], &other.suspects[0]);
        assert!((a.effect - b.effect).abs() < 1e-9 && (a.z - b.z).abs() < 1e-6);
    }
}

#[test]
fn what_cannot_be_judged_is_said() {
    let port = |host| Port { host, rail: 0 };
    let pair = |a, b, value| Pair { from: port(a), to: port(b), path: 0, value };
    assert!(matches!(localise(&[pair(0, 1, 1.0)], &Setting::default()), Err(Refusal::TooFew { need: 4, got: 2 })));
    let broken = [pair(0, 1, 1.0), pair(2, 3, f64::NAN)];
    assert_eq!(localise(&broken, &Setting::default()), Err(Refusal::NotFinite { at: 1 }));
    let mut noise = Noise::new(1);
    let mut pairs = Cluster::healthy(16, 6, 0.01).run(&mut noise);
    // Host 40 has one partner only, and the pair is low: no judgement, and not a good one either.
    pairs.push(pair(40, 1, pairs[0].value - 0.5));
    let findings = localise(&pairs, &Setting::default()).unwrap();
    assert_eq!(findings.unjudged, [port(40)]);
    let groups = [0, 1];
    assert!(localise(&pairs, &Setting { groups: &groups, ..Setting::default() }).is_err());
}

/// 512 hosts with 8 rails, 6 rounds. `bench/analysis` holds the time of it against its bar.
#[test]
fn faults_among_twelve_thousand_pairs_are_suspects() {
    let groups: Vec<u32> = (0..512).map(|h| h / 32).collect();
    let mut noise = Noise::new(3);
    let port = |host, rail| Port { host, rail };
    let forty = (0..40).map(|i| (Part::Nic(port(i * 12, i % 8), Way::Both), 0.9)).collect();
    let two = vec![(Part::Host(3, Way::Both), 0.7), (Part::Nic(port(99, 2), Way::Send), 0.5)];
    for faults in [vec![], two, vec![(Part::Group(3), 0.5)], forty] {
        let cluster = Cluster { rails: 8, leaf: 32, faults, ..Cluster::healthy(512, 6, 0.02) };
        let pairs = cluster.run(&mut noise);
        let setting = Setting { groups: &groups, directed: true, ..Setting::default() };
        let start = on_cpu();
        let findings = localise(&pairs, &setting).unwrap();
        let wanted = probes(&pairs, &findings, &setting);
        let took = on_cpu() - start;
        println!("{} pairs, {} suspects, {} probes: {took:.1?}", pairs.len(), findings.suspects.len(), wanted.len());
        let named = |part: &Part| findings.suspects.iter().any(|suspect| suspect.part == *part);
        assert!(cluster.faults.iter().all(|(part, _)| named(part)), "a fault is no suspect");
    }
}

#[test]
fn a_rail_with_a_good_pair_is_not_what_two_slow_hosts_of_four_are() {
    // Five of the six pairs of each rail are low; both hosts have none that is good.
    let mut noise = Noise::new(FRESH ^ 4);
    let slow = [Part::Host(1, Way::Both), Part::Host(3, Way::Both)];
    for _ in 0..TRIALS {
        let faults = slow.iter().map(|part| (part.clone(), 0.5)).collect();
        let cluster = Cluster { rails: 2, glitches: 0.0, faults, ..Cluster::healthy(4, 3, 0.005) };
        let findings = localise(&cluster.run(&mut noise), &Setting::default()).unwrap();
        let named: BTreeSet<Part> = findings.suspects.iter().map(|suspect| suspect.part.clone()).collect();
        assert_eq!(named, BTreeSet::from(slow.clone()));
    }
}

#[test]
fn one_good_pair_among_many_low_ones_is_told() {
    let mut noise = Noise::new(FRESH ^ 5);
    for hosts in [8, 12] {
        for _ in 0..TRIALS {
            let faults = (2..hosts).map(|host| (Part::Host(host, Way::Both), 0.5)).collect();
            let cluster = Cluster { glitches: 0.0, faults, ..Cluster::healthy(hosts, hosts as usize - 1, 0.005) };
            let pairs = cluster.run(&mut noise);
            let findings = localise(&pairs, &Setting::default()).unwrap();
            // All others are named, or nothing separates them.
            let Some(found) = findings.two_clusters else {
                assert_eq!(findings.suspects.iter().filter(|suspect| !suspect.latent).count() as u32, hosts - 2);
                continue;
            };
            let good = pairs.iter().zip(&found.is_good).filter(|(_, good)| **good == Some(true));
            let good: Vec<u32> = good.map(|(pair, _)| pair.from.host + pair.to.host).collect();
            // Of hosts 0 and 1.
            assert_eq!(good, [1], "{hosts}");
        }
    }
}

/// No schedule has such pairs, but whoever writes a journal by hand may.
#[test]
fn pairs_of_a_host_with_itself_are_no_trouble() {
    let port = |host| Port { host, rail: 0 };
    let pair = |from: u32, to: u32, value| Pair { from: port(from), to: port(to), path: 0, value };
    let slow = |from, to| if from == 0 || to == 0 { -1.0 } else { 0.0 };
    let others = (0..6).flat_map(|from| (0..6).filter(move |to| *to != from).map(move |to| (from, to)));
    let mut pairs: Vec<Pair> = others.map(|(from, to)| pair(from, to, slow(from, to))).collect();
    pairs.push(pair(0, 0, -1.0));
    pairs.push(Pair { from: port(0), to: Port { host: 0, rail: 1 }, path: 0, value: -1.0 });
    let found = localise(&pairs, &Setting::default()).unwrap();
    assert!(found.suspects.iter().any(|suspect| suspect.part == Part::Host(0, Way::Both)), "{:?}", found.suspects);
}
