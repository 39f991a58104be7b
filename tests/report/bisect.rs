//! Slow collectives, taken apart by further cases until the host or the boundary is found.

use std::path::Path;

use railgauge::{
    analysis::{
        journal::{End, Journal, Try},
        localise::{Localisation, Standing, further, localise},
        results::results,
        rows::rows,
    },
    plan::parse,
    report::draw,
    run::event::{Case, Sample},
    schedule::{Inventory, schedule},
};
use railgauge_wire::failure::{Failure, Kind, Stage};

use crate::support::{self, Dice};

/// A cluster whose collectives are slow where these sides meet; a side alone is a bad host.
pub(crate) struct Cluster {
    bad: Vec<Vec<&'static str>>,
    fails: bool,
    dice: Dice,
}

impl Cluster {
    pub(crate) fn new(bad: &[&[&'static str]]) -> Self {
        Self { bad: bad.iter().map(|side| side.to_vec()).collect(), fails: false, dice: Dice(7) }
    }

    fn measure(&mut self, case: &Case) -> Result<Sample, Failure> {
        let hosts = case.flow.hosts();
        let meets = |side: &Vec<&str>| hosts.iter().any(|host| side.contains(&&***host));
        let slow = !self.bad.is_empty() && self.bad.iter().all(meets);
        if slow && self.fails {
            return Err(Failure::new(Stage::Measure, Kind::Deadline, "a rank did not answer"));
        }
        // About 300 GB/s, falling with the size of the group.
        let time = case.cell.size as f64 / 300.0 * (hosts.len() as f64).powf(0.03) * if slow { 1.25 } else { 1.0 };
        let p50 = (time * (1.0 + 0.004 * self.dice.normal())) as u64;
        Ok(support::group::sample(case, p50))
    }

    fn run(&mut self, journal: &mut Journal, cases: &[Case]) {
        for case in cases {
            let started_at = "2026-11-21T02:00:00.000Z".to_owned();
            let result = self.measure(case);
            journal.tries.push(Try {
                case: case.id,
                repeat: 0,
                started_at,
                link: Some(support::group::link().into()),
                result,
            });
        }
    }
}

/// A run of an all_reduce over twelve hosts, with these further keys.
pub(crate) fn run(cluster: &mut Cluster, keys: &str) -> Journal {
    let text = format!(
        "name = \"p\"\n[launch]\nvia = \"ssh\"\n[hosts]\nnames = [\"a[01-12]\"]\n[[test]]\nop = \"all_reduce\"\n\
         metric = \"bandwidth\"\ntransport = \"nccl\"\nsizes = \"64MiB\"\n{keys}"
    );
    let plan = parse("p.toml", &text, Path::new("")).unwrap().0;
    let schedule = schedule(&plan, &Inventory::of_plan(&plan)).unwrap();
    let case = |place| {
        let (round, flow, cell) = schedule.resolve(place).unwrap();
        let test = plan.tests[round.test].name.clone();
        Case { id: place.id, test, round: round.number, flow: flow.clone(), cell: cell.clone() }
    };
    let cases: Vec<Case> = schedule.cases().map(case).collect();
    let mut journal = Journal {
        run_id: "run".into(),
        time: ("2026-11-21T02:00:00.000Z".into(), "2026-11-21T02:10:00.000Z".into()),
        hosts: support::group::hosts(&plan),
        cases: cases.clone(),
        end: End::Finished,
        ..Journal::of(plan)
    };
    cluster.run(&mut journal, &cases);
    journal
}

fn wanted(journal: &Journal) -> Vec<Case> {
    let results = results(journal).unwrap();
    further(journal, &results, &rows(journal, &results, &|_, _| None))
}

fn found(journal: &Journal) -> Vec<Localisation> {
    let results = results(journal).unwrap();
    localise(journal, &results, &rows(journal, &results, &|_, _| None))
}

/// Measures what is asked for until nothing is.
fn search(cluster: &mut Cluster, journal: &mut Journal) {
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

const FLOOR: &str = "[[test.expect]]\nmetric = \"busbw\"\nat_least = \"480 GB/s\"\n";

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
    assert_eq!(drawn.view.parts.unwrap().sentence, "Bad, measured again and confirmed: host a08.");
    assert_eq!(drawn.verdicts.cases.planned, 1);
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
