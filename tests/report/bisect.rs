//! Slow collectives, taken apart by further cases until the host or the boundary is found.

use std::path::Path;

use railgauge_analysis::{
    journal::{Journal, JournalEnd, Try},
    localise::{Localisation, Standing, further, localise},
    results::results,
    rows::rows,
    status::Status,
    verdict::Kind,
};
use railgauge_model::{
    journal::event::{Case, GpuDuring, Sample},
    plan::{Plan, hostlist::expand, parse},
    schedule::{Inventory, schedule},
};
use railgauge_report::draw;
use railgauge_wire::{
    failure::{Failure, Kind as FailureKind, Stage},
    gpu_state::{GpuSeen, Hold},
    terms::{Carrier, LinkLayer},
    unit::GigabitsPerSecond,
};

use crate::support::{self, Dice, Scenario};

/// A cluster whose collectives are slow where these sides meet; a side alone is a bad host.
pub(crate) struct Cluster {
    bad: Vec<Vec<&'static str>>,
    fails: bool,
    /// How much longer a slow group takes.
    longer: f64,
    /// The host whose pairs are slow, by its place.
    slow_pairs: Option<usize>,
    dice: Dice,
}

impl Cluster {
    pub(crate) fn new(bad: &[&[&'static str]]) -> Self {
        Self {
            bad: bad.iter().map(|side| side.to_vec()).collect(),
            fails: false,
            longer: 1.25,
            slow_pairs: None,
            dice: Dice(7),
        }
    }

    fn measure(&mut self, plan: &Plan, case: &Case) -> Result<Sample, Failure> {
        if case.flow.members.is_empty() {
            let place = |host: &str| plan.hosts.iter().position(|one| one.name == host).unwrap();
            let ends = [place(&case.flow.from.host), place(&case.flow.to.host)];
            let scenario = Scenario { slow: self.slow_pairs, ..Scenario::healthy(plan.hosts.len(), 1) };
            return Ok(support::sample(&scenario, plan, case, ends, 0));
        }
        let hosts = case.flow.hosts();
        let meets = |side: &Vec<&str>| hosts.iter().any(|host| side.contains(&&***host));
        let slow = !self.bad.is_empty() && self.bad.iter().all(meets);
        if slow && self.fails {
            return Err(Failure::new(Stage::Measure, FailureKind::Deadline, "a rank did not answer"));
        }
        // About 300 GB/s, falling with the size of the group.
        let time =
            case.cell.size.as_f64() / 300.0 * (hosts.len() as f64).powf(0.03) * if slow { self.longer } else { 1.0 };
        let p50 = (time * (1.0 + 0.004 * self.dice.normal())) as u64;
        Ok(support::group::sample(case, p50))
    }

    fn run(&mut self, journal: &mut Journal, cases: &[Case]) {
        let plan = journal.plan.clone();
        for case in cases {
            let started_at = "2026-11-21T02:00:00.000Z".to_owned();
            let result = self.measure(&plan, case);
            let mut link = support::group::link();
            if case.flow.members.is_empty() {
                (link.transport, link.link_layer, link.rate_gbps) =
                    (Carrier::VerbsRc, LinkLayer::RoceV2, Some(GigabitsPerSecond(200.0)));
                (link.from_device, link.to_device, link.mtu) = ("mlx5_0".into(), "mlx5_0".into(), 4096);
            }
            journal.tries.push(Try {
                case: case.id,
                repeat: 0,
                started_at: started_at.into(),
                link: Some(link.into()),
                result,
            });
        }
    }
}

/// A run of an all_reduce over twelve hosts, with these further keys.
pub(crate) fn run(cluster: &mut Cluster, keys: &str) -> Journal {
    run_with(cluster, "", keys)
}

/// The same with groups of hosts.
fn run_with(cluster: &mut Cluster, groups: &str, keys: &str) -> Journal {
    let head = "name = \"p\"\n[launch]\nvia = \"ssh\"\n[hosts]\nnames = [\"a[01-12]\"]\n";
    let test = "[[test]]\nop = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"nccl\"\nsizes = \"64MiB\"\n";
    run_plan(cluster, &format!("{head}{groups}{test}{keys}"))
}

/// The run of a plan.
fn run_plan(cluster: &mut Cluster, text: &str) -> Journal {
    let plan = parse("p.toml", text, Path::new("")).unwrap().0;
    let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
    let mut journal = Journal {
        run_id: "run".into(),
        time: ("2026-11-21T02:00:00.000Z".into(), "2026-11-21T02:10:00.000Z".into()),
        hosts: support::group::hosts(&plan),
        cases: cases.clone(),
        end: JournalEnd::Finished,
        ..Journal::of(plan)
    };
    cluster.run(&mut journal, &cases);
    journal
}

fn wanted(journal: &Journal) -> Vec<Case> {
    let results = results(journal).unwrap();
    further(journal, &results, &rows(journal, &results))
}

fn found(journal: &Journal) -> Vec<Localisation> {
    let results = results(journal).unwrap();
    localise(journal, &results, &rows(journal, &results))
}

/// Measures what is asked for until nothing is.
pub(crate) fn search(cluster: &mut Cluster, journal: &mut Journal) {
    loop {
        let cases = wanted(journal);
        if cases.is_empty() {
            return;
        }
        journal.further.extend(cases.clone());
        cluster.run(journal, &cases);
        assert!(journal.further.len() < 200, "the search does not end");
    }
}

pub(crate) const FLOOR: &str = "[[test.expect]]\nmetric = \"busbw\"\nat_least = \"480 GB/s\"\n";

#[test]
fn a_host_that_slows_a_collective_is_found_and_named() {
    let mut cluster = Cluster::new(&[&["a08"]]);
    let mut journal = run(&mut cluster, FLOOR);
    search(&mut cluster, &mut journal);
    let all = found(&journal);
    assert_eq!((all.len(), all[0].counted, all[0].suspects.len()), (1, "group", 1), "{all:?}");
    let suspect = &all[0].suspects[0];
    assert_eq!((suspect.kind, suspect.name.as_str(), suspect.standing), ("host", "host a08", Standing::Confirmed));
    assert!((suspect.change_percent + 20.0).abs() < 2.0 && suspect.n >= 2, "{}", suspect.reason);
    assert!(journal.further.len() < 32, "{} groups", journal.further.len());
    assert!(all[0].remarks[0].starts_with("bisected with "), "{:?}", all[0].remarks);
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    let parts = drawn.view.parts.unwrap();
    assert_eq!((parts.named[0].name.as_str(), parts.named[0].standing.as_str()), ("host a08", "confirmed"));
    assert_eq!(drawn.verdicts.cases.planned, 1);
}

#[test]
fn a_search_that_the_plan_does_not_want_is_not_told_as_one_that_began() {
    let mut cluster = Cluster::new(&[&["a08"]]);
    let journal = run_with(&mut cluster, "[localise]\nconfirm = false\n", FLOOR);
    let remarks = &found(&journal)[0].remarks;
    assert!(remarks.iter().all(|remark| !remark.contains("not over")), "{remarks:?}");
    assert!(remarks.iter().any(|remark| remark.contains("`confirm = false`")), "{remarks:?}");
}

/// The slowest rank waits for a GPU that is too hot: the fabric is not blamed.
#[test]
fn a_host_that_slows_a_collective_tells_what_its_gpus_suffered() {
    let mut cluster = Cluster::new(&[&["a08"]]);
    let mut journal = run(&mut cluster, FLOOR);
    search(&mut cluster, &mut journal);
    for attempt in &mut journal.tries {
        let case = journal.cases.iter().chain(&journal.further).find(|case| case.id == attempt.case).unwrap();
        let state = |host: &str| GpuSeen {
            index: Some(3),
            readings: 4,
            held: Some(if host == "a08" { [(Hold::HotHardware, 4)].into() } else { [(Hold::PowerCap, 4)].into() }),
            ..GpuSeen::default()
        };
        let hosts = case.flow.hosts();
        let gpus = hosts.iter().map(|host| GpuDuring { host: host.to_string(), seen: state(host) });
        attempt.result.as_mut().unwrap().gpus = gpus.collect();
    }
    let suspect = &found(&journal)[0].suspects[0];
    let hot = "GPU 3: its clocks were held down in 4 of 4 readings: too hot (hardware)";
    assert_eq!((&*suspect.name, suspect.meanwhile.as_deref()), ("host a08", Some(hot)));
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    let on_parts = drawn.verdicts.verdicts.iter().find(|verdict| verdict.kind == Kind::Parts).unwrap();
    assert!(on_parts.reason.to_string().contains(hot), "{}", on_parts.reason);
}

#[test]
fn a_group_that_fails_among_others_is_taken_apart_too() {
    let mut cluster = Cluster { fails: true, ..Cluster::new(&[&["a03"]]) };
    let mut journal = run(&mut cluster, "groups = \"every\"\ngroup_size = 3\n");
    search(&mut cluster, &mut journal);
    let all = found(&journal);
    let names: Vec<&str> = all[0].suspects.iter().map(|suspect| suspect.name.as_str()).collect();
    assert_eq!(names, ["host a03"], "{:?}", all[0].remarks);
}

#[test]
fn a_boundary_within_a_group_is_found_where_both_sides_are_good() {
    let mut cluster = Cluster::new(&[&["a05"], &["a08"]]);
    let mut journal = run(&mut cluster, "groups = \"every\"\ngroup_size = 4\n");
    search(&mut cluster, &mut journal);
    let all = found(&journal);
    let suspect = &all[0].suspects[0];
    assert_eq!((suspect.kind, suspect.name.as_str()), ("path", "path between a05 and a08"), "{:?}", all[0].remarks);
}

#[test]
fn a_healthy_collective_costs_nothing() {
    for keys in ["", FLOOR, "groups = \"every\"\ngroup_size = 3\n"] {
        let mut cluster = Cluster::new(&[]);
        let journal = run(&mut cluster, keys);
        assert_eq!((wanted(&journal), found(&journal)), (Vec::new(), Vec::new()), "{keys}");
    }
}

#[test]
fn an_interrupted_search_goes_on_where_it_was() {
    let mut cluster = Cluster::new(&[&["a08"]]);
    let mut journal = run(&mut cluster, FLOOR);
    for _ in 0..5 {
        let cases = wanted(&journal);
        journal.further.extend(cases.clone());
        cluster.run(&mut journal, &cases);
    }
    // The sixth was asked for and not run.
    let sixth = wanted(&journal);
    journal.further.extend(sixth.clone());
    assert!(wanted(&journal).is_empty(), "a resumed run measures it first, under its number");
    let remark = &found(&journal)[0].remarks[0];
    assert_eq!(remark, "the bisection ended after 5 groups: a group was not run");
    cluster.run(&mut journal, &sixth);
    search(&mut cluster, &mut journal);
    assert_eq!(found(&journal)[0].suspects[0].name, "host a08");
}

/// The hosts `a01` to `a12` with these numbers.
fn hosts(numbers: std::ops::RangeInclusive<usize>) -> Vec<&'static str> {
    const ALL: [&str; 12] = ["a01", "a02", "a03", "a04", "a05", "a06", "a07", "a08", "a09", "a10", "a11", "a12"];
    numbers.map(|number| ALL[number - 1]).collect()
}

#[test]
fn a_slow_boundary_is_named_wherever_it_is_and_no_host_is() {
    let leaves = "[hosts.groups]\nL0 = \"a[01-06]\"\nL1 = \"a[07-12]\"\n";
    for cut in 2..=10 {
        for groups in ["", leaves] {
            let mut cluster = Cluster::new(&[&hosts(1..=cut), &hosts(cut + 1..=12)]);
            let mut journal = run_with(&mut cluster, groups, FLOOR);
            search(&mut cluster, &mut journal);
            let found = &found(&journal)[0];
            let kinds: Vec<&str> = found.suspects.iter().map(|suspect| suspect.kind).collect();
            assert_eq!(kinds, ["boundary"], "cut at {cut}: {:?}", found.suspects);
            assert_eq!(found.suspects[0].hosts, hosts(1..=12), "cut at {cut}: {}", found.suspects[0].name);
            assert_eq!(found.suspects[0].groups.len(), if cut == 6 && !groups.is_empty() { 2 } else { 0 });
        }
    }
}

/// What the verdict on parts is, and its reason.
fn on_parts(journal: &Journal) -> (Status, String) {
    let drawn = draw(journal, Path::new("records.jsonl")).unwrap();
    let verdict =
        drawn.verdicts.verdicts.iter().find(|verdict| verdict.kind == Kind::Parts).expect("a verdict on parts");
    (verdict.status, verdict.reason.to_string())
}

#[test]
fn most_groups_slow_is_told_as_one_slow_is() {
    // Pairs of which most are slow; two of three groups; one of two, without a repeat and without a majority.
    let every_other = ["a02", "a04", "a06", "a08", "a10", "a12"];
    for (bad, keys, good_n, bad_n) in [
        (&every_other[..], "groups = \"pairs\"\n", 15, 51),
        (&["a01", "a05"], "groups = \"every\"\ngroup_size = 4\n", 1, 2),
        (&["a01", "a04", "a07"], "groups = \"every\"\ngroup_size = 3\n", 1, 3),
        (&["a03"], "groups = \"halves\"\n", 1, 1),
    ] {
        let mut cluster = Cluster { longer: 2.0, ..Cluster::new(&[bad]) };
        let mut journal = run(&mut cluster, keys);
        // Before anything more is measured it is open.
        let (status, reason) = on_parts(&journal);
        assert_eq!(status, Status::Inconclusive, "{keys}: {reason}");
        let clusters = found(&journal)[0].two_clusters.clone().unwrap();
        assert_eq!((clusters.good.n, clusters.bad.n), (good_n, bad_n), "{keys}");
        assert!(clusters.good.centre > 1.8 * clusters.bad.centre, "{clusters:?}");
        search(&mut cluster, &mut journal);
        let (status, reason) = on_parts(&journal);
        assert_ne!(status, Status::Pass, "{keys}: {reason}");
        let blamed = found(&journal)[0].suspects.iter().flat_map(|suspect| suspect.hosts.clone()).collect::<Vec<_>>();
        assert!(blamed.iter().all(|host| bad.contains(&host.as_str())), "{keys}: {blamed:?} of {bad:?}");
    }
}

#[test]
fn a_fabric_that_carries_less_between_its_halves_is_bad_only_against_a_limit() {
    let floor = FLOOR.replace("480", "380");
    for (limit, wanted) in [("", Status::Inconclusive), (floor.as_str(), Status::Fail)] {
        let mut cluster = Cluster { longer: 2.0, ..Cluster::new(&[&hosts(1..=6), &hosts(7..=12)]) };
        let mut journal = run(&mut cluster, &format!("groups = \"pairs\"\n{limit}"));
        search(&mut cluster, &mut journal);
        let found = &found(&journal)[0];
        let standing = if limit.is_empty() { Standing::Open } else { Standing::Confirmed };
        assert_eq!((found.suspects.len(), found.suspects[0].kind), (1, "boundary"), "{:?}", found.suspects);
        assert_eq!(found.suspects[0].standing, standing, "{}", found.suspects[0].reason);
        let (status, reason) = on_parts(&journal);
        assert_eq!(status, wanted, "{reason}");
    }
}

#[test]
fn what_no_part_explains_is_no_pass() {
    // All groups are alike and below the limit: whether the cluster or the limit is at fault, nobody can tell.
    let mut cluster = Cluster::new(&[]);
    let mut journal = run(&mut cluster, "[[test.expect]]\nmetric = \"busbw\"\nat_least = \"4800 GB/s\"\n");
    search(&mut cluster, &mut journal);
    assert!(journal.further.len() <= 5, "{}", journal.further.len());
    let (status, reason) = on_parts(&journal);
    assert_eq!(status, Status::Inconclusive, "{reason}");
}

#[test]
fn a_host_with_which_every_group_fails_is_told_in_counts() {
    let mut cluster = Cluster { fails: true, ..Cluster::new(&[&["a03"]]) };
    let mut journal = run(&mut cluster, "");
    search(&mut cluster, &mut journal);
    let found = &found(&journal)[0];
    let suspect = &found.suspects[0];
    assert_eq!((found.suspects.len(), suspect.name.as_str()), (1, "host a03"));
    let with = journal.further.iter().filter(|case| case.flow.hosts().iter().any(|host| &***host == "a03")).count();
    let without = journal.further.len() - with;
    assert!(with >= 4 && suspect.n == with && suspect.bad == with && suspect.cases.len() == with, "{suspect:?}");
    let counts = [format!("{with} of {with}"), format!("{without} ")];
    assert!(counts.iter().all(|count| suspect.reason.contains(count)), "{}", suspect.reason);
    assert!(!suspect.reason.contains('%') && suspect.change_percent <= -100.0, "{}", suspect.reason);
    assert!(found.unmeasured.is_empty(), "{:?}", found.unmeasured);
}

/// Pairs of six hosts with a bad one, and a collective that another slows and that one is not in: the first explains nothing of it,
/// waived or not.
#[test]
fn a_bad_host_elsewhere_does_not_keep_a_slow_collective_from_being_searched() {
    for waive in ["", "[localise]\nwaive = [\"a03\"]\n"] {
        let text = format!(
            "name = \"p\"\n[launch]\nvia = \"ssh\"\n[hosts]\nnames = [\"a[01-12]\"]\ndevices = [\"mlx5_0\"]\n{waive}\
             [[test]]\nname = \"pairs\"\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"1MiB\"\n\
             hosts = [\"a[01-06]\"]\n\
             [[test]]\nname = \"sum\"\nop = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"nccl\"\n\
             sizes = \"64MiB\"\nhosts = [\"a[05-12]\"]\n{FLOOR}"
        );
        let mut cluster = Cluster { slow_pairs: Some(2), ..Cluster::new(&[&["a08"]]) };
        let mut journal = run_plan(&mut cluster, &text);
        search(&mut cluster, &mut journal);
        let named = |counted: &str| -> Vec<(String, Standing, bool)> {
            let all = found(&journal);
            let of = all.iter().filter(|one| one.counted == counted).flat_map(|one| one.suspects.clone());
            of.map(|suspect| (suspect.part.name, suspect.standing, suspect.waived)).collect()
        };
        assert_eq!(named("pair"), [("host a03".to_owned(), Standing::Confirmed, !waive.is_empty())]);
        assert_eq!(named("group"), [("host a08".to_owned(), Standing::Confirmed, false)], "{waive}");
    }
}

/// What lies between two sides is shown to be good by a group of hosts of both, and by none within a side.
#[test]
fn a_boundary_is_known_by_a_group_that_passes_it() {
    let of_test = |journal: &Journal| {
        let components = draw(journal, Path::new("records.jsonl")).unwrap().verdicts.components;
        components.into_iter().find(|of| of.metric.is_some()).unwrap()
    };
    let mut cluster = Cluster::new(&[&hosts(1..=6), &hosts(7..=12)]);
    let mut journal = run(&mut cluster, FLOOR);
    search(&mut cluster, &mut journal);
    let found = of_test(&journal);
    let boundary = found.components.iter().find(|one| one.kind == "boundary").unwrap();
    assert!(!boundary.links.is_empty());
    let passed = |keys: &str| {
        let good = of_test(&run(&mut Cluster::new(&[]), keys)).links;
        boundary.links.iter().any(|(from, to)| {
            let good = good.get(from).map(|good| expand(good).unwrap()).unwrap_or_default();
            expand(to).unwrap().iter().all(|host| good.contains(host))
        })
    };
    assert!(passed(FLOOR));
    assert!(!passed("groups = \"every\"\ngroup_size = 6\n"));
}
