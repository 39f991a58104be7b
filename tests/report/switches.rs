//! What made-up runs say of the cables and switches between hosts.

use std::{collections::HashMap, path::Path};

use railgauge_analysis::{
    journal::{Journal, parse},
    results::results,
    row::Row,
    rows::rows,
    status::Status,
    switches::{OnLinks, Switches, switches},
    verdict::{Kind, Verdict, verdicts},
};
use railgauge_model::{
    plan::model::Topology,
    topology::told::{Cable, Device, Nic, Plug, Switch, Told},
};

use crate::support::Scenario;

/// Hosts below each leaf.
const EACH: usize = 4;

/// One size is enough to judge links.
fn small(hosts: usize) -> Scenario {
    Scenario { sizes: vec![1 << 24], ..Scenario::healthy(hosts, 1) }
}

/// The leaf of a host by its name.
fn leaf(scenario: &Scenario, host: &str) -> usize {
    (0..scenario.hosts).position(|at| scenario.name(at) == host).unwrap() / EACH
}

/// Divides what the flows carry for which this holds by the number of those that ran at the same time from the same leaf, times this.
/// Returns these numbers.
fn share(scenario: &Scenario, rows: &mut [Row], factor: f64, shares: impl Fn(usize, usize) -> bool) -> Vec<u32> {
    let leaves = |row: &Row| (leaf(scenario, &row.src_host), leaf(scenario, &row.dst_host));
    let is_one = |row: &Row| row.value.is_some() && shares(leaves(row).0, leaves(row).1);
    let moment = |row: &Row| (row.test.clone(), row.metric, row.round, row.size_bytes, row.qps, leaves(row).0);
    let mut flows = HashMap::new();
    rows.iter().filter(|row| is_one(row)).for_each(|row| *flows.entry(moment(row)).or_insert(0) += 1);
    for row in rows.iter_mut().filter(|row| is_one(row)) {
        row.value = row.value.map(|value| factor * value / f64::from(flows[&moment(row)]));
    }
    flows.into_values().collect()
}

fn plug(switch: String, port: usize) -> Plug {
    Plug { device: Device::Switch(switch), port: Some(port.to_string()) }
}

/// Leaves with four hosts each below one spine; links that are never full.
pub fn tree(scenario: &Scenario) -> Topology {
    let mut told = Told { source: "made up".into(), ..Told::default() };
    let cable = |a, b| Cable { a, b, rate_gbps: Some(1600.0), width: None, speed: None };
    let mut named = |name: &str| {
        told.switches.insert(name.to_owned(), Switch { name: name.to_owned(), ..Switch::default() });
    };
    named("spine");
    (0..scenario.hosts / EACH).for_each(|leaf| named(&format!("leaf{leaf}")));
    for host in 0..scenario.hosts {
        let nic = Nic { host: Some(scenario.name(host)), ..Nic::default() };
        let a = Plug { device: Device::Nic(nic), port: None };
        told.cables.push(cable(a, plug(format!("leaf{}", host / EACH), 1 + host % EACH)));
    }
    for leaf in 0..scenario.hosts / EACH {
        told.cables.push(cable(plug(format!("leaf{leaf}"), 31), plug("spine".into(), 1 + leaf)));
    }
    Topology { told: vec![told] }
}

fn journal(scenario: &Scenario) -> Journal {
    let mut journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
    journal.plan.topology = Some(tree(scenario));
    journal
}

/// What is found where flows for which this holds, by the leaves of their ends, carry 70 %.
fn found(scenario: &Scenario, is_low: impl Fn(usize, usize) -> bool) -> (Switches, Vec<(Status, String)>) {
    let journal = journal(scenario);
    let results = results(&journal).unwrap();
    let mut rows = rows(&journal, &results);
    let low = |row: &&mut Row| is_low(leaf(scenario, &row.src_host), leaf(scenario, &row.dst_host));
    rows.iter_mut().filter(low).for_each(|row| row.value = row.value.map(|value| 0.7 * value));
    let all = verdicts(&journal, &results, &rows, Vec::new());
    let on_links = all.verdicts.iter().filter(|verdict| verdict.kind == Kind::Links);
    let on_links = on_links.map(|verdict| (verdict.status, verdict.reason.to_string())).collect();
    (switches(&journal, (&results, &rows), &[]).unwrap(), on_links)
}

/// The test of writes over verbs.
fn of_writes(switches: &Switches) -> &OnLinks {
    switches.links.iter().find(|links| links.of > 0 && links.flows > 0).unwrap()
}

#[test]
fn on_a_healthy_fabric_no_link_stands_out() {
    for hosts in [8, 16] {
        let (switches, verdicts) = found(&small(hosts), |_, _| false);
        assert_eq!(
            (switches.leaves, switches.switches, switches.switch_links),
            (hosts / EACH, hosts / EACH + 1, hosts / EACH)
        );
        for links in &switches.links {
            assert!(links.suspects.is_empty() && links.unexplained == 0, "{links:?}");
        }
        let links = of_writes(&switches);
        assert_eq!((links.passed, links.of), (2 * hosts / EACH, 2 * hosts / EACH));
        assert!(!verdicts.is_empty() && verdicts.iter().all(|(status, _)| *status == Status::Pass), "{verdicts:?}");
    }
}

#[test]
fn one_direction_of_one_cable_is_named_where_a_technician_finds_it() {
    let (switches, verdicts) = found(&small(16), |from, to| from == 2 && to != 2);
    let links = of_writes(&switches);
    let [suspect] = links.suspects.as_slice() else { panic!("{links:?}") };
    assert_eq!(suspect.name, "leaf2 port 31 to spine port 3");
    assert!(suspect.between_switches && suspect.low > 0);
    let (change, (low, high)) = (suspect.change_percent, suspect.interval_percent.unwrap());
    assert!(low <= -30.0 && -30.0 <= high && (change + 30.0).abs() < 2.0, "{suspect:?}");
    // It is a suspect, so nothing fails by it, and nothing passes.
    let told: Vec<_> = verdicts.iter().filter(|(_, reason)| reason.contains("leaf2 port 31 to spine port 3")).collect();
    assert!(!told.is_empty() && told.iter().all(|(status, _)| *status == Status::Inconclusive), "{verdicts:?}");
}

/// Three flows on a cable that carries half of what one can: each has a sixth, and the cable is at half.
#[test]
fn flows_that_share_a_slow_cable_do_not_make_it_slower() {
    let scenario = small(16);
    let journal = journal(&scenario);
    let results = results(&journal).unwrap();
    let mut rows = rows(&journal, &results);
    let flows = share(&scenario, &mut rows, 0.5, |from, to| from == 2 && to != 2);
    assert!(flows.iter().any(|count| *count > 1) && flows.contains(&1), "{flows:?}");
    let switches = switches(&journal, (&results, &rows), &[]).unwrap();
    let links = of_writes(&switches);
    let [suspect] = links.suspects.as_slice() else { panic!("{links:#?}") };
    assert_eq!((suspect.name.as_str(), suspect.alternatives.len()), ("leaf2 port 31 to spine port 3", 0));
    assert!((suspect.change_percent + 50.0).abs() < 5.0, "{suspect:?}");
}

/// A cable that carries one flow well and two only together as one: nobody may call it good.
#[test]
fn a_cable_at_half_its_rate_is_no_pass_where_single_flows_are_good() {
    let scenario = small(16);
    let mut journal = journal(&scenario);
    for cable in journal.plan.topology.iter_mut().flat_map(|topology| &mut topology.told[0].cables) {
        cable.rate_gbps = Some(800.0);
    }
    let results = results(&journal).unwrap();
    let mut rows = rows(&journal, &results);
    share(&scenario, &mut rows, 1.0, |from, to| from == 2 && to != 2);
    let all = verdicts(&journal, &results, &rows, Vec::new());
    let links = of_writes(all.switches.as_ref().unwrap()).clone();
    let of_test =
        all.verdicts.iter().find(|verdict| verdict.kind == Kind::Links && verdict.test == links.test).unwrap();
    assert_ne!(of_test.status, Status::Pass, "{links:#?}");
}

#[test]
fn flows_without_a_value_are_no_pass() {
    let scenario = small(16);
    let journal = journal(&scenario);
    let results = results(&journal).unwrap();
    let mut rows = rows(&journal, &results);
    let dead = |row: &&mut Row| leaf(&scenario, &row.src_host) == 2 && leaf(&scenario, &row.dst_host) != 2;
    rows.iter_mut().filter(dead).for_each(|row| row.value = None);
    let all = verdicts(&journal, &results, &rows, Vec::new());
    let links = of_writes(all.switches.as_ref().unwrap()).clone();
    assert!(links.failed > 0 && links.passed < links.of, "{links:#?}");
    let of_test =
        all.verdicts.iter().find(|verdict| verdict.kind == Kind::Links && verdict.test == links.test).unwrap();
    assert_eq!(of_test.status, Status::Inconclusive);
}

/// Whoever never named his switches has many of one name.
#[test]
fn switches_of_one_name_stay_apart() {
    let mut journal = journal(&small(16));
    for switch in journal.plan.topology.as_mut().unwrap().told[0].switches.values_mut() {
        switch.name = "Quantum".into();
    }
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    let switches = switches(&journal, (&results, &rows), &[]).unwrap();
    assert_eq!((switches.switches, switches.leaves), (5, 4));
}

#[test]
fn a_host_is_no_switch() {
    // Every flow of one host is low, within its leaf and beyond.
    let scenario = Scenario { slow: Some(5), ..small(16) };
    let (switches, verdicts) = found(&scenario, |_, _| false);
    let links = of_writes(&switches);
    assert!(!links.suspects.is_empty() && links.suspects.iter().all(|suspect| !suspect.between_switches), "{links:?}");
    assert!(links.suspects[0].name.contains("leaf1 port 2"), "{links:?}");
    assert!(verdicts.iter().all(|(status, _)| *status == Status::Pass), "{verdicts:?}");
}

#[test]
fn flows_that_fill_a_link_together_are_not_held_against_it() {
    let scenario = small(16);
    let mut journal = journal(&scenario);
    // A cable carries what one NIC does.
    let alone = results(&journal).unwrap();
    let fastest = rows(&journal, &alone)
        .iter()
        .filter(|row| row.unit() == "Gb/s")
        .filter_map(|row| row.value)
        .fold(0.0, f64::max);
    for cable in journal.plan.topology.iter_mut().flat_map(|topology| &mut topology.told[0].cables) {
        cable.rate_gbps = Some(fastest);
    }
    let results = results(&journal).unwrap();
    let mut rows = rows(&journal, &results);
    share(&scenario, &mut rows, 1.0, |from, to| from != to);
    let switches = switches(&journal, (&results, &rows), &[]).unwrap();
    let links = of_writes(&switches);
    assert!(links.contended > 0 && links.suspects.is_empty(), "{links:?}");
}

/// A link that carries more than its rate has another rate, or its flows took another way: nothing is known to be loaded.
#[test]
fn more_than_a_link_can_carry_is_no_coverage() {
    let scenario = small(16);
    let status = |gbps: f64| {
        let mut journal = journal(&scenario);
        for test in &mut journal.plan.tests {
            test.links_covered = Some(100.0);
        }
        for cable in journal.plan.topology.iter_mut().flat_map(|topology| &mut topology.told[0].cables) {
            cable.rate_gbps = Some(gbps);
        }
        let results = results(&journal).unwrap();
        let rows = rows(&journal, &results);
        let all = verdicts(&journal, &results, &rows, Vec::new());
        let of_links = |verdict: &&Verdict| verdict.kind == Kind::Links && verdict.demand.contains("loaded");
        let verdict = all.verdicts.iter().find(of_links).unwrap();
        let impossible = &all.switches.as_ref().unwrap().loaded[0].impossible;
        (verdict.status, impossible.len(), verdict.reason.to_string())
    };
    let (passed, none, why) = status(900.0);
    assert_eq!((passed, none), (Status::Pass, 0), "{why}");
    let (open, some, why) = status(100.0);
    assert!(open == Status::Inconclusive && some > 0 && why.contains("link_rate"), "{why}");
}
