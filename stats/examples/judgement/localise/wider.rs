//! The situations of `explained` with parameters drawn far beyond its lists: 2 to 64 hosts, 1 to 8 rails, tournaments, random rounds, rings
//! and two sides; noise of six kinds.

use railgauge_stats::localise::{Part, Way};

use super::{
    at_once,
    cluster::{Cluster, Pattern},
    explained::names_an_end,
};
use crate::{
    noise::Kind,
    row::{Bar, Options, Row},
};

const KINDS: [Kind; 5] = [Kind::Normal, Kind::Heavy, Kind::RightSkewed(0.7), Kind::LeftSkewed(0.5), Kind::Bimodal(4.0)];
/// Which hosts measure each other, and in how many rounds.
const PATTERNS: [(Pattern, usize); 4] =
    [(Pattern::Rounds, usize::MAX), (Pattern::Rounds, 6), (Pattern::Ring, 0), (Pattern::Bipartite, 0)];

pub fn rows(options: &Options) -> Vec<Row> {
    let parts = [random, rails, fast, between_only, designed, healthy];
    at_once(&parts, |part| part(options))
}

/// A cluster with parameters that the seed of a run decides, and its rounds.
fn cluster(options: &Options, run: usize, salt: u64, hosts: &[u32], rails: &[u32]) -> (Cluster, u32, u32, usize) {
    let mut dice = Cluster::new(options.seed + 275_604_541 * run as u64 + 86_028_157 * salt, 1, 1, Kind::Normal, 1.0);
    let mut pick = |n: usize| dice.below(n as u32) as usize;
    let hosts = hosts[pick(hosts.len())];
    // Large clusters with many rails take long; fewer rails say the same.
    let rails = rails[pick(rails.len())].min((512 / hosts).max(1));
    let (kind, sigma) = (KINDS[pick(KINDS.len())], [0.005, 0.01][pick(2)]);
    let (pattern, rounds) = PATTERNS[pick(PATTERNS.len())];
    let mut cluster = Cluster::new(options.seed + 295_075_153 * run as u64 + salt, hosts, rails, kind, sigma);
    cluster.pattern = pattern;
    if pick(4) == 0 {
        cluster.noisy = (0..hosts).map(|_| 1.0 + pick(3) as f64).collect();
    }
    (cluster, hosts, rails, rounds)
}

/// V2: a share of all ways is slow, whichever their ends.
fn random(options: &Options) -> Vec<Row> {
    let row = |(number, share): (u64, f64)| {
        let runs = options.runs(400);
        let named = (0..runs).filter(|&run| {
            let (mut cluster, _, _, rounds) =
                cluster(options, run, number, &[2, 3, 4, 6, 8, 16, 32, 64], &[1, 2, 4, 8]);
            cluster.random = Some((share, [0.9, 0.8, 0.5][run % 3]));
            let but = cluster.ends_without_a_good_way();
            names_an_end(&cluster.run(rounds, true), &but)
        });
        let what = format!("V2 wider, {share} of all ways slow: a healthy host named");
        Row::share(what, named.count(), runs, Bar::AtMost(0.01))
    };
    [0.1, 0.3, 0.5, 0.6].into_iter().enumerate().map(|(at, share)| row((at as u64, share))).collect()
}

/// V3: one to all but one of the rails are slow.
fn rails(options: &Options) -> Vec<Row> {
    let (mut right, mut wrong, runs) = (0, 0, options.runs(400));
    for run in 0..runs {
        let (mut cluster, _, rails, rounds) = cluster(options, run, 11, &[4, 6, 8, 16, 32, 64], &[4, 8]);
        let slow = 1 + cluster.below(rails - 1) as usize;
        let parts: Vec<Part> = cluster.choose(rails, slow).into_iter().map(Part::Rail).collect();
        cluster.faults = parts.iter().map(|part| (part.clone(), [0.9, 0.8, 0.5][run % 3], 1.0)).collect();
        let said = cluster.run(rounds, true);
        right += usize::from(parts.iter().all(|part| said.names(part)) && said.named.len() == parts.len());
        wrong += usize::from(said.named.iter().any(|name| !parts.iter().any(|part| name.may_be(part))));
    }
    vec![
        Row::share("V3 wider, some of the rails slow: those named", right, runs, Bar::AtLeast(0.95)),
        Row::share("V3 wider, some of the rails slow: a wrong name", wrong, runs, Bar::AtMost(0.01)),
    ]
}

/// V4: one host is faster than the others.
fn fast(options: &Options) -> Vec<Row> {
    let row = |(what, list): (&str, &[u32])| {
        let runs = options.runs(400);
        let named = (0..runs).filter(|&run| {
            let (mut cluster, hosts, _, rounds) = cluster(options, run, 13, list, &[1, 2, 4, 8]);
            let host = cluster.below(hosts);
            cluster.fast = Some((Part::Host(host, Way::Both), [1.05, 1.1, 1.25, 2.0][run % 4]));
            !cluster.run(rounds, true).named.is_empty()
        });
        Row::share(format!("V4 wider, one fast host of {what}: a name"), named.count(), runs, Bar::AtMost(0.01))
    };
    // Of four hosts half of the pairs pass the fast one.
    [("4", &[4][..]), ("6 to 64", &[6, 8, 16, 32, 64])].map(row).into()
}

/// V5: a host is slow between leaves only, in both directions.
fn between_only(options: &Options) -> Vec<Row> {
    let (mut right, mut wrong, mut of) = (0, 0, 0);
    for run in 0..options.runs(400) {
        let (mut cluster, hosts, _, rounds) = cluster(options, run, 17, &[8, 16, 32, 64], &[1, 2, 4, 8]);
        cluster.leaves([2, 4][run / 3 % 2]);
        cluster.only_between = true;
        let part = Part::Host(cluster.below(hosts), Way::Both);
        cluster.faults = vec![(part.clone(), [0.9, 0.8, 0.5][run % 3], 1.0)];
        let said = cluster.run(rounds, true);
        // In a ring a host has two pairs, at most one of which crosses leaves.
        if cluster.pattern == Pattern::Ring {
            continue;
        }
        of += 1;
        right += usize::from(said.names(&part) && said.named.len() == 1);
        wrong += usize::from(said.named.iter().any(|name| !name.may_be(&part)));
    }
    vec![
        Row::share("V5 wider, a host slow between leaves only: named, both directions", right, of, Bar::AtLeast(0.95)),
        Row::share("V5 wider, a host slow between leaves only: a wrong name", wrong, of, Bar::AtMost(0.01)),
    ]
}

/// V7: what leads from one leaf to another carries a fifth less by design. Values do not show a design, so the boundary may be named, but
/// no part of either leaf.
fn designed(options: &Options) -> Vec<Row> {
    let (mut wrong, mut boundary, mut tested, mut of) = (0, 0, 0, 0);
    for run in 0..options.runs(400) {
        let leaves = [2, 3, 4, 8][run % 4];
        let (mut cluster, _, _, rounds) = cluster(options, run, 19, &[8, 16, 32, 64], &[1, 2, 4, 8]);
        cluster.leaves(leaves);
        let part = Part::Boundary(0, 1, Way::Both);
        cluster.faults = vec![(part.clone(), 0.8, 1.0)];
        let said = cluster.run(rounds, true);
        if cluster.tests_of(&part) < 3 {
            continue;
        }
        tested += 1;
        wrong += usize::from(said.named.iter().any(|name| !name.may_be(&part)));
        // Where all pairs pass the same part no value shows what is good.
        if !cluster.shows_good(false) && !cluster.shows_good(true) {
            continue;
        }
        of += 1;
        boundary += usize::from(said.names(&part) && said.named.len() == 1);
    }
    vec![
        Row::share("V7 wider, a fifth less between two leaves: the boundary", boundary, of, Bar::AtLeast(0.95)),
        Row::share("V7 wider, a fifth less between two leaves: another name", wrong, tested, Bar::AtMost(0.01)),
    ]
}

fn healthy(options: &Options) -> Vec<Row> {
    let runs = options.runs(800);
    let named = (0..runs).filter(|&run| {
        let (mut cluster, _, _, rounds) = cluster(options, run, 23, &[2, 3, 4, 6, 8, 16, 32, 64], &[1, 2, 4, 8]);
        !cluster.run(rounds, true).named.is_empty()
    });
    vec![Row::share("wider, healthy: a name", named.count(), runs, Bar::AtMost(0.01))]
}
