//! Two and three hosts: too few to name a part, and no pass where their links differ by far.

use std::path::Path;

use railgauge::{
    analysis::{
        journal::parse,
        results::results,
        rows::rows,
        verdict::{Kind, Status, Verdict, verdicts},
    },
    report::draw,
};

use crate::{outliers::change, rates::at_rates, support::Scenario};

fn judged(scenario: &Scenario) -> Option<Verdict> {
    let journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let parts = draw(&journal, Path::new("records.jsonl")).unwrap().view.parts.unwrap();
    let verdicts = verdicts(&journal, &results, &rows, Vec::new()).verdicts;
    let found = verdicts.into_iter().find(|one| one.kind == Kind::Parts && one.test == "write-bw");
    let passed = found.as_ref().is_none_or(|found| found.status == Status::Pass);
    assert!(passed || !parts.nothing, "{}", parts.sentence);
    found
}

#[test]
fn one_slow_host_of_three_is_no_pass() {
    for repeats in [1, 5] {
        let scenario = Scenario { slow: Some(2), repeats, ..Scenario::healthy(3, 1) };
        let verdict = judged(&scenario).unwrap();
        assert_eq!(verdict.status, Status::Inconclusive, "{repeats}: {}", verdict.reason);
    }
}

#[test]
fn hosts_that_are_alike_have_no_verdict_on_parts() {
    for (hosts, rails, repeats) in [(2, 1, 1), (2, 4, 1), (3, 1, 1), (3, 2, 5)] {
        for seed in 0..6 {
            let scenario = Scenario { seed, repeats, ..Scenario::healthy(hosts, rails) };
            assert_eq!(judged(&scenario), None, "{hosts} hosts, {rails} rails, {repeats} repeats, seed {seed}");
        }
    }
}

/// The banner says why nothing is named, and what is known all the same.
#[test]
fn so_few_hosts_are_said_to_be_too_few() {
    let part = |scenario: Scenario| {
        let journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
        draw(&journal, Path::new("records.jsonl")).unwrap().view.banner.part.text
    };
    let alike = part(Scenario::healthy(3, 1));
    assert!(alike.contains("3 hosts are too few") && alike.contains("do not differ"), "{alike}");
    let unlike = part(Scenario { slow: Some(2), ..Scenario::healthy(3, 1) });
    assert!(unlike.contains("two clusters") && !unlike.contains("do not differ"), "{unlike}");
    // Enough of them.
    let enough = part(Scenario::healthy(6, 1));
    assert_eq!(enough, "No part stands out.");
}

/// The first host is behind another switch.
#[test]
fn latencies_across_groups_may_be_higher() {
    let scenario = Scenario { sizes: vec![1 << 20], ..Scenario::healthy(3, 1) };
    for (groups, told) in [(true, false), (false, true)] {
        let mut journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
        if !groups {
            journal.plan.groups.clear();
        }
        change(&mut journal, |test, _, ends| test == "write-lat" && ends.contains(&"gpu001"), 1.6);
        let results = results(&journal).unwrap();
        let rows = rows(&journal, &results);
        let verdicts = verdicts(&journal, &results, &rows, Vec::new()).verdicts;
        let found = verdicts.iter().any(|one| one.kind == Kind::Parts && one.test == "write-lat");
        assert_eq!(found, told, "{verdicts:?}");
    }
}

/// Its links reach what they can, so that no two clusters are told.
#[test]
fn a_port_at_half_its_rate_among_few_hosts_is_no_pass() {
    for (hosts, rails) in [(2, 4), (3, 4)] {
        let scenario = Scenario { sizes: vec![1 << 20], ..Scenario::healthy(hosts, rails) };
        let mut journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
        at_rates(&mut journal, &|host, rail| if (host, rail) == ("gpu002", 3) { 0.5 } else { 1.0 });
        let results = results(&journal).unwrap();
        let rows = rows(&journal, &results);
        let verdicts = verdicts(&journal, &results, &rows, Vec::new()).verdicts;
        let found = verdicts.iter().find(|one| one.kind == Kind::Parts && one.test == "write-bw");
        assert!(found.is_some_and(|found| found.status == Status::Inconclusive), "{hosts} hosts: {found:?}");
    }
}
