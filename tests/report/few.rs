//! Two and three hosts: too few to name a part, and no pass where their links differ by far.

use std::path::Path;

use railgauge_analysis::{
    journal::{Journal, parse},
    results::results,
    rows::rows,
    status::Status,
    verdict::{Kind, Lack, Verdict, verdicts},
};
use railgauge_model::schedule::Flow;
use railgauge_report::draw;
use railgauge_wire::unit::{Bytes, Nanoseconds};

use crate::{
    outliers::change,
    rates::at_rates,
    support::{Scenario, followed::followed_up},
};

fn judged(scenario: &Scenario) -> Option<Verdict> {
    let journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let verdicts = verdicts(&journal, &results, &rows, Vec::new()).verdicts;
    verdicts.into_iter().find(|one| one.kind == Kind::Parts && one.test == "write-bw")
}

/// The run of a scenario in which the bandwidth of some pairs over RDMA is lower.
pub(crate) fn lowered(scenario: &Scenario, factor: f64, low: impl Fn(&str, u32, &str) -> bool) -> Journal {
    let mut journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
    let cases = journal.cases.clone();
    let is_low = |flow: &Flow| low(&flow.from.host, flow.from.rail, &flow.to.host);
    for one in &mut journal.tries {
        let case = &cases[one.case as usize];
        if &*case.test != "write-bw" || !is_low(&case.flow) {
            continue;
        }
        if let Ok(sample) = &mut one.result {
            let end = &mut sample.initiator;
            end.elapsed = Nanoseconds((end.elapsed.as_f64() / factor) as u64);
            end.slices.iter_mut().for_each(|bytes| *bytes = Bytes((bytes.as_f64() * factor) as u64));
        }
    }
    journal
}

/// What is named in the bandwidth test, first the one that stands for it.
fn named(journal: &Journal) -> Vec<(&'static str, Vec<String>)> {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let found = verdicts(journal, &results, &rows, Vec::new());
    let verdict = found.verdicts.iter().find(|one| one.kind == Kind::Parts && one.test == "write-bw");
    let of_test = found.localisation.iter().find(|found| found.test == "write-bw").unwrap();
    let all = of_test.suspects.iter().flat_map(|part| {
        let own = (part.kind, part.hosts.clone());
        [own].into_iter().chain(part.alternatives.iter().map(|other| (other.kind, other.hosts.clone())))
    });
    let all: Vec<_> = all.collect();
    let status = verdict.map(|verdict| verdict.status);
    assert_eq!(status, (!all.is_empty()).then_some(Status::Inconclusive), "{verdict:?}");
    all
}

fn host(name: &str) -> Vec<String> {
    vec![name.to_owned()]
}

/// Is gpu003 slow because of the network? It is, or both of its links are.
#[test]
fn one_slow_host_of_three_is_named_with_what_fits_as_well() {
    let once = (0..15).map(|seed| (1, 0.8, seed));
    for (repeats, factor, seed) in once.chain([(1, 0.5, 15), (3, 0.8, 16), (5, 0.5, 17)]) {
        let scenario = Scenario { repeats, seed, sizes: vec![1 << 24], ..Scenario::healthy(3, 1) };
        let journal = lowered(&scenario, factor, |from, _, to| [from, to].contains(&"gpu003"));
        assert_eq!(named(&journal), [("host", host("gpu003")), ("path", Vec::new())], "{repeats}, {factor}, {seed}");
        let banner = draw(&journal, Path::new("records.jsonl")).unwrap().view.banner;
        assert!(banner.causes.iter().any(|cause| cause.contains("host gpu003 or both of its links")), "{banner:?}");
        assert!(banner.remedy.as_ref().unwrap().text.ends_with("[more-partners]"), "{banner:?}");
        assert!(banner.causes.iter().all(|cause| !cause.contains("confirmed")), "{banner:?}");
    }
}

#[test]
fn one_slow_nic_between_two_hosts_is_one_of_its_ends_or_the_path() {
    for (rails, repeats) in [(2, 1), (8, 1), (8, 3)] {
        let scenario = Scenario { repeats, sizes: vec![1 << 24], ..Scenario::healthy(2, rails) };
        let found = named(&lowered(&scenario, 0.8, |_, rail, _| rail == 1));
        let both = ["gpu001", "gpu002"].map(String::from).to_vec();
        assert_eq!(found, [("nic", host("gpu001")), ("nic", host("gpu002")), ("path", both)], "{rails}, {repeats}");
    }
}

/// Both hosts are good with the third.
#[test]
fn one_slow_path_among_three_hosts_is_the_path_first() {
    let scenario = Scenario { repeats: 1, sizes: vec![1 << 24], ..Scenario::healthy(3, 2) };
    let pair = ["gpu001", "gpu002"];
    let found = named(&lowered(&scenario, 0.8, |from, _, to| pair.contains(&from) && pair.contains(&to)));
    assert_eq!((found[0].0, found[0].1.len()), ("path", 2));
    assert!(pair.iter().all(|host| found[0].1.contains(&(*host).to_owned())), "{found:?}");
}

/// A rail that is low between all pairs of three hosts is no host's.
#[test]
fn a_low_rail_of_three_hosts_is_the_rail() {
    let scenario = Scenario { repeats: 1, sizes: vec![1 << 24], ..Scenario::healthy(3, 4) };
    assert_eq!(named(&lowered(&scenario, 0.8, |_, rail, _| rail == 2))[0], ("rail", Vec::new()));
}

/// All pairs are measured again: what was low once is good, and what stays low cannot be distinguished from what fits as well.
#[test]
fn what_stands_out_among_few_hosts_is_measured_again() {
    let healthy = Scenario { repeats: 1, sizes: vec![1 << 24], ..Scenario::healthy(3, 1) };
    let slow = Scenario { slow: Some(2), ..healthy.clone() };
    for (after, status) in [(&slow, Status::Inconclusive), (&healthy, Status::Pass)] {
        let (text, cases) = followed_up(&slow, after);
        assert_eq!(cases.iter().filter(|case| &*case.test == "write-bw").count(), 6);
        let journal = parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
        let results = results(&journal).unwrap();
        let rows = rows(&journal, &results);
        let found = verdicts(&journal, &results, &rows, Vec::new());
        let verdict = found.verdicts.iter().find(|one| one.kind == Kind::Parts && one.test == "write-bw").unwrap();
        assert_eq!(verdict.status, status, "{}", verdict.reason);
        let named = &found.localisation.iter().find(|found| found.test == "write-bw").unwrap().suspects[0];
        assert_eq!((named.further.len(), named.hosts.as_slice()), (4, &["gpu003".to_owned()][..]));
    }
}

#[test]
fn hosts_that_are_alike_have_no_verdict_on_parts() {
    for (hosts, rails, repeats) in [(2, 1, 1), (2, 4, 1), (3, 1, 1), (3, 2, 5)] {
        for seed in 0..15 {
            let scenario = Scenario { seed, repeats, ..Scenario::healthy(hosts, rails) };
            assert_eq!(judged(&scenario), None, "{hosts} hosts, {rails} rails, {repeats} repeats, seed {seed}");
        }
    }
}

/// Why nothing is named, and what is known all the same.
#[test]
fn so_few_hosts_are_said_to_be_too_few() {
    let part = |scenario: Scenario| {
        let journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
        let parts = draw(&journal, Path::new("records.jsonl")).unwrap().view.parts.unwrap();
        format!("{} {}", parts.reasons.concat().join(" "), parts.tests.join("; "))
    };
    let alike = part(Scenario::healthy(3, 1));
    assert!(alike.contains("among 3 hosts, 4 are needed"), "{alike}");
    let unlike = part(Scenario { slow: Some(2), ..Scenario::healthy(3, 1) });
    assert!(unlike.contains("host gpu003"), "{unlike}");
}

/// Where one of two hosts is slow both are, and nothing shows which.
#[test]
fn two_hosts_show_of_neither_that_it_is_good() {
    for (hosts, rails, is_said) in [(2, 1, true), (2, 4, true), (3, 1, false)] {
        let scenario = Scenario { slow: Some(1), sizes: vec![1 << 24], ..Scenario::healthy(hosts, rails) };
        let journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
        let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
        let of = drawn.verdicts.untested.iter().find(|one| one.kind == Lack::Peers);
        let both = ["gpu001", "gpu002"].map(String::from).to_vec();
        assert_eq!(of.map(|one| one.names.clone()), is_said.then_some(both), "{hosts} hosts, {rails} rails");
        let _ = drawn.view.parts.unwrap();
    }
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
