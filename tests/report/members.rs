//! A bond that lacks a member is told by an expectation in percent of the ceiling where the ceiling would be higher with that
//! member, and nowhere else.

use std::{path::Path, sync::Arc};

use railgauge_analysis::{
    journal::{Journal, parse},
    reason::Id,
    results::results,
    rows::rows,
    verdict::verdicts,
};
use railgauge_model::plan::model::{AtOnce, Expectation, Limit, Pattern};
use railgauge_wire::{
    facts::{Bond, BondMember, HostFacts, Interface, RateSource},
    terms::Metric,
    unit::{GigabitsPerSecond, MegabitsPerSecond},
};

use serde_json::json;

use crate::support::Scenario;

/// Makes the port of a host one of a bond of two members of 200 Gb/s, whose links are so.
fn bonded(facts: &mut HostFacts, mode: &str, links: [&str; 2]) {
    let waits = |at| mode == "active-backup" && at > 0;
    let member = |(at, link): (usize, &str)| BondMember {
        name: format!("port{at}"),
        link: Some(link.to_owned()),
        state: Some(if link == "up" && !waits(at) { "active" } else { "backup" }.to_owned()),
        speed_mbps: (link == "up").then_some(MegabitsPerSecond(200_000)),
    };
    let members: Vec<BondMember> = links.into_iter().enumerate().map(member).collect();
    let carrying = members.iter().filter(|member| member.carries()).count();
    let port = &mut facts.rdma[0].ports[0];
    port.members = members.iter().map(|member| member.name.clone()).collect();
    port.netdev = Some("bond0".into());
    (port.rate_gbps, port.rate_source) = (Some(GigabitsPerSecond(200.0 * carrying as f64)), Some(RateSource::Members));
    let bond = Some(Bond::Master(mode.to_owned()));
    facts.interfaces.push(Interface { name: "bond0".into(), bond, members, ..Interface::default() });
    facts.rdma[0].pcie = Some((32.0, 16));
}

/// A run of three hosts whose ports are whole bonds.
fn journal(mode: &str, pattern: Pattern, qps: u32) -> Journal {
    let scenario = Scenario { sizes: vec![1 << 20], repeats: 1, pattern: Some(pattern), ..Scenario::healthy(3, 1) };
    let mut journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
    journal.hosts.values_mut().for_each(|up| bonded(&mut up.facts, mode, ["up", "up"]));
    for case in journal.cases.iter_mut().filter(|case| &*case.test == "write-bw") {
        Arc::make_mut(&mut case.cell).qps = qps;
    }
    let test = &mut journal.plan.tests[0];
    test.qps = vec![qps];
    test.expect = [Metric::Bandwidth, Metric::IngressBandwidth, Metric::TotalBandwidth]
        .map(|metric| Expectation {
            metric,
            limit: Limit::PercentOfCeiling(80.0),
            written: None,
            sizes: None,
            rails: Vec::new(),
            group: None,
            line: 20,
        })
        .to_vec();
    journal
}

/// Takes the second member of a host's bond away.
fn degrade(journal: &mut Journal, host: &str, mode: &str) {
    let facts = &mut journal.hosts.get_mut(host).unwrap().facts;
    facts.interfaces.retain(|interface| interface.name != "bond0");
    bonded(facts, mode, ["up", "down"]);
}

/// The hosts that the expectation on a metric tells of.
fn told(journal: &Journal, metric: Metric) -> Vec<String> {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let all = verdicts(journal, &results, &rows, Vec::new()).verdicts;
    let verdict = all.into_iter().find(|one| one.metric == Some(metric) && one.line == Some(20)).unwrap();
    let found: Vec<_> = verdict.reason.iter().filter(|reason| reason.id == Id::FewerMembers).collect();
    for bond in &found {
        let [name, carrying, of] = ["bond", "carrying", "of"].map(|field| bond.json(field));
        assert_eq!((name, &bond.subject[..]), (json!("bond0"), &["port1".to_owned()][..]));
        assert_eq!((carrying, of), (json!(1), json!(2)));
    }
    found.into_iter().flat_map(|bond| bond.hosts.clone()).collect()
}

const LACP: &str = "802.3ad";

#[test]
fn a_missing_member_is_told_where_queue_pairs_would_use_it() {
    let mut whole = journal(LACP, Pattern::Tournament, 2);
    assert_eq!(told(&whole, Metric::Bandwidth), [""; 0]);
    degrade(&mut whole, "gpu002", LACP);
    assert_eq!(told(&whole, Metric::Bandwidth), ["gpu002"]);
    // With all ends lacking one none is the only one to blame.
    for host in ["gpu001", "gpu003"] {
        degrade(&mut whole, host, LACP);
    }
    assert_eq!(told(&whole, Metric::Bandwidth), ["gpu001", "gpu002", "gpu003"]);
}

/// One queue pair uses one member, whose ceiling is the same with and without the other.
#[test]
fn one_queue_pair_misses_no_member() {
    let mut one = journal(LACP, Pattern::Tournament, 1);
    degrade(&mut one, "gpu002", LACP);
    assert_eq!(told(&one, Metric::Bandwidth), [""; 0]);
    // Unless the bond spreads the packets of one connection.
    let mut spread = journal("balance-rr", Pattern::Tournament, 1);
    degrade(&mut spread, "gpu002", "balance-rr");
    assert_eq!(told(&spread, Metric::Bandwidth), ["gpu002"]);
}

#[test]
fn a_spare_member_is_not_missed() {
    let mut spare = journal("active-backup", Pattern::Tournament, 8);
    degrade(&mut spare, "gpu002", "active-backup");
    assert_eq!(told(&spare, Metric::Bandwidth), [""; 0]);
}

/// Each port of the bond has a device of its own, and its rate is that of one member.
#[test]
fn a_device_for_each_member_misses_none() {
    let mut each = journal(LACP, Pattern::Tournament, 8);
    degrade(&mut each, "gpu002", LACP);
    for up in each.hosts.values_mut() {
        let port = &mut up.facts.rdma[0].ports[0];
        port.members.truncate(1);
        (port.rate_gbps, port.rate_source) = (Some(GigabitsPerSecond(200.0)), Some(RateSource::Driver));
    }
    assert_eq!(told(&each, Metric::Bandwidth), [""; 0]);
}

#[test]
fn what_something_else_limits_misses_no_member() {
    let mut slot = journal(LACP, Pattern::Tournament, 8);
    degrade(&mut slot, "gpu002", LACP);
    // 126 Gb/s: less than one member carries.
    slot.hosts.values_mut().for_each(|up| up.facts.rdma[0].pcie = Some((8.0, 16)));
    assert_eq!(told(&slot, Metric::Bandwidth), [""; 0]);
    // The other ends have one port of that rate.
    let mut other = journal(LACP, Pattern::Tournament, 8);
    degrade(&mut other, "gpu002", LACP);
    for host in ["gpu001", "gpu003"] {
        let port = &mut other.hosts.get_mut(host).unwrap().facts.rdma[0].ports[0];
        (port.members, port.netdev, port.rate_source) = (Vec::new(), Some("eth1".into()), Some(RateSource::Driver));
        port.rate_gbps = Some(GigabitsPerSecond(200.0));
    }
    assert_eq!(told(&other, Metric::Bandwidth), [""; 0]);
}

/// Two flows of one queue pair each may use both members of the bond that they arrive at.
#[test]
fn flows_at_once_miss_the_member_of_the_nic_that_they_share() {
    let incast = || journal(LACP, Pattern::AtOnce(AtOnce::Incast(Some("gpu001".into()))), 1);
    let all = [Metric::Bandwidth, Metric::IngressBandwidth, Metric::TotalBandwidth];
    let mut shared = incast();
    degrade(&mut shared, "gpu001", LACP);
    for metric in all {
        assert_eq!(told(&shared, metric), ["gpu001"], "{metric}");
    }
    let mut source = incast();
    degrade(&mut source, "gpu002", LACP);
    for metric in all {
        assert_eq!(told(&source, metric), [""; 0], "{metric}");
    }
}
