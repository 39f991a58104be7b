//! Fabrics that carry less between leaves than within them: an end that is capped costs the lesser of its cap and the way.

use railgauge_stats::localise::{Part, Port, Way};

use super::{Score, at_once, cluster::Cluster};
use crate::{
    noise::Kind,
    row::{Bar, Options, Row},
};

const LEAF: u32 = 4;
const HALF: f64 = 0.5;
/// Rounds of the screen; the last is every pair.
const ROUNDS: [(usize, &str); 3] = [(3, "3 rounds"), (6, "6 rounds"), (usize::MAX, "every pair")];

pub fn rows(options: &Options) -> Vec<Row> {
    let parts = [capped, two_shared, healthy];
    at_once(&parts, |part| part(options))
}

/// A cluster with 4 to 6 leaves of four hosts.
fn cluster(options: &Options, run: usize, salt: u64, rails: u32, taper: f64) -> (Cluster, u32) {
    let leaves = 4 + (run % 3) as u32;
    let sigma = [0.005, 0.01, 0.02][run / 3 % 3];
    let seed = options.seed + 141_650_939 * run as u64 + 7_368_787 * salt;
    let mut cluster = Cluster::new(seed, LEAF * leaves, rails, Kind::Normal, sigma);
    cluster.leaves(leaves);
    cluster.between = taper;
    cluster.caps = true;
    // A switch with fewer links up than down gives less only beside other traffic; slower links do so always.
    cluster.always = (run / 9).is_multiple_of(2);
    (cluster, leaves)
}

/// One host's NIC, or all of its NICs, reach half of what pairs within a leaf do.
fn capped(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, taper) in [0.5, 0.6, 0.8].into_iter().enumerate() {
        for (rounds, words) in ROUNDS {
            let mut score = Score::default();
            for run in 0..options.runs(180) {
                let rails = 1 + (run / 18 % 2) as u32;
                let (mut cluster, leaves) = cluster(options, run, number as u64, rails, taper);
                let host = cluster.below(LEAF * leaves);
                let part = match rails {
                    2 if run / 36 % 2 == 0 => Part::Nic(Port { host, rail: 1 }, Way::Both),
                    _ => Part::Host(host, Way::Both),
                };
                cluster.faults = vec![(part.clone(), HALF, 1.0)];
                let said = cluster.run(rounds, true);
                // Where the way is as narrow as the cap only pairs within the leaf show it.
                if taper > HALF || cluster.is_tested_within(&part) && cluster.shows_good(false) {
                    score.count(&said, &[part]);
                }
            }
            score.rows(&format!("capped end, {taper} between leaves, {words}"), 0.95, &mut rows);
        }
    }
    rows
}

/// Two leaves, their uplinks, or their uplinks on one rail are slow.
fn two_shared(options: &Options) -> Vec<Row> {
    at_once(&[(0, "leaves"), (1, "uplinks"), (2, "uplinks of one rail")], |&(kind, what)| {
        let mut rows = Vec::new();
        for (rounds, words) in ROUNDS {
            let mut score = Score::default();
            for run in 0..options.runs(180) {
                let taper = [0.8, 0.6, 1.0][run / 18 % 3];
                let rails = if kind == 2 { 2 } else { 1 + (run / 36 % 2) as u32 };
                let (mut cluster, leaves) = cluster(options, run, 11 + kind, rails, taper);
                // With two of four uplinks bad nearly all pairs between leaves are low.
                let two = cluster.choose(leaves, 2);
                let parts: Vec<Part> = two
                    .iter()
                    .map(|&group| match kind {
                        0 => Part::Group(group),
                        1 => Part::Uplink(group, Way::Both),
                        _ => Part::GroupRail { group, rail: 0 },
                    })
                    .collect();
                let rate = if kind == 0 { HALF } else { HALF * taper };
                cluster.faults = parts.iter().map(|part| (part.clone(), rate, 1.0)).collect();
                cluster.only_between = kind == 2;
                let said = cluster.run(rounds, true);
                // Where all that crosses leaves is low it may as well be the fabric.
                if cluster.shows_good(true) {
                    score.count(&said, &parts);
                }
            }
            score.rows(&format!("two slow {what} of 4 to 6, {words}"), 0.95, &mut rows);
        }
        rows
    })
}

fn healthy(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for (rounds, words) in ROUNDS {
        let (mut wrong, mut open, runs) = (0, 0, options.runs(360));
        for run in 0..runs {
            let taper = [0.5, 0.6, 0.8][run / 18 % 3];
            let (mut cluster, _) = cluster(options, run, 23, 1 + (run / 54 % 2) as u32, taper);
            let said = cluster.run(rounds, true);
            wrong += usize::from(!said.named.is_empty());
            open += usize::from(!said.is_nothing());
        }
        rows.push(Row::share(
            format!("localise, healthy, tapered, {words}: a false name"),
            wrong,
            runs,
            Bar::AtMost(0.01),
        ));
        rows.push(Row::share(format!("localise, healthy, tapered, {words}: left open"), open, runs, Bar::AtMost(0.05)));
    }
    rows
}
