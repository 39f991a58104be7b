//! The rates of `views` with parameters drawn far beyond its lists: 4 to 32 hosts, 1 to 8 rails, tournaments, random rounds, rings and two sides;
//! noise that is normal, heavy-tailed, skewed, of two states, or unlike between hosts. And faults of few hosts, small ones of many, and what
//! was not tested.

use railgauge_analysis::verdict::Lack;

use super::{
    At, BANDWIDTH, BAR, Cluster, GROUPS, HALF, LATENCY, Reach, Said, THREE, named_only, on_path, printed, rate, runs,
};
use crate::support::Dice;

const PATTERNS: [&str; 4] = [
    "",
    "pattern = \"random\"\nrounds = 5\n",
    "pattern = \"ring\"\n",
    "pattern = \"between\"\nbetween = [\"left\", \"right\"]\n",
];
const ONCE: &str = "op = \"write\"\nmetric = \"bandwidth\"\ntransport = \"verbs\"\nsizes = \"1MiB\"\nrepeats = 1\n";

/// Noise with standard deviation 1.
const KINDS: [fn(&mut Dice) -> f64; 4] = [
    Dice::normal,
    // Student's t with 3 degrees of freedom.
    |dice| dice.normal() / (0..3).map(|_| dice.normal().powi(2)).sum::<f64>().sqrt(),
    // Log-normal of shape 0.6.
    |dice| ((0.6 * dice.normal()).exp() - 1.197) / 0.788,
    // Two states.
    |dice| (0.2 * dice.normal() + if dice.uniform() < 0.5 { 0.5 } else { -0.5 }) / 0.5385,
];

/// What is said of a cluster whose parameters the number of a run decides.
fn said(test: &str, run: u64, reach: impl Fn(&At<'_>) -> Reach) -> Said {
    let mut dice = Dice(run.wrapping_mul(7919) + 11);
    let mut pick = |n: usize| (dice.uniform() * n as f64) as usize;
    let (hosts, rails) = [(6, 1), (6, 8), (8, 1), (8, 4), (16, 1), (16, 2), (32, 1)][pick(7)];
    let text = if test == GROUPS { GROUPS.to_owned() } else { format!("{test}{}", PATTERNS[pick(4)]) };
    let unequal = [1.0, 1.0, 3.0][pick(3)];
    let noise = if test == GROUPS { 0.01 } else { [0.005, 0.01][pick(2)] };
    let cluster = Cluster { hosts, rails, test: &text, noise, kind: KINDS[pick(4)], unequal, ..Cluster::default() };
    cluster.said(run + 1, reach)
}

/// A fault, its test, what a right name holds, and what is known to be reached: the least share reported, the largest with another name. Both may
/// be worse than the bars.
type Row = (&'static str, &'static str, &'static [&'static str], fn(&At<'_>) -> Reach, [f64; 2]);

fn measured(rows: &[Row]) {
    let mut known = true;
    for &(what, test, names, fault, [least, most]) in rows {
        let (reported, wrong) = rate(what, 3 * runs(), |run| {
            let said = said(test, run, fault);
            let right = said.named.iter().all(|named| names.iter().any(|name| named.contains(name)));
            (said, right)
        });
        known &= reported >= least && wrong <= most;
    }
    assert!(known);
}

#[test]
#[ignore = "rate: two minutes"]
fn rates_of_faults_in_one_view_of_any_cluster() {
    measured(&[
        (
            "S2 wider, p99 x3 at a host",
            LATENCY,
            &["a02"],
            |at| (0.0, if at.has("a02") { THREE } else { 0.0 }),
            [0.95, 0.1],
        ),
        (
            "S2 wider, p99 x10 at a host",
            LATENCY,
            &["a02"],
            |at| (0.0, if at.has("a02") { std::f64::consts::LN_10 } else { 0.0 }),
            [0.95, 0.1],
        ),
        (
            "S3 wider, one of 3 repeats at half, host",
            BANDWIDTH,
            &["a02"],
            |at| (if at.has("a02") && at.repeat == 2 { HALF } else { 0.0 }, 0.0),
            [0.95, 0.25],
        ),
        ("S3 wider, bandwidth sinks by 10 %", BANDWIDTH, &[], |at| (-0.105 * at.time, 0.0), [0.88, 0.12]),
        ("S3 wider, bandwidth sinks by 15 %", BANDWIDTH, &[], |at| (-0.163 * at.time, 0.0), [0.88, 0.12]),
    ]);
}

#[test]
#[ignore = "rate: two minutes"]
fn rates_of_groups_and_small_faults_of_any_cluster() {
    measured(&[
        (
            "S1 wider, two groups 5 % apart",
            GROUPS,
            &[],
            |at| (if at.has("a01") { -0.0513 } else { 0.0 }, 0.0),
            [0.7, 0.01],
        ),
        (
            "S1 wider, two groups 20 % apart",
            GROUPS,
            &[],
            |at| (if at.has("a01") { -0.2231 } else { 0.0 }, 0.0),
            [0.95, 0.01],
        ),
        ("healthy, wider, bandwidth", BANDWIDTH, &[], |_| (0.0, 0.0), [0.0, 0.1]),
        ("healthy, wider, latency", LATENCY, &[], |_| (0.0, 0.0), [0.0, 0.1]),
        ("healthy, wider, two groups", GROUPS, &[], |_| (0.0, 0.0), [0.0, 0.01]),
    ]);
    let number = |name: &str| name[1..].parse::<f64>().unwrap_or_default();
    let host = |at: &At<'_>, worse: fn(f64, f64) -> f64| {
        at.case.flow.hosts().iter().map(|host| number(host)).reduce(worse).unwrap_or_default()
    };
    let of = |hosts, rails, noise| Cluster { hosts, rails, noise, ..Cluster::default() };
    rate("S4 a gradient of 7 % over 16 hosts", runs(), |run| {
        let reach = |at: &At<'_>| (-0.07 * (host(at, f64::max) - 1.0) / 15.0, 0.0);
        (of(16, 1, [0.005, 0.01][run as usize % 2]).said(run + 1, reach), true)
    });
    rate("S4 half of the hosts 1.5 % low", runs(), |run| {
        let reach = |at: &At<'_>| (if host(at, f64::min) <= 4.0 { -0.015 } else { 0.0 }, 0.0);
        (of(8, [1, 4][run as usize % 2], 0.01).said(run + 1, reach), true)
    });
    for by in [0.03, 0.05] {
        rate(&format!("S8 path {:.0} % low, noise 1 %", 100.0 * by), runs(), |run| {
            let reach = |at: &At<'_>| (if on_path(at) { -by } else { 0.0 }, 0.0);
            named_only(of([8, 16][run as usize % 2], 1, 0.01).said(run + 1, reach), "path between a02 ")
        });
    }
}

/// Three hosts, two hosts with several NICs: what is a fifth low, measured once.
#[test]
#[ignore = "rate: a few seconds"]
fn rates_of_few_hosts() {
    let mut met = true;
    for (hosts, rails) in [(3, 1), (3, 4), (2, 2), (2, 8)] {
        let of = Cluster { hosts, rails, test: ONCE, ..Cluster::default() };
        let reach = |at: &At<'_>| {
            let low = if hosts == 2 { at.case.flow.from.rail == 1 } else { at.has("a02") };
            (if low { -0.2231 } else { 0.0 }, 0.0)
        };
        let what = format!("S5 {hosts} hosts with {rails} NICs, a fifth low, measured once");
        let (reported, _) = rate(&what, 3 * runs(), |run| (of.said(run + 1, reach), true));
        met &= reported >= BAR;
    }
    assert!(met);
}

/// A boundary that no pair crossed, and a direction that was not measured.
#[test]
#[ignore = "rate: a few seconds"]
fn rates_of_what_was_not_tested() {
    let inside = "pattern = \"pairs\"\npairs = [[\"a01\", \"a02\"], [\"a03\", \"a04\"], [\"a05\", \"a06\"], [\"a07\", \"a08\"]]\n";
    let one_way = "pattern = \"one-to-many\"\nfrom = \"a01\"\n";
    let mut met = true;
    for (what, pattern, lacks) in [
        ("S6 a boundary that no pair crossed: listed", inside, &[Lack::Boundaries][..]),
        ("S6 a direction that was not measured: listed", one_way, &[Lack::Sending, Lack::Receiving]),
    ] {
        let text = format!("{BANDWIDTH}{pattern}");
        let listed = (0..runs()).filter(|run| {
            let said = Cluster { test: &text, ..Cluster::default() }.said(run + 1, |_| (0.0, 0.0));
            said.verdicts.untested.iter().any(|one| lacks.contains(&one.kind))
        });
        let listed = listed.count() as u64;
        printed(what, listed, runs(), (">=", 1.0));
        met &= listed == runs();
    }
    assert!(met);
}
