//! What no single host or switch of the plan explains: a trunk that no plan names, ways slow at random, most rails, a fast host.

use railgauge_stats::localise::{Part, Way};

use super::{
    Cluster, Said, at_once,
    cluster::{Pattern, Trunk},
};
use crate::{
    noise::Kind,
    row::{Bar, Options, Row},
};

const KINDS: [Kind; 4] = [Kind::Normal, Kind::Heavy, Kind::LeftSkewed(0.5), Kind::RightSkewed(0.7)];

pub(super) fn rows(options: &Options) -> Vec<Row> {
    let parts = [trunk, trunk_in_ring, shared_trunk, random, most_rails, fast, between_only];
    at_once(&parts, |part| part(options))
}

/// Whether a host is named, or a NIC of one, but for those that are faulty.
pub(super) fn names_an_end(said: &Said, but: &[Part]) -> bool {
    said.named.iter().any(|name| name.part.is_end() && !but.iter().any(|part| name.may_be(part)))
}

/// What lies between two sides of the hosts is slow, and the plan has no groups, or others.
fn trunk(options: &Options) -> Vec<Row> {
    at_once(&[(false, "without groups"), (true, "with other groups")], |&(grouped, what)| {
        let mut rows = Vec::new();
        let (mut named, mut described, mut runs) = (0, 0, 0);
        for run in 0..options.runs(300) {
            let hosts = [8, 12, 16, 24, 32, 64][run % 6];
            let rails = [1, 1, 2, 4][run / 6 % 4];
            let factor = [0.95, 0.9, 0.8, 0.5][run / 3 % 4];
            let sigma = [0.005, 0.01][run / 5 % 2];
            let seed = options.seed + 179_424_673 * run as u64 + u64::from(grouped);
            let mut cluster = Cluster::new(seed, hosts, rails, KINDS[run / 2 % 4], sigma);
            if grouped {
                cluster.leaves(4);
            }
            let size = [hosts / 2, hosts / 4, hosts / 3][run / 7 % 3];
            let mut side = cluster.choose(hosts, size as usize);
            side.sort_unstable();
            cluster.faults = vec![(Part::Cut(side.clone()), factor, 1.0)];
            // A leaf of the plan is no other side.
            if grouped && side.iter().all(|host| host * 4 / hosts == side[0] * 4 / hosts) {
                continue;
            }
            let said = cluster.run([usize::MAX, 8, 6][run % 3], true);
            runs += 1;
            named += usize::from(names_an_end(&said, &[]));
            let other: Vec<u32> = (0..hosts).filter(|host| !side.contains(host)).collect();
            let is = |part: &Part| *part == Part::Cut(side.clone()) || *part == Part::Cut(other.clone());
            described += usize::from(said.named.iter().any(|name| is(&name.part) || name.alternatives.iter().any(is)));
        }
        let what = format!("explained, a slow trunk {what}");
        rows.push(Row::share(format!("{what}: a healthy host named"), named, runs, Bar::AtMost(0.01)));
        rows.push(Row::share(format!("{what}: described"), described, runs, Bar::AtLeast(0.95)));
        rows
    })
}

/// A trunk between halves of neighbours. A ring passes it twice: too few to describe it, and its four hosts are good.
fn trunk_in_ring(options: &Options) -> Vec<Row> {
    let runs = options.runs(200);
    let named = (0..runs).filter(|&run| {
        let hosts = [8, 10, 14, 16, 24, 32][run % 6];
        let mut cluster = Cluster::new(options.seed + 32_452_843 * run as u64, hosts, 1, KINDS[run / 2 % 4], 0.01);
        cluster.pattern = Pattern::Ring;
        cluster.faults = vec![(Part::Cut((0..hosts / 2).collect()), [0.9, 0.7, 0.5][run % 3], 1.0)];
        names_an_end(&cluster.run(0, true), &[])
    });
    let what = "explained, a slow trunk that two links of a ring pass: a healthy host named";
    vec![Row::share(what, named.count(), runs, Bar::AtMost(0.01))]
}

/// Two sides of hosts, and between them a trunk that all pairs of a round share unequally: a quarter to half of what its flows would
/// take.
fn shared_trunk(options: &Options) -> Vec<Row> {
    at_once(&[4, 6, 8, 16], |&hosts| {
        let mut rows = Vec::new();
        for (grouped, rounds) in [(false, 3), (true, 3), (false, 6), (true, 6)] {
            let what = if grouped { "with its groups" } else { "without groups" };
            let (mut named, mut described, runs) = (0, 0, options.runs(150));
            for run in 0..runs {
                let pick = |of: [f64; 3]| of[run % 3];
                let (rails, sigma) = ([1, 2][run / 4 % 2], [0.005, 0.01, 0.02][run / 3 % 3]);
                let seed =
                    options.seed + 275_604_541 * run as u64 + u64::from(hosts + u32::from(grouped)) + rounds as u64;
                let mut cluster = Cluster::new(seed, hosts, rails, KINDS[run % 4], sigma);
                let side: Vec<u32> = (hosts / 2..hosts).collect();
                if grouped {
                    cluster.leaves(2);
                }
                let crossing = f64::from(rails * hosts * hosts) / f64::from(4 * (hosts - 1));
                let carries = pick([0.25, 0.35, 0.5]) * crossing;
                let uneven = [0.2, 0.35, 0.5][run / 5 % 3];
                cluster.trunk = Some(Trunk { side: side.clone(), carries, uneven });
                let said = cluster.run(rounds, true);
                named += usize::from(names_an_end(&said, &[]));
                let is = |part: &Part| match part {
                    Part::Cut(of) => *of == side,
                    Part::Boundary(..) | Part::Uplink(..) => true,
                    _ => false,
                };
                let named = said.named.iter().any(|name| is(&name.part));
                described += usize::from(named || said.open.iter().any(|(part, _)| is(part)));
            }
            let what = format!("explained, a shared trunk, {hosts} hosts {what}, {rounds} rounds");
            rows.push(Row::share(format!("{what}: a healthy host named"), named, runs, Bar::AtMost(0.01)));
            rows.push(Row::share(format!("{what}: described"), described, runs, Bar::AtLeast(0.95)));
        }
        rows
    })
}

/// A share of all ways is slow, whichever their ends.
fn random(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for share in [0.1, 0.3, 0.5, 0.6] {
        let (mut named, mut silent, runs) = (0, 0, options.runs(200));
        for run in 0..runs {
            let hosts = [8, 16, 24, 32][run % 4];
            let rails = [1, 2, 4][run / 4 % 3];
            let seed = options.seed + 198_491_317 * run as u64 + (100.0 * share) as u64;
            let sigma = [0.005, 0.01, 0.02][run / 3 % 3];
            let mut cluster = Cluster::new(seed, hosts, rails, KINDS[run / 2 % 4], sigma);
            cluster.random = Some((share, [0.8, 0.7, 0.5][run / 12 % 3]));
            let said = cluster.run([usize::MAX, 6][run / 5 % 2], true);
            named += usize::from(names_an_end(&said, &[]));
            silent += usize::from(said.is_nothing());
        }
        let what = format!("explained, {share} of all ways slow");
        rows.push(Row::share(format!("{what}: a healthy host named"), named, runs, Bar::AtMost(0.01)));
        rows.push(Row::share(format!("{what}: nothing said"), silent, runs, Bar::AtMost(0.05)));
    }
    rows
}

fn most_rails(options: &Options) -> Vec<Row> {
    let (mut right, mut wrong, runs) = (0, 0, options.runs(200));
    for run in 0..runs {
        let hosts = [8, 16, 32][run % 3];
        let rails = [4, 8][run / 3 % 2];
        let slow = 1 + (run / 6) as u32 % (rails - 1);
        let seed = options.seed + 217_645_177 * run as u64;
        let mut cluster = Cluster::new(seed, hosts, rails, KINDS[run / 2 % 4], [0.005, 0.01][run / 4 % 2]);
        let parts: Vec<Part> = cluster.choose(rails, slow as usize).into_iter().map(Part::Rail).collect();
        cluster.faults = parts.iter().map(|part| (part.clone(), [0.9, 0.8, 0.5][run / 5 % 3], 1.0)).collect();
        let said = cluster.run([usize::MAX, 6][run / 7 % 2], true);
        right += usize::from(parts.iter().all(|part| said.names(part)) && said.named.len() == parts.len());
        wrong += usize::from(said.named.iter().any(|name| !parts.iter().any(|part| name.may_be(part))));
    }
    vec![
        Row::share("explained, some of 4 or 8 rails slow: those named", right, runs, Bar::AtLeast(0.95)),
        Row::share("explained, some of 4 or 8 rails slow: a wrong name", wrong, runs, Bar::AtMost(0.01)),
    ]
}

fn fast(options: &Options) -> Vec<Row> {
    let (mut wrong, runs) = (0, options.runs(200));
    for run in 0..runs {
        let hosts = [6, 8, 16, 32][run % 4];
        let seed = options.seed + 236_887_691 * run as u64;
        let mut cluster =
            Cluster::new(seed, hosts, [1, 2][run / 4 % 2], KINDS[run / 2 % 4], [0.005, 0.01][run / 8 % 2]);
        let host = cluster.below(hosts);
        cluster.fast = Some((Part::Host(host, Way::Both), [1.05, 1.1, 1.25, 2.0][run / 3 % 4]));
        let said = cluster.run([usize::MAX, 6][run / 5 % 2], true);
        wrong += usize::from(!said.named.is_empty());
    }
    vec![Row::share("explained, one fast host: a name", wrong, runs, Bar::AtMost(0.01))]
}

/// A host is slow between leaves only, in both directions.
fn between_only(options: &Options) -> Vec<Row> {
    let (mut right, mut wrong, runs) = (0, 0, options.runs(200));
    for run in 0..runs {
        let hosts = [16, 32][run % 2];
        let seed = options.seed + 256_203_161 * run as u64;
        let mut cluster =
            Cluster::new(seed, hosts, 1 + (run / 2 % 2) as u32, KINDS[run / 2 % 4], [0.005, 0.01][run / 4 % 2]);
        cluster.leaves(4);
        cluster.only_between = true;
        let part = Part::Host(cluster.below(hosts), Way::Both);
        cluster.faults = vec![(part.clone(), [0.9, 0.8, 0.5][run / 3 % 3], 1.0)];
        let said = cluster.run([usize::MAX, 8][run / 5 % 2], true);
        right += usize::from(said.names(&part) && said.named.len() == 1);
        wrong += usize::from(said.named.iter().any(|name| !name.may_be(&part)));
    }
    vec![
        Row::share(
            "explained, a host slow between leaves only: named, both directions",
            right,
            runs,
            Bar::AtLeast(0.95),
        ),
        Row::share("explained, a host slow between leaves only: a wrong name", wrong, runs, Bar::AtMost(0.01)),
    ]
}
