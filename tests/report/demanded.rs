//! States of hosts whose own values break a demand of the plan.

use std::{collections::BTreeMap, path::Path};

use railgauge_analysis::{
    journal::{Journal, parse},
    verdict::Judged,
};
use railgauge_model::{
    plan::model::{Expectation, Limit, Pattern, Waiver},
    schedule::Flow,
};
use railgauge_report::draw;
use railgauge_wire::{Bytes, Failure, Kind, Metric, Stage};

use crate::{
    bisect::{self, Cluster, FLOOR, search},
    few::lowered,
    noise::{healthy, noisy, wide},
    support::{Scenario, followed::followed_up},
};

const SMALL: Bytes = Bytes(1 << 16);
const LARGE: Bytes = Bytes(1 << 20);

fn journal(of: &Scenario) -> Journal {
    parse(of.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap()
}

/// Three sizes between hosts with one NIC each.
fn scenario(hosts: usize) -> Scenario {
    Scenario { sizes: vec![SMALL.0, LARGE.0, 1 << 24], repeats: 1, ..Scenario::healthy(hosts, 1) }
}

fn limit(gbps: f64) -> Expectation {
    Expectation {
        metric: Metric::Bandwidth,
        limit: Limit::AtLeast(gbps),
        written: None,
        source: None,
        sizes: None,
        rails: Vec::new(),
        group: None,
        line: 1,
    }
}

fn with(mut journal: Journal, limit: Expectation) -> Journal {
    journal.plan.tests[0].expect = vec![limit];
    journal
}

/// Of the hosts in the first test.
fn states(journal: &Journal) -> BTreeMap<String, Option<Judged>> {
    let verdicts = draw(journal, Path::new("records.jsonl")).unwrap().verdicts;
    let of_test = verdicts.components.into_iter().find(|of| of.test == journal.plan.tests[0].name).unwrap();
    let hosts = of_test.components.into_iter().filter(|one| one.kind == "host");
    hosts.map(|one| (one.hosts.concat(), one.state)).collect()
}

fn all(journal: &Journal, state: Option<Judged>) -> bool {
    let states = states(journal);
    !states.is_empty() && states.values().all(|one| *one == state)
}

#[test]
fn a_limit_on_a_part_of_the_values_that_all_of_them_break_leaves_no_host_good() {
    for hosts in 2..=8 {
        let healthy = journal(&scenario(hosts));
        let of_size = with(healthy.clone(), Expectation { sizes: Some((SMALL, SMALL)), ..limit(1000.0) });
        assert!(all(&of_size, Some(Judged::Undecided)), "{hosts}: {:?}", states(&of_size));
        let of_rail = with(healthy, Expectation { rails: vec![0], ..limit(1000.0) });
        assert!(all(&of_rail, Some(Judged::Undecided)), "{hosts}: {:?}", states(&of_rail));
    }
}

#[test]
fn a_limit_of_a_group_is_about_its_hosts_only() {
    for hosts in 4..=8 {
        let of_group = |gbps| Expectation { group: Some("leaf1".into()), ..limit(gbps) };
        // By chance a host is named that explains them.
        let names_none = |journal: &Journal| {
            let verdicts = draw(journal, Path::new("records.jsonl")).unwrap().verdicts;
            verdicts.localisation.iter().all(|found| found.suspects.is_empty())
        };
        let seeds = (0..20).map(|seed| Scenario { seed, ..scenario(hosts) });
        let healthy = seeds.map(|scenario| journal(&scenario)).find(names_none).unwrap();
        let [kept, broken] = [0.001, 1000.0].map(|gbps| states(&with(healthy.clone(), of_group(gbps))));
        let of_group = healthy.plan.groups["leaf1"].clone();
        for (host, state) in &broken {
            let wanted = if of_group.contains(host) { Some(Judged::Undecided) } else { kept[host] };
            assert_eq!(*state, wanted, "{hosts}: {host}");
        }
    }
}

#[test]
fn noise_does_not_hide_that_values_break_a_limit() {
    let noisy = noisy(&healthy(8), 0, &wide);
    assert!(all(&with(noisy.clone(), limit(1000.0)), Some(Judged::Undecided)));
    assert!(all(&with(noisy, limit(0.001)), None));
}

#[test]
fn of_two_hosts_one_direction_that_breaks_a_limit_leaves_neither_good() {
    let [a, b] = ["gpu001", "gpu002"].map(String::from);
    let pattern = Some(Pattern::Pairs(vec![(a.clone(), b.clone()), (b, a)]));
    let both_ways = Scenario { pattern, ..scenario(2) };
    let one_way = lowered(&both_ways, 0.7, |from, _, _| from == "gpu001");
    let broken = Expectation { sizes: Some((LARGE, LARGE)), ..limit(150.0) };
    let broken = with(one_way, broken);
    assert!(all(&broken, Some(Judged::Undecided)), "{:?}", states(&broken));
}

/// Values that a named part explains are no evidence about other hosts; nor are those that the plan waives.
#[test]
fn hosts_are_good_where_something_else_explains_their_values() {
    let states_of = |found: BTreeMap<String, Option<Judged>>, bad: &[&str]| {
        for (host, state) in found {
            assert_eq!(state == Some(Judged::Good), !bad.contains(&&*host), "{bad:?}: {host} {state:?}");
        }
    };
    let large = Expectation { sizes: Some((LARGE, Bytes(u64::MAX))), ..limit(150.0) };
    for (slow_hosts, bad) in [(1, &["gpu005"][..]), (2, &["gpu005", "gpu006"])] {
        let slow = Scenario { slow: Some(4), slow_hosts, ..scenario(8) };
        // Suspects, and confirmed.
        let (text, _) = followed_up(&slow, &slow);
        for found in [journal(&slow), parse(text.as_bytes(), Path::new("records.jsonl")).unwrap()] {
            states_of(states(&with(found, large.clone())), bad);
        }
    }
    let mut waived = lowered(&scenario(3), 0.3, |from, _, to| [from, to].contains(&"gpu003"));
    waived.plan.localise.waive = vec![Waiver::Host("gpu003".into())];
    waived = with(waived, large);
    let found = states(&waived);
    assert!(["gpu001", "gpu002"].iter().all(|host| found[*host] <= Some(Judged::Good)), "{found:?}");
}

#[test]
fn ranks_of_a_collective_that_reaches_no_limit_are_neither_good_nor_faulty() {
    let [low, met] = ["4800", "1"].map(|limit| FLOOR.replace("480", limit));
    for keys in ["", "groups = \"pairs\"\n", "groups = \"every\"\ngroup_size = 4\n"] {
        let mut cluster = Cluster::new(&[]);
        let mut journal = bisect::run(&mut cluster, &format!("{keys}{low}"));
        search(&mut cluster, &mut journal);
        assert!(all(&journal, Some(Judged::Undecided)), "{keys}: {:?}", states(&journal));
        assert!(all(&bisect::run(&mut cluster, &format!("{keys}{met}")), Some(Judged::Good)), "{keys}");
    }
    // A host explains it, or a boundary.
    let mut cluster = Cluster::new(&[&["a05"]]);
    let mut journal = bisect::run(&mut cluster, FLOOR);
    search(&mut cluster, &mut journal);
    let found = states(&journal);
    assert!(found.iter().all(|(host, state)| *state <= Some(Judged::Good) || host == "a05"), "{found:?}");
    let sides: [&[&'static str]; 2] =
        [&["a01", "a02", "a03", "a04", "a05", "a06"], &["a07", "a08", "a09", "a10", "a11", "a12"]];
    let mut cluster = Cluster::new(&sides);
    let mut journal = bisect::run(&mut cluster, FLOOR);
    search(&mut cluster, &mut journal);
    let found = states(&journal);
    assert!(found.values().all(|state| *state <= Some(Judged::Good)), "{found:?}");
}

/// Its agent answers, and every case of it fails.
#[test]
fn a_host_whose_cases_all_fail_is_not_good() {
    let mut journal = with(journal(&scenario(8)), limit(1.0));
    let cases = journal.cases.clone();
    let is_its = |flow: &Flow| flow.hosts().iter().any(|host| &***host == "gpu003");
    for tried in journal.tries.iter_mut().filter(|tried| is_its(&cases[tried.case as usize].flow)) {
        tried.result = Err(Failure::new(Stage::Connect, Kind::Fabric, "no route").at("gpu003"));
    }
    for (host, state) in states(&journal) {
        let wanted = if host == "gpu003" { Judged::Undecided } else { Judged::Good };
        assert_eq!(state, Some(wanted), "{host}");
    }
}
