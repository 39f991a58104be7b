//! Hosts that a plan measures in one direction only, or not at all.

use std::path::Path;

use railgauge::analysis::{
    journal::parse,
    localise::localise,
    results::results,
    rows::rows,
    verdict::{Kind, Status, verdicts},
};
use railgauge_model::plan::model::Pattern;

use crate::support::Scenario;

#[test]
fn what_a_host_never_sends_is_told_beside_that_nothing_stands_out() {
    let name = |number: usize| format!("gpu{:03}", (number - 1) % 8 + 1);
    let pair = |from: usize, to: usize| if from == 3 { (name(to), name(from)) } else { (name(from), name(to)) };
    let pairs = (1..=8).flat_map(|from| (1..=3).map(move |step| pair(from, from + step))).collect();
    let scenario = Scenario { pattern: Some(Pattern::Pairs(pairs)), ..Scenario::healthy(8, 1) };
    let journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let found = localise(&journal, &results, &rows);
    let of = |unit: &str| found.iter().filter(|test| test.unit == unit && !test.good.is_empty()).collect::<Vec<_>>();
    assert!(!of("Gb/s").is_empty() && !of("µs").is_empty(), "{found:?}");
    for test in of("Gb/s") {
        // Neighbours go one way each, as the plan means it.
        let wanted: &[&str] = if test.test == "tcp-baseline" { &[] } else { &["gpu003"] };
        assert_eq!(test.one_way.never_sent, wanted, "{}", test.test);
        assert!(test.one_way.never_received.is_empty());
    }
    // A latency goes both ways.
    assert!(of("µs").iter().all(|test| test.one_way.is_empty()));
    let judged = verdicts(&journal, &results, &rows, Vec::new());
    let told = judged.verdicts.iter().filter(|verdict| {
        verdict.kind == Kind::Parts && verdict.unit.as_deref() == Some("Gb/s") && verdict.test != "tcp-baseline"
    });
    assert!(told.clone().count() > 0 && told.clone().all(|verdict| verdict.reason.to_string().contains("gpu003")));
}

/// As one of an odd number of hosts in a single random round.
#[test]
fn a_host_that_no_case_measures_is_never_a_pass() {
    let name = |number: usize| format!("gpu{number:03}");
    let pairs = (1..=7).flat_map(|from| (from + 1..=7).map(move |to| (name(from), name(to)))).collect();
    let scenario = Scenario { pattern: Some(Pattern::Pairs(pairs)), ..Scenario::healthy(8, 1) };
    let journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let judged = verdicts(&journal, &results, &rows, Vec::new());
    let of = |test: &str| judged.verdicts.iter().find(|one| one.kind == Kind::Parts && one.test == test);
    let mut told = 0;
    for found in judged.localisation.iter().filter(|found| found.test != "tcp-baseline") {
        assert_eq!(found.unmeasured, ["gpu008"], "{}", found.test);
        let verdict = of(&found.test).unwrap();
        assert!(verdict.status == Status::Inconclusive && verdict.reason.to_string().contains("gpu008"), "{verdict:?}");
        told += 1;
    }
    assert!(told > 0);
}

/// Among two or three hosts no parts are judged: the verdict on the hosts says it, for flows at once too.
#[test]
fn a_host_that_no_case_of_a_small_plan_measures_is_never_a_pass() {
    let pairs = vec![("gpu001".to_owned(), "gpu002".to_owned())];
    let of = |hosts: usize| {
        let scenario = Scenario { pattern: Some(Pattern::Pairs(pairs.clone())), ..Scenario::healthy(hosts, 1) };
        let journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
        let results = results(&journal).unwrap();
        let rows = rows(&journal, &results);
        verdicts(&journal, &results, &rows, Vec::new())
    };
    let judged = of(3);
    let hosts = judged.verdicts.iter().find(|one| one.kind == Kind::Hosts).unwrap();
    assert!(hosts.reason.to_string().contains("gpu003") && !hosts.reason.to_string().contains("gpu002"), "{hosts:?}");
    assert_eq!((hosts.status, judged.status), (Status::Inconclusive, Status::Inconclusive));
    assert!(of(2).verdicts.iter().all(|one| one.kind != Kind::Hosts));
}
