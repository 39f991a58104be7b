//! What a run did not test is said wherever it says that no fault was found.

use std::path::Path;

use railgauge_analysis::{
    journal::{Journal, parse},
    results::results,
    rows::rows,
    status::Status,
    verdict::{Kind, Lack, Untested, Verdicts, verdicts},
};
use railgauge_model::{
    journal::event::Event,
    plan::{
        Plan,
        model::{Expectation, Limit, Pattern},
    },
};
use railgauge_report::draw;
use railgauge_wire::{terms::Metric, unit::Bytes};

use crate::{
    drivers::drawn_of,
    support::{self, Scenario},
};

fn journal(scenario: &Scenario) -> Journal {
    parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap()
}

fn judged(journal: &Journal) -> Verdicts {
    let results = results(journal).unwrap();
    verdicts(journal, &results, &rows(journal, &results), Vec::new())
}

fn of(found: &Verdicts, kind: Lack) -> Vec<&Untested> {
    found.untested.iter().filter(|one| one.kind == kind).collect()
}

fn pairs(hosts: usize, which: impl Fn(usize, usize) -> bool) -> Option<Pattern> {
    let name = |number: usize| format!("gpu{number:03}");
    let all = (1..=hosts).flat_map(|from| (1..=hosts).map(move |to| (from, to)));
    Some(Pattern::Pairs(all.filter(|&(a, b)| a != b && which(a, b)).map(|(a, b)| (name(a), name(b))).collect()))
}

fn small(hosts: usize) -> Scenario {
    Scenario { sizes: vec![1 << 20], repeats: 1, ..Scenario::healthy(hosts, 1) }
}

/// Hosts 1 to 4 are one leaf, the others another.
#[test]
fn a_boundary_that_no_pair_crossed_is_in_every_output_of_a_pass() {
    let within = Scenario { pattern: pairs(8, |a, b| (a <= 4) == (b <= 4)), ..small(8) };
    let journal = journal(&within);
    let found = judged(&journal);
    assert_eq!(found.status, Status::Pass, "{}", found.sentence);
    let [boundary] = of(&found, Lack::Boundaries)[..] else { panic!("{:?}", found.untested) };
    assert_eq!((&boundary.names[..], boundary.count), (&["leaf1–leaf2".to_owned()][..], 1));
    let view = draw(&journal, Path::new("records.jsonl")).unwrap().view;
    let (terminal, page, document, junit) = drawn_of(&within.lines());
    let listed = document["untested"].as_array().unwrap();
    assert!(listed.iter().any(|one| one["kind"] == "boundaries" && one["names"][0] == "leaf1–leaf2"), "{document}");
    let parts = found.verdicts.iter().find(|one| one.kind == Kind::Parts && one.test == "write-bw").unwrap();
    assert_eq!(parts.status, Status::Pass);
    let shown = view.parts.as_ref().unwrap().reasons.concat().join(" ");
    for told in [&found.sentence, &shown, &parts.reason.to_string(), &terminal, &page, &junit] {
        assert!(told.contains("leaf1–leaf2"), "{told}");
    }
    // One pair is enough, and without groups there is no boundary.
    let crossed = Scenario { pattern: pairs(8, |a, b| (a <= 4) == (b <= 4) || (a, b) == (4, 5)), ..small(8) };
    assert!(of(&judged(&self::journal(&crossed)), Lack::Boundaries).is_empty());
    let mut bare = self::journal(&within);
    bare.plan.groups.clear();
    assert!(of(&judged(&bare), Lack::Boundaries).is_empty());
    // Groups that share a host have no boundary.
    let mut shared = self::journal(&within);
    shared.plan.groups.get_mut("leaf1").unwrap().push("gpu005".to_owned());
    assert!(of(&judged(&shared), Lack::Boundaries).is_empty());
}

#[test]
fn a_direction_that_was_not_measured_is_listed() {
    let step = |a: usize, b: usize| (1..=3).any(|step| (a + step - 1) % 8 + 1 == b);
    // The third host only receives.
    let one = Scenario { pattern: pairs(8, |a, b| a != 3 && (step(a, b) || b == 3 && step(3, a))), ..small(8) };
    let found = judged(&journal(&one));
    let [sending] = of(&found, Lack::Sending)[..] else { panic!("{:?}", found.untested) };
    // A latency goes both ways, and neighbours go one way each, as the plan means it.
    assert_eq!((&sending.names[..], &sending.tests[..]), (&["gpu003".to_owned()][..], &["write-bw".to_owned()][..]));
    assert!(of(&found, Lack::Receiving).is_empty());
    let parts = found.verdicts.iter().find(|one| one.kind == Kind::Parts && one.test == "write-bw").unwrap();
    assert!(parts.reason.to_string().contains("gpu003"), "{}", parts.reason);
    // Where a whole run measures one direction, the other is not tested.
    let found = judged(&journal(&Scenario { pattern: pairs(2, |a, b| a < b), ..small(2) }));
    let names = |kind| of(&found, kind).iter().flat_map(|one| one.names.clone()).collect::<Vec<_>>();
    assert_eq!((names(Lack::Sending), names(Lack::Receiving)), (vec!["gpu002".to_owned()], vec!["gpu001".to_owned()]));
    let both = judged(&journal(&Scenario { pattern: pairs(2, |_, _| true), ..small(2) }));
    assert!(of(&both, Lack::Sending).is_empty() && of(&both, Lack::Receiving).is_empty());
}

/// As one of an odd number of hosts in a single random round.
#[test]
fn a_host_that_no_case_measures_is_never_a_pass() {
    let found = judged(&journal(&Scenario { pattern: pairs(8, |a, b| a < b && b < 8), ..Scenario::healthy(8, 1) }));
    let [hosts] = of(&found, Lack::Hosts)[..] else { panic!("{:?}", found.untested) };
    assert_eq!(
        (&hosts.names[..], &hosts.tests[..]),
        (&["gpu008".to_owned()][..], &["write-bw", "write-lat"].map(String::from)[..])
    );
    for test in &hosts.tests {
        let verdict = found.verdicts.iter().find(|one| one.kind == Kind::Parts && one.test == *test).unwrap();
        assert!(verdict.status == Status::Inconclusive && verdict.reason.to_string().contains("gpu008"), "{verdict:?}");
    }
}

/// Among two or three hosts no parts are judged: the verdict on the hosts says it, for flows at once too.
#[test]
fn a_host_that_no_case_of_a_small_plan_measures_is_never_a_pass() {
    let of = |hosts| judged(&journal(&Scenario { pattern: pairs(2, |a, b| a < b), ..Scenario::healthy(hosts, 1) }));
    let found = of(3);
    let hosts = found.verdicts.iter().find(|one| one.kind == Kind::Hosts).unwrap();
    assert!(hosts.reason.to_string().contains("gpu003") && !hosts.reason.to_string().contains("gpu002"), "{hosts:?}");
    assert_eq!((hosts.status, found.status), (Status::Inconclusive, Status::Inconclusive));
    assert!(of(2).verdicts.iter().all(|one| one.kind != Kind::Hosts));
}

/// Leaves the first demand of the bandwidth test alone.
fn limited(plan: &mut Plan) {
    for test in &mut plan.tests {
        test.expect.truncate(usize::from(test.name == "write-bw"));
        for demand in &mut test.expect {
            (demand.limit, demand.sizes) = (Limit::AtLeast(1.0), None);
        }
    }
}

/// Names of what has no limit in a run of so many hosts with a changed plan and without the outcomes of one test.
fn without_limit(hosts: usize, plan: &dyn Fn(&mut Plan), without: &str, kind: Lack) -> Vec<String> {
    let mut lines = Scenario { sizes: vec![1 << 24], ..small(hosts) }.lines();
    let mut cases = Vec::new();
    lines.retain_mut(|line| match &mut line.event {
        Event::Started { resolved, .. } => {
            plan(resolved);
            true
        }
        Event::Planned { cases: all } => {
            cases = all.iter().filter(|case| &*case.test == without).map(|case| case.id).collect();
            true
        }
        Event::Outcome(outcome) => !cases.contains(&outcome.case),
        _ => true,
    });
    let journal = parse(support::text(&lines).as_bytes(), Path::new("records.jsonl")).unwrap();
    let found = judged(&journal);
    of(&found, kind).iter().flat_map(|one| one.names.clone()).collect()
}

#[test]
fn what_no_limit_covers_is_listed_by_metric_and_size_and_not_of_tests_that_never_ran() {
    let plan = |metric: Metric, sizes: Option<(Bytes, Bytes)>| {
        move |plan: &mut Plan| {
            limited(plan);
            (plan.tests[0].expect[0].metric, plan.tests[0].expect[0].sizes) = (metric, sizes);
        }
    };
    let all = without_limit(4, &plan(Metric::Bandwidth, None), "", Lack::Limits);
    let alone = without_limit(4, &plan(Metric::Bandwidth, None), "", Lack::Values);
    assert_eq!([all, alone].concat(), ["write-lat", "tcp-baseline"]);
    let cpu = without_limit(4, &plan(Metric::CpuTimePerGib, None), "tcp-baseline", Lack::Limits);
    assert_eq!(cpu, ["bandwidth of write-bw", "write-lat"]);
    let sizes = |plan: &mut Plan| {
        limited(plan);
        let demand = plan.tests[0].expect.remove(0);
        let demand = Expectation { metric: Metric::LatencyP99, sizes: Some((Bytes(2), Bytes(64))), ..demand };
        plan.tests[1].expect.push(demand.clone());
        plan.tests[0].expect.push(Expectation { metric: Metric::Bandwidth, sizes: None, rails: vec![3], ..demand });
    };
    let names = without_limit(4, &sizes, "tcp-baseline", Lack::Limits);
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].starts_with("write-bw at 16 MiB") && names[1] == "write-lat at 1 KiB, 4 KiB", "{names:?}");
}

/// Two hosts have no peers, and a latency has no ceiling.
#[test]
fn values_without_limit_ceiling_and_peers_are_listed_by_themselves() {
    let none = |plan: &mut Plan| plan.tests.iter_mut().for_each(|test| test.expect.clear());
    assert_eq!(without_limit(2, &none, "", Lack::Limits), ["write-bw", "tcp-baseline"]);
    assert_eq!(without_limit(2, &none, "", Lack::Values), ["write-lat"]);
    assert_eq!(without_limit(6, &none, "tcp-baseline", Lack::Values), [""; 0]);
}
