//! Rates of `localise`: what is named, and what is said instead, on clusters that are drawn here.

mod cluster;
mod explained;
mod one_way;
mod taper;
pub mod wider;

use railgauge_stats::localise::{Part, Port, Way};

use crate::{
    noise::Kind,
    row::{Bar, Options, Row},
};
use cluster::{Cluster, Said};

pub fn rows(options: &Options) -> Vec<Row> {
    let parts: [fn(&Options) -> Vec<Row>; 11] = [
        explained::rows,
        few_leaves,
        one_of_few,
        one_way::rows,
        large,
        most_low,
        healthy,
        intermittent,
        every_kind,
        mild,
        taper::rows,
    ];
    at_once(&parts, |part| part(options))
}

/// The rows of several kinds, measured at the same time.
fn at_once<T: Sync>(kinds: &[T], measure: impl Fn(&T) -> Vec<Row> + Sync) -> Vec<Row> {
    std::thread::scope(|scope| {
        let running: Vec<_> = kinds.iter().map(|kind| scope.spawn(|| measure(kind))).collect();
        let rows = |kind: std::thread::ScopedJoinHandle<'_, _>| {
            kind.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().flat_map(rows).collect()
    })
}

/// Counts of runs.
#[derive(Default)]
struct Score {
    /// The right part was named, alone, or as one of several that pairs cannot tell apart.
    right: usize,
    nothing: usize,
    wrong: usize,
    /// Runs.
    of: usize,
}

impl Score {
    fn count(&mut self, said: &Said, truth: &[Part]) {
        self.of += 1;
        let right = truth.iter().all(|part| said.names(part)) && said.named.len() == truth.len();
        self.right += usize::from(right);
        self.nothing += usize::from(said.is_nothing());
        self.wrong += usize::from(said.named.iter().any(|named| !truth.iter().any(|part| named.may_be(part))));
    }

    /// Rows of what must be said of a fault.
    fn rows(self, what: &str, at_least: f64, rows: &mut Vec<Row>) {
        rows.push(Row::share(format!("localise, {what}: named"), self.right, self.of, Bar::AtLeast(at_least)));
        rows.push(Row::share(format!("localise, {what}: nothing said"), self.nothing, self.of, Bar::AtMost(0.0)));
        rows.push(Row::share(format!("localise, {what}: a wrong name"), self.wrong, self.of, Bar::AtMost(0.01)));
    }
}

/// One group, its uplink or a boundary is slow: 2 to 8 leaves, 16 to 128 hosts, 1 to 8 rails.
fn few_leaves(options: &Options) -> Vec<Row> {
    at_once(&[2, 3, 4, 5, 6, 8], |&leaves| {
        let mut rows = Vec::new();
        for (kind, what) in [(0, "leaf"), (1, "uplink"), (2, "boundary")] {
            let mut score = Score::default();
            let runs = options.runs(200);
            for run in 0..runs {
                let pick = |of: &[f64]| of[run % of.len()];
                let hosts = [16, 24, 32, 64, 128][run / 3 % 5];
                let rails = [1, 1, 2, 8][run / 15 % 4];
                // Large clusters with many rails take long; one rail of them says the same.
                let rails = if hosts * rails > 256 { 1 } else { rails };
                let sigma = [0.005, 0.01, 0.02][run / 2 % 3];
                let factor = 1.0 - pick(&[0.1, 0.2, 0.5]);
                let mut cluster = Cluster::new(
                    options.seed + 7919 * run as u64 + leaves + 31 * kind,
                    hosts,
                    rails,
                    Kind::Normal,
                    sigma,
                );
                cluster.leaves(leaves as u32);
                // Half of the fabrics have less between leaves than within them, which is no fault.
                if run % 2 == 1 && leaves > 2 {
                    cluster.between = 0.8;
                }
                let leaf = cluster.below(leaves as u32);
                let other = (leaf + 1 + cluster.below(leaves as u32 - 1)) % leaves as u32;
                let part = match kind {
                    0 => Part::Group(leaf),
                    1 => Part::Uplink(leaf, Way::Both),
                    _ => Part::Boundary(leaf.min(other), leaf.max(other), Way::Both),
                };
                cluster.faults = vec![(part.clone(), factor, 1.0)];
                let rounds = if run % 4 == 0 { usize::MAX } else { 6 };
                let said = cluster.run(rounds, true);
                // Six rounds may cross none of few pairs between two leaves.
                if !cluster.is_tested(&part) {
                    continue;
                }
                score.count(&said, &[part]);
            }
            score.rows(&format!("{leaves} leaves, slow {what}"), 0.95, &mut rows);
        }
        rows
    })
}

/// One leaf of many is 20 % slow in a large cluster with eight rails.
fn large(options: &Options) -> Vec<Row> {
    let mut score = Score::default();
    for run in 0..options.runs(20).min(20) {
        let leaves = [16, 32][run % 2];
        let mut cluster = Cluster::new(options.seed + 86_028_121 * run as u64, 512, 8, Kind::Normal, 0.02);
        cluster.leaves(leaves);
        if run / 2 % 2 == 1 {
            cluster.between = 0.8;
        }
        let part = Part::Group(cluster.below(leaves));
        cluster.faults = vec![(part.clone(), 0.8, 1.0)];
        let said = cluster.run([6, 12][run / 4 % 2], true);
        score.count(&said, &[part]);
    }
    let mut rows = Vec::new();
    score.rows("512 hosts, 8 rails, one of 16 or 32 leaves slow", 0.95, &mut rows);
    rows
}

/// One host of few is slow, and its results may scatter more than those of the others.
fn one_of_few(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for hosts in [4, 5, 6] {
        for (noisy, what) in [(1.0, ""), (4.0, " and noisier")] {
            let mut score = Score::default();
            for run in 0..options.runs(200) {
                let seed = options.seed + 122_949_823 * run as u64 + u64::from(hosts);
                let sigma = [0.002, 0.005, 0.01][run % 3];
                let mut cluster = Cluster::new(seed, hosts, 1 + (run / 9 % 2) as u32, Kind::Normal, sigma);
                let host = cluster.below(hosts);
                let part = Part::Host(host, Way::Both);
                cluster.noisy = (0..hosts).map(|other| if other == host { noisy } else { 1.0 }).collect();
                cluster.faults = vec![(part.clone(), [0.7, 0.5, 0.2][run / 3 % 3], 1.0)];
                let said = cluster.run(usize::MAX, true);
                score.count(&said, &[part]);
            }
            score.rows(&format!("one of {hosts} hosts slow{what}"), 0.95, &mut rows);
        }
    }
    rows
}

/// So many hosts are slow that most pairs are.
fn most_low(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for (bad, hosts) in [(2, 4), (3, 8), (5, 16), (9, 32)] {
        let mut score = Score::default();
        for run in 0..options.runs(200) {
            let sigma = [0.005, 0.01, 0.02][run % 3];
            // Few pairs show what stands out by ten standard deviations.
            let factor = if hosts <= 8 && sigma > 0.01 { 0.8 } else { [0.9, 0.8, 0.5][run / 3 % 3] };
            let mut cluster = Cluster::new(
                options.seed + 104_729 * run as u64 + hosts as u64,
                hosts,
                1 + (run % 2) as u32,
                Kind::Normal,
                sigma,
            );
            let parts: Vec<Part> =
                cluster.choose(hosts, bad).into_iter().map(|host| Part::Host(host, Way::Both)).collect();
            cluster.faults = parts.iter().map(|part| (part.clone(), factor, 1.0)).collect();
            let said = cluster.run(usize::MAX, true);
            score.count(&said, &parts);
        }
        score.rows(&format!("{bad} of {hosts} hosts slow"), 0.95, &mut rows);
    }
    rows
}

fn healthy(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    let kinds = [
        ("normal", Kind::Normal),
        ("heavy-tailed", Kind::Heavy),
        ("dipping", Kind::Dips),
        ("left-skewed", Kind::LeftSkewed(0.5)),
        ("very left-skewed", Kind::LeftSkewed(1.0)),
        ("right-skewed", Kind::RightSkewed(0.7)),
        ("bimodal", Kind::Bimodal(5.0)),
    ];
    for (what, kind) in kinds {
        let (mut wrong, mut open, runs) = (0, 0, options.runs(400));
        for run in 0..runs {
            let (hosts, rails, leaves) =
                [(4, 1, 1), (8, 1, 2), (16, 2, 2), (24, 1, 3), (32, 2, 4), (64, 1, 8), (64, 4, 4), (16, 8, 2)][run % 8];
            let sigma = [0.005, 0.01, 0.02, 0.03][run / 8 % 4];
            let mut cluster = Cluster::new(options.seed + 15_485_863 * run as u64, hosts, rails, kind, sigma);
            if leaves > 1 {
                cluster.leaves(leaves);
            }
            if run % 3 == 0 && leaves > 2 {
                cluster.between = 0.7;
            }
            let said = cluster.run(if run % 2 == 0 { 6 } else { usize::MAX }, true);
            wrong += usize::from(!said.named.is_empty());
            open += usize::from(!said.is_nothing());
        }
        rows.push(Row::share(format!("localise, healthy, {what} noise: a false name"), wrong, runs, Bar::AtMost(0.01)));
        // Noise in two states, and noise whose tail reaches ten standard deviations, leave paths open.
        if !matches!(kind, Kind::Bimodal(_) | Kind::LeftSkewed(1.0)) {
            rows.push(Row::share(format!("localise, healthy, {what} noise: left open"), open, runs, Bar::AtMost(0.05)));
        }
    }
    rows
}

/// A host is bad in a share of its results.
fn intermittent(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for share in [0.5, 0.7] {
        let (mut named, mut wrong, runs) = (0, 0, options.runs(200));
        for run in 0..runs {
            let hosts = [8, 16, 32, 64][run % 4];
            let (sigma, factor) = ([0.01, 0.02][run / 4 % 2], [0.8, 0.5][run / 8 % 2]);
            let mut cluster = Cluster::new(
                options.seed + 32_452_843 * run as u64,
                hosts,
                1 + (run / 16 % 2) as u32,
                Kind::Normal,
                sigma,
            );
            let host = cluster.below(hosts);
            let part = Part::Host(host, Way::Both);
            cluster.faults = vec![(part.clone(), factor, share)];
            let said = cluster.run([6, usize::MAX][run % 2], true);
            let right = said.names(&part) && said.named.len() == 1;
            named += usize::from(right);
            wrong += usize::from(said.named.iter().any(|named| !named.may_be(&part)));
        }
        rows.push(Row::share(
            format!("localise, host bad in {share} of its results: named"),
            named,
            runs,
            Bar::AtLeast(0.9),
        ));
        rows.push(Row::share(
            format!("localise, host bad in {share} of its results: another name"),
            wrong,
            runs,
            Bar::AtMost(0.05),
        ));
    }
    rows
}

/// Each kind of part, 20 % slow, under eight leaves with eight rails.
fn every_kind(options: &Options) -> Vec<Row> {
    let port = |host, rail| Port { host, rail };
    let classes: [(&str, Vec<Part>); 14] = [
        ("host", vec![Part::Host(13, Way::Both)]),
        ("host, sending", vec![Part::Host(13, Way::Send)]),
        ("host, receiving", vec![Part::Host(13, Way::Receive)]),
        ("NIC", vec![Part::Nic(port(13, 5), Way::Both)]),
        ("NIC, sending", vec![Part::Nic(port(13, 5), Way::Send)]),
        ("rail", vec![Part::Rail(3)]),
        ("group", vec![Part::Group(2)]),
        ("group and rail", vec![Part::GroupRail { group: 2, rail: 3 }]),
        ("uplink", vec![Part::Uplink(2, Way::Both)]),
        ("boundary", vec![Part::Boundary(2, 5, Way::Both)]),
        ("path", vec![Part::Link(port(3, 1), port(44, 1), Way::Both)]),
        ("hosts' path", vec![Part::Hosts(3, 44)]),
        ("two hosts", vec![Part::Host(13, Way::Both), Part::Host(40, Way::Both)]),
        ("host and NIC", vec![Part::Host(13, Way::Both), Part::Nic(port(40, 2), Way::Both)]),
    ];
    at_once(&classes, |(what, parts)| {
        let mut rows = Vec::new();
        let mut score = Score::default();
        for run in 0..options.runs(40).min(40) {
            let mut cluster = Cluster::new(options.seed + 49_979_687 * run as u64, 64, 8, Kind::Normal, 0.02);
            cluster.leaves(8);
            cluster.faults = parts.iter().map(|part| (part.clone(), 0.8, 1.0)).collect();
            // Every pair both ways: six rounds do not tell every direction and path.
            let said = cluster.run(16, true);
            let tested = parts.iter().all(|part| cluster.is_tested(part));
            if tested {
                score.count(&said, parts);
            }
        }
        score.rows(&format!("{what} of 64 hosts, 8 rails, 8 leaves"), 0.97, &mut rows);
        rows
    })
}

/// 3 and 5 % at 1 % noise.
fn mild(options: &Options) -> Vec<Row> {
    let port = |host, rail| Port { host, rail };
    let classes: [(&str, Vec<Part>, [f64; 2]); 6] = [
        ("host", vec![Part::Host(5, Way::Both)], [0.9, 0.95]),
        ("NIC", vec![Part::Nic(port(5, 1), Way::Both)], [0.85, 0.95]),
        ("host, sending", vec![Part::Host(5, Way::Send)], [0.7, 0.9]),
        ("rail", vec![Part::Rail(1)], [0.95, 0.95]),
        ("two hosts", vec![Part::Host(5, Way::Both), Part::Host(9, Way::Both)], [0.6, 0.9]),
        ("path", vec![Part::Link(port(3, 1), port(12, 1), Way::Both)], [0.0, 0.4]),
    ];
    at_once(&classes, |(what, parts, bars)| {
        let mut rows = Vec::new();
        for (drop, bar) in [0.03, 0.05].into_iter().zip(*bars) {
            let mut score = Score::default();
            for run in 0..options.runs(200) {
                let mut cluster = Cluster::new(options.seed + 67_867_967 * run as u64, 16, 4, Kind::Normal, 0.01);
                cluster.leaves(4);
                cluster.faults = parts.iter().map(|part| (part.clone(), 1.0 - drop, 1.0)).collect();
                let said = cluster.run(usize::MAX, true);
                score.count(&said, parts);
            }
            let named = format!("localise, mild: {what} {:.0} % low at 1 % noise", 100.0 * drop);
            rows.push(Row::share(format!("{named}: named"), score.right, score.of, Bar::AtLeast(bar)));
            rows.push(Row::share(format!("{named}: a wrong name"), score.wrong, score.of, Bar::AtMost(0.02)));
        }
        rows
    })
}
