//! Links of unlike ceilings: whose port tells a lower rate is no fault of the others, and is told where it limits what passes it.

use std::{path::Path, sync::Arc};

use railgauge_analysis::{
    journal::{Journal, parse},
    localise::{Localisation, localise},
    results::results,
    rows::rows,
    status::Status,
    verdict::{Kind, Verdict, verdicts},
};
use railgauge_model::{
    journal::event::Case,
    plan::model::{Pattern, Waiver},
};
use railgauge_report::draw;
use railgauge_wire::unit::{Bytes, GigabitsPerSecond};

use crate::support::Scenario;

const HOST: &str = "gpu003";

/// Gives ports a part of the 200 Gb/s that they have, and their links as much of what these carry.
pub(super) fn at_rates(journal: &mut Journal, part: &dyn Fn(&str, u32) -> f64) {
    change(journal, &|host, rail| 200.0 * part(host, rail), part);
}

/// Gives the links of ports these rates and this share of what they carry: of both ends the lesser.
fn change(journal: &mut Journal, rate: &dyn Fn(&str, u32) -> f64, share: &dyn Fn(&str, u32) -> f64) {
    let cases = journal.cases.clone();
    for one in journal.tries.iter_mut().filter(|one| &*cases[one.case as usize].test == "write-bw") {
        let flow = &cases[one.case as usize].flow;
        let least =
            |of: &dyn Fn(&str, u32) -> f64| of(&flow.from.host, flow.from.rail).min(of(&flow.to.host, flow.to.rail));
        let (rate, share) = (least(rate), least(share));
        if let Some(link) = &mut one.link {
            Arc::make_mut(link).rate_gbps = Some(GigabitsPerSecond(rate));
        }
        let Ok(sample) = &mut one.result else { continue };
        let end = &mut sample.initiator;
        let less = |of: u64| (of as f64 * share) as u64;
        (end.bytes.0, end.operations) = (less(end.bytes.0), less(end.operations));
        let lanes = end.lanes.iter_mut().map(|lane| &mut lane.bytes);
        lanes.chain(&mut end.slices).for_each(|bytes| bytes.0 = less(bytes.0));
    }
}

/// A healthy run of 8 hosts whose ports have these rates and whose links reach this share of what they did.
fn journal(rate: impl Fn(&str) -> f64, share: impl Fn(&str) -> f64) -> Journal {
    let scenario = Scenario { sizes: vec![1 << 20], ..Scenario::healthy(8, 1) };
    let mut journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
    change(&mut journal, &|host, _| rate(host), &|host, _| share(host));
    journal
}

/// One value for one host, another for the others.
fn one(this: f64, others: f64) -> impl Fn(&str) -> f64 {
    move |host| if host == HOST { this } else { others }
}

fn judged(journal: &Journal) -> (Localisation, Verdict) {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let found = localise(journal, &results, &rows).into_iter().find(|found| found.test == "write-bw").unwrap();
    let all = verdicts(journal, &results, &rows, Vec::new()).verdicts;
    let verdict = all.into_iter().find(|one| one.kind == Kind::Parts && one.test == "write-bw").unwrap();
    (found, verdict)
}

#[test]
fn a_ceiling_that_does_not_bind_moves_nobody() {
    for rate in [200.0, 400.0] {
        let (found, verdict) = judged(&journal(one(rate, 600.0 - rate), one(1.0, 1.0)));
        assert!(found.suspects.is_empty() && found.lesser.is_empty(), "{:?} {:?}", found.suspects, found.lesser);
        assert_eq!(verdict.status, Status::Pass, "{}", verdict.reason);
    }
}

#[test]
fn a_port_at_half_its_rate_is_told_and_no_pass() {
    let mut journal = journal(one(100.0, 200.0), one(0.49, 1.0));
    let (found, verdict) = judged(&journal);
    assert!(found.suspects.is_empty(), "{:?}", found.suspects);
    let ends: Vec<(&str, u32, bool)> = found.lesser.iter().map(|end| (&*end.host, end.rail, end.waived)).collect();
    assert_eq!(ends, [(HOST, 0, false)]);
    assert!(found.lesser[0].ceiling < 100.0 && found.lesser[0].others > 180.0, "{:?}", found.lesser);
    assert!(verdict.status == Status::Inconclusive && verdict.reason.to_string().contains(HOST), "{}", verdict.reason);
    let parts = draw(&journal, Path::new("records.jsonl")).unwrap().view.parts.unwrap();
    assert!(parts.reasons.concat().join(" ").contains(HOST), "{}", parts.reasons.concat().join(" "));
    journal.plan.localise.waive = vec![Waiver::Host(HOST.to_owned())];
    let (found, verdict) = judged(&journal);
    assert!(found.lesser[0].waived && verdict.waived, "{verdict:?}");
}

#[test]
fn what_is_slow_beside_its_ceiling_is_named_whatever_the_ceiling() {
    let (found, verdict) = judged(&journal(one(100.0, 200.0), one(0.25, 1.0)));
    let named: Vec<&[String]> = found.suspects.iter().map(|suspect| &suspect.hosts[..]).collect();
    assert_eq!(named, [[HOST.to_owned()]], "{}", verdict.reason);
}

/// Of four or more ports of the lower rate it is known what such ports reach.
#[test]
fn the_slow_one_of_several_ports_of_the_lower_rate_is_named() {
    let lower = |host: &str| host >= "gpu005";
    let rate = move |host: &str| if lower(host) { 100.0 } else { 200.0 };
    let share = move |host: &str| {
        if host == "gpu006" {
            0.46
        } else if lower(host) {
            0.49
        } else {
            1.0
        }
    };
    let (found, verdict) = judged(&journal(rate, share));
    let named: Vec<&[String]> = found.suspects.iter().map(|suspect| &suspect.hosts[..]).collect();
    assert_eq!(named, [["gpu006".to_owned()]], "{}", verdict.reason);
    assert_eq!(found.lesser.len(), 4, "{:?}", found.lesser);
}

#[test]
fn a_share_of_the_ceiling_is_of_the_own_one() {
    let journal = journal(one(100.0, 200.0), one(0.49, 1.0));
    let view = draw(&journal, Path::new("records.jsonl")).unwrap().view;
    let table = &view.tests.iter().find(|test| test.name == "write-bw").unwrap().table;
    let column = table.columns.iter().position(|column| column.name == "of ceiling").unwrap();
    let share: f64 = table.rows[0][column].parse().unwrap();
    assert!((90.0..100.0).contains(&share), "{share}");
}

/// The links of several such ports scatter as others do: nothing about them makes paths of the others stand out.
#[test]
fn several_ports_of_half_the_rate_make_no_paths_of_others_stand_out() {
    let lower = |host: &str| ["gpu002", "gpu005", "gpu007"].contains(&host);
    let (found, _) = judged(&journal(
        move |host| if lower(host) { 100.0 } else { 200.0 },
        move |host| if lower(host) { 0.5 } else { 1.0 },
    ));
    assert!(found.suspects.is_empty(), "{:?}", found.suspects);
    assert_eq!(found.lesser.len(), 3);
}

/// A case that failed has no link, and no ceiling.
#[test]
fn a_failed_case_leaves_the_rates_of_others_known() {
    let mut journal = journal(one(100.0, 200.0), one(0.49, 1.0));
    let lost = journal
        .cases
        .iter()
        .find(|case| &*case.test == "write-bw" && case.flow.hosts().iter().all(|host| &***host != HOST))
        .unwrap()
        .id;
    journal.tries.retain(|one| one.case != lost);
    let (found, _) = judged(&journal);
    assert!(found.suspects.is_empty() && found.lesser.len() == 1, "{:?} {:?}", found.suspects, found.lesser);
}

/// Links that a ceiling limits hardly scatter, and the others are no outliers for that.
#[test]
fn links_that_a_ceiling_limits_do_not_hide_how_others_scatter() {
    for lower in [&["gpu003"][..], &["gpu005", "gpu006", "gpu007", "gpu008"]] {
        let is = |host: &str| lower.contains(&host);
        let mut journal = journal(|host| if is(host) { 100.0 } else { 200.0 }, |_| 1.0);
        let cases = journal.cases.clone();
        let limited = |case: &Case| &*case.test == "write-bw" && case.flow.hosts().iter().any(|host| is(host));
        for one in journal.tries.iter_mut().filter(|one| limited(&cases[one.case as usize])) {
            let Ok(sample) = &mut one.result else { continue };
            let end = &mut sample.initiator;
            let bytes = Bytes((97e9 / 8.0 * end.elapsed.as_f64() / 1e9) as u64);
            let operations = bytes / cases[one.case as usize].cell.size;
            let share = bytes.as_f64() / end.bytes.as_f64();
            (end.bytes, end.operations) = (bytes, operations);
            let lanes = end.lanes.iter_mut().map(|lane| &mut lane.bytes);
            lanes.chain(&mut end.slices).for_each(|bytes| *bytes = Bytes((bytes.as_f64() * share) as u64));
        }
        let (found, verdict) = judged(&journal);
        assert!(found.suspects.is_empty() && found.two_clusters.is_none(), "{lower:?}: {}", verdict.reason);
        assert_eq!(found.lesser.len(), lower.len());
    }
}

/// What was read of a slot is wrong where its links reach more.
#[test]
fn a_ceiling_that_is_exceeded_is_not_believed() {
    let judged = |share: f64| {
        let journal = journal(one(200.0, 200.0), one(share, 1.0));
        let results = results(&journal).unwrap();
        let misread = |case: u64| results[case as usize].case.flow.hosts().into_iter().any(|host| **host == *HOST);
        let mut rows = rows(&journal, &results);
        rows.iter_mut().filter(|row| misread(row.case)).for_each(|row| row.ceiling = row.ceiling.and(Some(120.0)));
        localise(&journal, &results, &rows).into_iter().find(|found| found.test == "write-bw").unwrap()
    };
    let found = judged(1.0);
    assert!(found.lesser.is_empty() && found.suspects.is_empty(), "{:?} {:?}", found.lesser, found.suspects);
    assert_eq!(found.pairs, 28);
    // Nor does it hide that the host is slow.
    let named: Vec<String> = judged(0.75).suspects.into_iter().map(|suspect| suspect.part.name).collect();
    assert_eq!(named, [format!("host {HOST}")]);
}

/// How links scatter is not learned from hosts that are bad, each in its own way.
#[test]
fn several_bad_hosts_are_named_beside_a_lesser_port() {
    let bad = [("gpu006", 0.5), ("gpu007", 0.7), ("gpu008", 0.85)];
    for rounds in [7, 6, 5, 4, 3] {
        let share = |host: &str| match host {
            HOST => 0.49,
            host => bad.iter().find(|(name, _)| *name == host).map_or(1.0, |(_, share)| *share),
        };
        let pattern = Some(Pattern::Random(rounds));
        let scenario = Scenario { sizes: vec![1 << 20], pattern, ..Scenario::healthy(8, 1) };
        let mut journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
        change(&mut journal, &|host, _| one(100.0, 200.0)(host), &|host, _| share(host));
        journal.plan.localise.waive = vec![Waiver::Host(HOST.to_owned())];
        let (found, verdict) = judged(&journal);
        let named: Vec<&str> = found.suspects.iter().flat_map(|part| &part.hosts).map(String::as_str).collect();
        // Of three or four links of a host, some with bad hosts and one with the lesser port, too little can be learned.
        let told = rounds < 5 || bad.iter().all(|(host, _)| named.contains(host));
        assert!(told, "{rounds}: {named:?}: {}", verdict.reason);
        assert!(verdict.status != Status::Pass && !verdict.waived, "{}", verdict.reason);
    }
}
