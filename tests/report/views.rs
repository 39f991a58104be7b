//! What shows in one view of a test only: in the tail of a latency, in one repeat of several, at one size, over the time of the run.

use std::{path::Path, sync::Arc};

use railgauge_analysis::{
    journal::{Journal, JournalEnd, Try},
    results::results,
    rows::judged_rows,
    status::Status,
    verdict::{Kind, Verdicts, verdicts},
};
use railgauge_model::{
    journal::event::{Case, LinkRecord, Sample},
    plan::parse,
    schedule::{Inventory, schedule},
};
use railgauge_wire::{
    measure::{Latency, Measurement},
    step::Checked,
    terms::{Carrier, GpuPath, LinkLayer, TestMetric, Transport},
    unit::{Bytes, GigabitsPerSecond, Nanoseconds, NanosecondsF64},
};

use crate::support::{self, Dice};

mod wider;

/// One repeat of a case, and when it is in its test: from 0 to 1.
struct At<'c> {
    case: &'c Case,
    repeat: u32,
    time: f64,
}

impl At<'_> {
    fn has(&self, host: &str) -> bool {
        self.case.flow.hosts().iter().any(|of| ***of == *host)
    }
}

/// What a link reaches, as logarithms: how much better it is than others, and how much longer its tail is.
type Reach = (f64, f64);

/// A cluster: its plan, and the noise of a result and of its tail.
struct Cluster<'p> {
    hosts: usize,
    rails: u32,
    test: &'p str,
    noise: f64,
    tail: f64,
    /// Whether the noise of the tail has a long side.
    skewed: bool,
    /// The noise of a result, with standard deviation 1, and how many times as large it is at one host.
    kind: fn(&mut Dice) -> f64,
    unequal: f64,
}

const BANDWIDTH: &str =
    "op = \"write\"\nmetric = \"bandwidth\"\ntransport = \"verbs\"\nsizes = \"1MiB\"\nrepeats = 3\n";
const SIZES: &str =
    "op = \"write\"\nmetric = \"bandwidth\"\ntransport = \"verbs\"\nsizes = \"8KiB..1MiB x2\"\nrepeats = 3\n";
const LATENCY: &str = "op = \"write\"\nmetric = \"latency\"\ntransport = \"verbs\"\nsizes = \"8\"\nrepeats = 3\n";
const GROUPS: &str = "op = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"nccl\"\nsizes = \"64MiB\"\nrepeats = 3\ngroups = \"each\"\n";

impl Default for Cluster<'_> {
    fn default() -> Self {
        let (kind, unequal): (fn(&mut Dice) -> f64, f64) = (Dice::normal, 1.0);
        Self { hosts: 8, rails: 1, test: BANDWIDTH, noise: 0.01, tail: 0.1, skewed: false, kind, unequal }
    }
}

impl Cluster<'_> {
    fn run(&self, seed: u64, reach: impl Fn(&At<'_>) -> Reach) -> Journal {
        let half = self.hosts / 2;
        let text = format!(
            "name = \"p\"\n[launch]\nvia = \"ssh\"\n[hosts]\nnames = [\"a[01-{:02}]\"]\n[hosts.groups]\nleft = [\"a[01-{half:02}]\"]\n\
             right = [\"a[{:02}-{0:02}]\"]\n[[test]]\nname = \"t\"\n{}",
            self.hosts,
            half + 1,
            self.test
        );
        let plan = parse("p.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
        let mut inventory = Inventory::of_plan(&plan);
        plan.hosts.iter().for_each(|host| inventory.set(&host.name, Transport::Verbs, self.rails));
        let cases = Case::planned(&plan, &schedule(&plan, &inventory).unwrap());
        let (mut dice, mut tries) = (Dice(seed), Vec::new());
        let rounds: Vec<&[Case]> = cases.chunk_by(|a, b| a.round == b.round).collect();
        let steps = (rounds.len() * plan.tests[0].repeats as usize).max(2);
        let mut step = 0;
        for round in rounds {
            for repeat in 0..plan.tests[0].repeats {
                let seconds = 5 * step;
                let started_at =
                    format!("2026-11-21T{:02}:{:02}:{:02}.000Z", seconds / 3600, seconds / 60 % 60, seconds % 60);
                for case in round {
                    let at = At { case, repeat, time: step as f64 / (steps - 1) as f64 };
                    let (level, tail) = reach(&at);
                    let unequal = if at.has("a04") { self.unequal } else { 1.0 };
                    let level = level + unequal * self.noise * (self.kind)(&mut dice);
                    let noise = self.tail * dice.normal();
                    let tail = tail + if self.skewed { noise.max(0.0) } else { 1.0 + noise };
                    let result = Ok(sample(case, level, tail));
                    let link = Some(Arc::new(link(case)));
                    tries.push(Try { case: case.id, repeat, started_at: started_at.clone().into(), link, result });
                }
                step += 1;
            }
        }
        Journal {
            run_id: "run".into(),
            time: ("2026-11-21T00:00:00.000Z".into(), "2026-11-21T23:00:00.000Z".into()),
            hosts: support::group::hosts(&plan),
            cases,
            tries,
            end: JournalEnd::Finished,
            ..Journal::of(plan)
        }
    }

    /// What is said of the parts of a run.
    fn said(&self, seed: u64, reach: impl Fn(&At<'_>) -> Reach) -> Said {
        let journal = self.run(seed, reach);
        let results = results(&journal).unwrap();
        let verdicts = verdicts(&journal, &results, &judged_rows(&journal, &results), Vec::new());
        let suspects = verdicts.localisation.iter().flat_map(|found| &found.suspects);
        Said { named: suspects.map(|named| named.name.clone()).collect(), verdicts }
    }
}

struct Said {
    named: Vec<String>,
    verdicts: Verdicts,
}

impl Said {
    /// Whether any verdict on parts is not a pass.
    fn is_reported(&self) -> bool {
        let mut of_parts = self.verdicts.verdicts.iter().filter(|verdict| verdict.kind == Kind::Parts);
        of_parts.any(|verdict| verdict.status != Status::Pass)
    }
}

fn sample(case: &Case, level: f64, tail: f64) -> Sample {
    if !case.flow.members.is_empty() {
        return support::group::sample(case, (case.cell.size.as_f64() / 300.0 * (-level).exp()) as u64);
    }
    let initiator = match case.cell.metric {
        TestMetric::Latency => latency(case, (1_800.0 * (-level).exp()) as u64, tail),
        _ => {
            let operations = Bytes((150e9 / 8.0 * level.exp()) as u64) / case.cell.size;
            Measurement {
                started: Nanoseconds(1),
                elapsed: Nanoseconds::from_secs(1),
                operations,
                bytes: case.cell.size * operations,
                ..Measurement::default()
            }
        }
    };
    let checked = Checked { verified: case.cell.size * 2, wrong: Bytes::ZERO, first_wrong: None };
    Sample { initiator, checked, ..Sample::default() }
}

/// A fiftieth of all operations takes longer than the others.
fn latency(case: &Case, time: u64, tail: f64) -> Measurement {
    let slow = (time as f64 * 1.1 * tail.exp()) as u64;
    // Two and a half seconds.
    let few = 1_250_000_000 / (49 * time + slow);
    let most = 49 * few;
    let operations = most + few;
    let mean = (time * most + slow * few) as f64 / operations as f64;
    let stdev = (slow - time) as f64 * (0.98f64 * 0.02).sqrt();
    let [time, slow] = [time, slow].map(Nanoseconds);
    let latency = Latency {
        samples: operations,
        min: time,
        p50: time,
        p90: time,
        p99: slow,
        p999: slow,
        max: slow,
        mean: NanosecondsF64(mean),
        stdev: NanosecondsF64(stdev),
        timer: Nanoseconds(20),
        histogram: vec![(time, most), (slow, few)],
    };
    Measurement {
        started: Nanoseconds(1),
        elapsed: Nanoseconds(2 * (time.0 * most + slow.0 * few)),
        operations,
        bytes: case.cell.size * operations,
        latency: Some(Box::new(latency)),
        ..Measurement::default()
    }
}

fn link(case: &Case) -> LinkRecord {
    if !case.flow.members.is_empty() {
        return support::group::link();
    }
    LinkRecord {
        transport: Carrier::VerbsRc,
        link_layer: LinkLayer::Infiniband,
        gpu_path: GpuPath::None,
        software: false,
        from_device: format!("mlx5_{}", case.flow.from.rail),
        to_device: format!("mlx5_{}", case.flow.to.rail),
        rate_gbps: Some(GigabitsPerSecond(200.0)),
        mtu: 4096,
        write_order: None,
        settings: Default::default(),
    }
}

/// Three times as long.
const THREE: f64 = 1.098_612_288_668_109_8;
const HALF: f64 = -std::f64::consts::LN_2;

fn at_path(at: &At<'_>) -> bool {
    at.has("a02") && at.has("a05")
}

/// A run in which the tail of a03 is three times as long.
pub fn a_long_tail_at_a_host() -> Journal {
    let cluster = Cluster { test: LATENCY, ..Cluster::default() };
    cluster.run(1, |at| (0.0, if at.has("a03") { THREE } else { 0.0 }))
}

#[test]
fn a_long_tail_at_a_host_or_path_is_named() {
    let cluster = Cluster { test: LATENCY, ..Cluster::default() };
    let said = cluster.said(1, |at| (0.0, if at.has("a03") { THREE } else { 0.0 }));
    assert_eq!(said.named, ["host a03"], "{}", said.verdicts.sentence);
    assert!(said.is_reported());
    let tail = said.verdicts.localisation.last().unwrap();
    assert_eq!(tail.metric.word(), "latency_p99");
    let path = cluster.said(2, |at| (0.0, if at_path(at) { THREE } else { 0.0 }));
    assert!(path.named.len() == 1 && path.named[0].starts_with("path between "), "{:?}", path.named);
    assert!(path.is_reported());
    // Each verdict says what it is about.
    let of_parts = said.verdicts.verdicts.iter().filter(|verdict| verdict.kind == Kind::Parts);
    let views: Vec<_> = of_parts.map(|verdict| (verdict.status, verdict.view.unwrap().metric.word())).collect();
    assert_eq!(views, [(Status::Pass, "latency_p50"), (Status::Inconclusive, "latency_p99")]);
    // What the median names as well is named once.
    let both = cluster.said(3, |at| if at.has("a03") { (HALF, THREE) } else { (0.0, 0.0) });
    assert_eq!(both.named, ["host a03"]);
}

#[test]
fn one_bad_repeat_of_three_is_named() {
    let cluster = Cluster::default();
    let path = cluster.said(1, |at| (if at_path(at) && at.repeat == 1 { HALF } else { 0.0 }, 0.0));
    assert!(path.named.len() == 1 && path.named[0].starts_with("path between "), "{:?}", path.named);
    let host = cluster.said(2, |at| (if at.has("a03") && at.repeat == 1 { HALF } else { 0.0 }, 0.0));
    assert_eq!(host.named, ["host a03"]);
    let named = &host.verdicts.localisation.last().unwrap().suspects[0];
    assert!((named.bad_share.unwrap() - 1.0 / 3.0).abs() < 0.01, "{named:?}");
    assert!(path.is_reported() && host.is_reported());
}

#[test]
fn a_rail_that_is_a_little_low_at_one_size_is_named() {
    let cluster = Cluster { test: SIZES, rails: 4, ..Cluster::default() };
    let low = |at: &At<'_>| at.case.flow.from.rail == 2 && at.case.cell.size == Bytes::from_kib(64);
    let said = cluster.said(1, |at| (if low(at) { -0.03 } else { 0.0 }, 0.0));
    assert_eq!(said.named, ["rail 2, on all hosts"], "{}", said.verdicts.sentence);
}

#[test]
fn values_that_sink_or_step_during_the_run_are_no_pass() {
    for hosts in [8, 16] {
        let cluster = Cluster { hosts, ..Cluster::default() };
        let sink = cluster.said(1, |at| (-0.15 * at.time, 0.0));
        let over_time = sink.verdicts.localisation[0].over_time.clone().unwrap();
        assert!((over_time.change_percent + 14.0).abs() < 2.0 && over_time.step_at.is_none(), "{over_time:?}");
        let step = cluster.said(2, |at| (if at.time > 0.6 { -0.3 } else { 0.0 }, 0.0));
        let over_time = step.verdicts.localisation[0].over_time.clone().unwrap();
        assert!((over_time.change_percent + 26.0).abs() < 2.0 && over_time.step_at.is_some(), "{over_time:?}");
        assert_eq!((sink.named.len(), step.named.len()), (0, 0));
        assert!(sink.is_reported() && step.is_reported());
        // What the time takes hides no host.
        let both = cluster.said(3, |at| (-0.15 * at.time + if at.has("a03") { -0.1 } else { 0.0 }, 0.0));
        assert_eq!(both.named, ["host a03"]);
    }
}

#[test]
fn two_groups_of_a_collective_that_are_a_little_apart_are_no_pass() {
    let cluster = Cluster { test: GROUPS, ..Cluster::default() };
    let said = cluster.said(1, |at| (if at.has("a01") { -0.06 } else { 0.0 }, 0.0));
    assert!(said.is_reported(), "{}", said.verdicts.sentence);
    assert!(said.verdicts.localisation[0].two_clusters.is_some());
    assert!(!cluster.said(2, |_| (0.0, 0.0)).is_reported());
}

/// Share of faults that must be reported. Of healthy clusters it is 1 % at most.
const BAR: f64 = 0.95;

/// How often something is reported, and how often a name other than the right one.
fn rate(what: &str, runs: u64, of: impl Fn(u64) -> (Said, bool)) -> (f64, f64) {
    let (mut reported, mut wrong) = (0, 0);
    for run in 0..runs {
        let (said, right) = of(run);
        if !right || what.starts_with("healthy") == said.is_reported() {
            println!("{what} {run}: {:?} {}", said.named, said.verdicts.sentence);
        }
        reported += u64::from(said.is_reported());
        wrong += u64::from(!right);
    }
    let bar = if what.starts_with("healthy") { ("<=", 0.01) } else { (">=", BAR) };
    printed(&format!("{what}: reported"), reported, runs, bar);
    printed(&format!("{what}: a wrong name"), wrong, runs, ("<=", 0.01));
    (reported as f64 / runs as f64, wrong as f64 / runs as f64)
}

/// Prints a row as `bench/judgement` reads it.
fn printed(what: &str, hits: u64, of: u64, (sign, bar): (&str, f64)) {
    let value = hits as f64 / of as f64;
    let met = if sign == ">=" { value >= bar } else { value <= bar };
    // A line of its own, whatever the runner of tests printed before.
    println!("\n{what}  {value:.4} {sign} {bar} {hits} of {of} {}", if met { "met" } else { "NOT MET" });
}

fn on_path(at: &At<'_>) -> bool {
    at.has("a02") && at.has("a03") && at.case.flow.from.rail == 0
}

/// Whether a rate is no worse than what is known to be reached, which may be less than the bar.
fn is_met((reported, wrong): (f64, f64), at_least: f64) -> bool {
    reported >= at_least && wrong <= 0.01
}

/// One of several clusters: 4 to 16 hosts, 1 to 4 rails, noise of 0.5 to 2 %.
fn cluster(test: &str, run: u64) -> Cluster<'_> {
    let (hosts, rails) = [(4, 1), (8, 1), (8, 4), (16, 1), (16, 2)][run as usize % 5];
    let noise = [0.005, 0.01, 0.02][run as usize % 3];
    Cluster { test, hosts, rails, noise, tail: [0.05, 0.1, 0.15][run as usize / 3 % 3], ..Cluster::default() }
}

fn runs() -> u64 {
    std::env::var("RAILGAUGE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(40)
}

fn named_only(said: Said, name: &str) -> (Said, bool) {
    let right = said.named.iter().all(|named| !name.is_empty() && named.starts_with(name));
    (said, right)
}

#[test]
#[ignore = "rate: a minute"]
fn rates_of_faults_in_one_view() {
    type Fault = fn(&At<'_>) -> Reach;
    let rows: [(&str, &str, &str, Fault, f64); 7] = [
        ("S2 p99 x3 at a host", LATENCY, "host a02", |at| (0.0, if at.has("a02") { THREE } else { 0.0 }), BAR),
        // Six pairs of four hosts say little of how a tail of 10 % and more scatters.
        ("S2 p99 x3 at a path", LATENCY, "path between a02 ", |at| (0.0, if on_path(at) { THREE } else { 0.0 }), 0.8),
        (
            "S3 one of 3 repeats at half, host",
            BANDWIDTH,
            "host a02",
            |at| (if at.has("a02") && at.repeat == 2 { HALF } else { 0.0 }, 0.0),
            BAR,
        ),
        (
            "S3 one of 3 repeats at half, path",
            BANDWIDTH,
            "path between a02 ",
            |at| (if on_path(at) && at.repeat == 2 { HALF } else { 0.0 }, 0.0),
            BAR,
        ),
        ("S3 bandwidth sinks by 10 %", BANDWIDTH, "", |at| (-0.105 * at.time, 0.0), BAR),
        ("S3 latency rises by 10 %", LATENCY, "", |at| (-0.095 * at.time, 0.0), BAR),
        ("S8 path 5 % low", BANDWIDTH, "path between a02 ", |at| (if on_path(at) { -0.05 } else { 0.0 }, 0.4), 0.0),
    ];
    let mut met = true;
    for (what, test, name, fault, at_least) in rows {
        let rate = rate(what, runs(), |run| named_only(cluster(test, run).said(run + 1, fault), name));
        met &= is_met(rate, at_least);
    }
    let low = |at: &At<'_>| at.case.flow.from.rail == 2 && at.case.cell.size == Bytes::from_kib(64);
    let rail = rate("S4 rail 3 % low at one of 8 sizes, noise 1 %", runs() / 2, |run| {
        let cluster = Cluster { rails: 4, noise: 0.01, ..cluster(SIZES, run) };
        named_only(cluster.said(run + 1, |at| (if low(at) { -0.03 } else { 0.0 }, 0.0)), "rail 2, on all hosts")
    });
    assert!(met && is_met(rail, BAR));
}

#[test]
#[ignore = "rate: a minute"]
fn rates_of_unlike_groups_and_of_healthy_clusters() {
    let mut met = true;
    let groups = |run, noise, by: f64| {
        let cluster = Cluster { noise, ..cluster(GROUPS, run) };
        named_only(cluster.said(run + 1, |at| (if at.has("a01") { (1.0 - by).ln() } else { 0.0 }, 0.0)), "")
    };
    for by in [0.05, 0.1, 0.2, 0.3] {
        let what = format!("S1 two groups {:.0} % apart, noise 1 %", 100.0 * by);
        met &= is_met(rate(&what, 10 * runs(), |run| groups(run, 0.01, by)), BAR);
    }
    for noise in [0.005, 0.01, 0.02] {
        let what = format!("healthy, two groups, noise {:.1} %", 100.0 * noise);
        met &= rate(&what, 10 * runs(), |run| groups(run, noise, 0.0)).0 <= 0.02;
    }
    let tests = [("bandwidth", BANDWIDTH, false), ("8 sizes", SIZES, false), ("latency", LATENCY, false)];
    for (what, test, skewed) in tests.into_iter().chain([("latency with a skewed tail", LATENCY, true)]) {
        let rate = rate(&format!("healthy, {what}"), 4 * runs(), |run| {
            named_only(Cluster { skewed, ..cluster(test, run) }.said(run + 9, |_| (0.0, 0.0)), "")
        });
        // The usual view by itself leaves some in two clusters.
        met &= rate.0 <= 0.02 && rate.1 <= 0.01;
    }
    assert!(met);
}
