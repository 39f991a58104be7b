//! What passes, what fails, and what never passes.

use std::path::Path;

use railgauge_analysis::{
    case::State,
    journal::{self, Journal, JournalEnd, Try},
    reason::Id,
    results::{results, settled},
    row::Row,
    rows::rows,
    status::Status,
    verdict::{Kind, Verdict, Verdicts, verdicts},
};
use railgauge_model::plan::model::{Expectation, Limit, Source, Statistic, Waiver};
use railgauge_wire::{terms::Metric, unit::Bytes};

use crate::support::{self, Scenario};

fn journal(scenario: &Scenario) -> Journal {
    journal::parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap()
}

fn judge(journal: &Journal, ceiling: Option<f64>) -> Verdicts {
    let results = results(journal).unwrap();
    let mut rows = rows(journal, &results);
    rows.iter_mut().filter(|row| row.metric.has_ceiling()).for_each(|row| row.ceiling = ceiling);
    verdicts(journal, &results, &rows, Vec::new())
}

fn demand(metric: Metric, limit: Limit) -> Expectation {
    Expectation { metric, limit, written: None, sizes: None, rails: Vec::new(), group: None, source: None, line: 1 }
}

/// The status of one demand on the first test of a scenario.
fn status_of(scenario: &Scenario, wanted: Expectation, ceiling: Option<f64>) -> (Status, String) {
    let mut journal = journal(scenario);
    journal.plan.tests[0].expect = vec![wanted];
    let verdicts = judge(&journal, ceiling).verdicts;
    let verdict = verdicts.into_iter().find(|verdict| verdict.kind == Kind::Expectation).unwrap();
    (verdict.status, verdict.reason.to_string())
}

fn small() -> Scenario {
    Scenario { sizes: vec![4096, 65536, 1 << 20], ..Scenario::healthy(6, 1) }
}

#[test]
fn a_healthy_run_passes_and_says_on_what() {
    let verdicts = judge(&journal(&small()), Some(196.0));
    assert_eq!((verdicts.status, verdicts.exit_code), (Status::Pass, 0), "{}", verdicts.sentence);
    assert!(verdicts.verdicts.iter().all(|verdict| verdict.status == Status::Pass));
    assert!(verdicts.troubles.is_empty());
}

/// What was not judged has not kept it.
#[test]
fn a_failed_expectation_says_what_it_did_not_judge() {
    let scenario = Scenario { slow: Some(2), down: Some(5), ..small() };
    let (status, reason) = status_of(&scenario, demand(Metric::Bandwidth, Limit::WithinPercentOfPeers(10.0)), None);
    assert_eq!(status, Status::Fail, "{reason}");
    assert!(reason.contains("missed the limit") && reason.contains("not measured"), "{reason}");
    let mut journal = journal(&Scenario { slow: Some(2), ..small() });
    journal.plan.tests[0].expect = vec![demand(Metric::Bandwidth, Limit::PercentOfCeiling(90.0))];
    let results = results(&journal).unwrap();
    let mut rows = rows(&journal, &results);
    let of_bandwidth = rows.iter_mut().filter(|row| row.metric.has_ceiling()).enumerate();
    of_bandwidth.for_each(|(at, row)| row.ceiling = (at % 2 == 0).then_some(196.0));
    let all = verdicts(&journal, &results, &rows, Vec::new()).verdicts;
    let verdict = all.iter().find(|verdict| verdict.kind == Kind::Expectation).unwrap();
    assert_eq!(verdict.status, Status::Fail, "{}", verdict.reason);
    assert!(
        verdict.tally.unlimited > 0 && verdict.reason.iter().any(|reason| reason.id == Id::Unlimited),
        "{}",
        verdict.reason
    );
    let tally = verdict.tally;
    assert_eq!(tally.in_scope, tally.judged + tally.missing + tally.unlimited);
}

#[test]
fn a_slow_host_fails_and_is_named_first() {
    let verdicts = judge(&journal(&Scenario { slow: Some(2), ..small() }), Some(196.0));
    assert_eq!(verdicts.exit_code, 1);
    let peers = &verdicts.verdicts[1];
    assert_eq!(peers.status, Status::Fail, "{}", peers.reason);
    assert_eq!(peers.tally.violating, peers.offenders.len());
    for offender in &peers.offenders {
        assert!([&offender.src_host, &offender.dst_host].contains(&&"gpu003".to_owned()), "{offender:?}");
    }
}

#[test]
fn wrong_bytes_fail_whatever_the_speed() {
    let scenario = Scenario { wrong: true, ..small() };
    let verdicts = judge(&journal(&scenario), Some(196.0));
    let every = verdicts.verdicts.iter().find(|v| v.line.is_none() && v.status == Status::Fail);
    assert!(
        every.unwrap().reason.to_string().contains("8 bytes are not what was sent, the first at offset 4096"),
        "{every:?}"
    );
    assert_eq!((verdicts.exit_code, verdicts.cases.wrong), (1, 1));
}

#[test]
fn contamination_keeps_the_value_and_never_passes() {
    let scenario = Scenario { contaminated: true, ..small() };
    let verdicts = judge(&journal(&scenario), Some(196.0));
    assert_eq!((verdicts.status, verdicts.exit_code), (Status::Inconclusive, 3));
    assert!(verdicts.sentence.contains("contaminated: the receiver's port"), "{}", verdicts.sentence);
}

/// A second try must not hide wrong bytes; any other value that is not trusted counts as not measured.
#[test]
fn a_resumed_run_measures_again_what_has_no_trusted_value() {
    let made = journal(&Scenario { wrong: true, contaminated: true, ..small() });
    let settled = settled(&made).unwrap();
    for result in results(&made).unwrap() {
        let kept = (0..result.repeats).filter(|repeat| settled.contains(&(result.case.id, *repeat))).count();
        let again = result.state == State::Contaminated;
        assert_eq!(kept, if again { 0 } else { result.samples.len() }, "{:?}", result.state);
    }
    let with = |state| results(&made).unwrap().iter().filter(|result| result.state == state).count();
    assert!([State::Contaminated, State::Wrong, State::Measured].into_iter().all(|one| with(one) > 0));
}

#[test]
fn what_is_missing_is_inconclusive_and_named() {
    let verdicts = judge(&journal(&Scenario { down: Some(5), ..small() }), Some(196.0));
    assert_eq!(verdicts.exit_code, 3);
    assert!(
        verdicts.verdicts.iter().all(|verdict| verdict.status == Status::Inconclusive || verdict.test != "write-bw")
    );
    assert!(verdicts.sentence.contains("gpu006: connect: "), "{}", verdicts.sentence);
    assert!(
        verdicts
            .troubles
            .iter()
            .all(|t| t.state == State::NotRun && (t.src_host == "gpu006" || t.dst_host == "gpu006"))
    );
}

#[test]
fn missing_rows_do_not_hide_a_violation() {
    let scenario = Scenario { down: Some(5), slow: Some(2), ..small() };
    let floor = Expectation {
        sizes: Some((Bytes::from_mib(1), Bytes::from_mib(1))),
        ..demand(Metric::Bandwidth, Limit::AtLeast(150.0))
    };
    assert_eq!(status_of(&scenario, floor, None).0, Status::Fail);
}

#[test]
fn too_few_repeats_never_pass() {
    let mut journal = journal(&small());
    let at = journal.tries.iter().position(|attempt| attempt.case == 3 && attempt.repeat == 2).unwrap();
    journal.tries.remove(at);
    let verdicts = judge(&journal, Some(196.0));
    assert_eq!((verdicts.exit_code, verdicts.cases.short), (3, 1), "{}", verdicts.sentence);
    assert!(
        verdicts.troubles[0].against.to_string().contains("1 of 3 repeats not measured"),
        "{:?}",
        verdicts.troubles
    );
}

/// A value that is not to be trusted is none of those that kept the limit, though it is within it.
#[test]
fn those_that_kept_it_are_the_ones_that_were_judged() {
    let mut journal = journal(&small());
    let case = journal.cases.iter().find(|case| *case.test == *journal.plan.tests[0].name).unwrap().id;
    let at = journal.tries.iter().position(|attempt| attempt.case == case && attempt.repeat == 2).unwrap();
    journal.tries.remove(at);
    journal.plan.tests[0].expect = vec![demand(Metric::Bandwidth, Limit::AtLeast(1e-3))];
    let all = judge(&journal, None).verdicts;
    let verdict = all.into_iter().find(|verdict| verdict.kind == Kind::Expectation).unwrap();
    let (of, said) = (verdict.tally.in_scope, verdict.reason.to_string());
    assert_eq!(verdict.status, Status::Inconclusive, "{said}");
    assert!(said.starts_with(&format!("1 of {of} cases not trusted")), "{said}");
    assert!(said.ends_with(&format!("the other {} met the limit", of - 1)), "{said}");
}

#[test]
fn nothing_run_is_not_run() {
    let mut journal = journal(&small());
    journal.tries.clear();
    let verdicts = judge(&journal, None);
    assert_eq!((verdicts.status, verdicts.exit_code), (Status::NotRun, 3));
    assert!(verdicts.verdicts.iter().all(|verdict| verdict.status == Status::NotRun));
}

#[test]
fn an_expectation_that_matches_nothing_is_no_pass() {
    let nowhere = Expectation { sizes: Some((Bytes(5), Bytes(6))), ..demand(Metric::Bandwidth, Limit::AtLeast(1.0)) };
    let (status, reason) = status_of(&small(), nowhere, None);
    assert_eq!(status, Status::Inconclusive);
    assert!(reason.contains("no case is in scope (5 B to 6 B)"), "{reason}");
    let (status, reason) = status_of(&small(), demand(Metric::LatencyP50, Limit::AtMost(1e9)), None);
    assert_eq!(status, Status::Inconclusive);
    assert!(reason.contains("the test does not yield latency_p50"), "{reason}");
}

#[test]
fn without_a_ceiling_a_share_of_it_cannot_be_judged() {
    let share = || demand(Metric::Bandwidth, Limit::PercentOfCeiling(10.0));
    let (status, reason) = status_of(&small(), share(), None);
    assert_eq!(status, Status::Inconclusive);
    assert!(reason.contains("ceiling of the link is unknown"), "{reason}");
    assert_eq!(status_of(&small(), share(), Some(196.0)).0, Status::Pass);
}

#[test]
fn a_value_far_above_its_ceiling_shows_that_the_ceiling_is_wrong() {
    let share = || demand(Metric::Bandwidth, Limit::PercentOfCeiling(1.0));
    let (status, reason) = status_of(&small(), share(), Some(60.0));
    assert_eq!(status, Status::Inconclusive, "{reason}");
    assert!(reason.contains("60.00 Gb/s") || reason.contains("60 Gb/s"), "{reason}");
}

#[test]
fn peers_need_company() {
    let peers = || demand(Metric::Bandwidth, Limit::WithinPercentOfPeers(10.0));
    let pair = Scenario { sizes: vec![65536], ..Scenario::healthy(2, 1) };
    let (status, reason) = status_of(&pair, peers(), None);
    assert_eq!(status, Status::Inconclusive);
    assert!(reason.contains("fewer than 3 other links"), "{reason}");
    assert_eq!(status_of(&small(), peers(), None).0, Status::Pass);
}

#[test]
fn a_group_and_a_rail_narrow_the_scope() {
    let scenario = Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(6, 2) };
    let floor = |group: &str| Expectation {
        group: Some(group.into()),
        rails: vec![1],
        ..demand(Metric::Bandwidth, Limit::AtLeast(150.0))
    };
    assert_eq!(status_of(&scenario, floor("leaf1"), None).0, Status::Pass);
    let (status, reason) = status_of(&scenario, floor("leaf2"), None);
    assert_eq!(status, Status::Fail);
    assert!(reason.contains("gpu005:1") && reason.contains("2 of 3 cases"), "{reason}");
}

/// A published limit says nothing of another scale, size or statistic: no pass, and no fail.
#[test]
fn a_published_limit_judges_only_what_it_was_published_for() {
    let published = |limit: f64, hosts: u32, sizes: &[u64], statistic| {
        let sizes = sizes.iter().copied().map(Bytes).collect();
        let source = Source { system: "a system".into(), url: "a page".into(), hosts, gpus: None, sizes, statistic };
        let wanted = demand(Metric::Bandwidth, Limit::AtLeast(limit));
        let at = Some((Bytes::from_kib(64), Bytes::from_mib(1)));
        status_of(&small(), Expectation { source: Some(source), sizes: at, ..wanted }, None).0
    };
    let both = &[65_536, 1 << 20];
    for statistic in [Statistic::Mean, Statistic::Median, Statistic::MeanOfSizes] {
        assert_eq!(published(1.0, 2, both, statistic), Status::Pass, "{statistic}");
        assert_eq!(published(1e6, 2, both, statistic), Status::Fail, "{statistic}");
        // Both of 1 and of 1e6: neither side of a limit is judged.
        for limit in [1.0, 1e6] {
            assert_eq!(published(limit, 8, both, statistic), Status::Inconclusive, "{statistic}");
        }
    }
    for limit in [1.0, 1e6] {
        assert_eq!(published(limit, 2, both, Statistic::P99), Status::Inconclusive);
        assert_eq!(published(limit, 2, &[8 << 20], Statistic::Mean), Status::Inconclusive);
        // A size of the mean that was not measured.
        assert_eq!(published(limit, 2, &[65_536, 1 << 20, 8 << 20], Statistic::MeanOfSizes), Status::Inconclusive);
    }
    // A part within its source passes, the other part does not: no pass as a whole.
    assert_eq!(published(1.0, 2, &[1 << 20], Statistic::Mean), Status::Inconclusive);
}

/// The mean lies between the values: a limit between them is broken by one size alone, and kept by the mean.
#[test]
fn a_mean_over_sizes_is_judged_as_one_value() {
    let mut journal = journal(&small());
    let at = [Bytes(4096), Bytes::from_kib(64), Bytes::from_mib(1)];
    let judged = |journal: &mut Journal, limit: f64, statistic| {
        let source = Source {
            system: "a system".into(),
            url: "a page".into(),
            hosts: 2,
            gpus: None,
            sizes: at.to_vec(),
            statistic,
        };
        let wanted = demand(Metric::Bandwidth, Limit::AtLeast(limit));
        journal.plan.tests[0].expect = vec![Expectation { source: Some(source), ..wanted }];
        let verdicts = judge(journal, None).verdicts;
        verdicts.into_iter().find(|verdict| verdict.kind == Kind::Expectation).unwrap()
    };
    let lowest = judged(&mut journal, 1e6, Statistic::Mean).worst.unwrap().value.unwrap();
    let mean = judged(&mut journal, 1e6, Statistic::MeanOfSizes).worst.unwrap().value.unwrap();
    assert!(lowest < mean, "{lowest} {mean}");
    let between = f64::midpoint(lowest, mean);
    assert_eq!(judged(&mut journal, between, Statistic::Mean).status, Status::Fail);
    let verdict = judged(&mut journal, between, Statistic::MeanOfSizes);
    assert_eq!((verdict.status, verdict.tally.judged), (Status::Pass, verdict.tally.in_scope / 3));
    assert_eq!(verdict.source.unwrap().system, "a system");
    // A pair without one of the sizes has no mean, and the cases of the others count once for each mean.
    let case = journal.cases.iter().find(|case| case.cell.size == at[0]).unwrap().id;
    journal.tries.retain(|tried| tried.case != case);
    let verdict = judged(&mut journal, 1e-3, Statistic::MeanOfSizes);
    let kept = verdict.reason.iter().find(|reason| reason.id == Id::OthersKept).unwrap();
    assert_eq!(kept.json("cases"), verdict.tally.judged, "{}", verdict.reason);
    assert_eq!(verdict.tally.judged, verdict.tally.in_scope / 3 - 1);
}

/// A limit of GPUs says nothing of host memory.
#[test]
fn a_published_limit_of_gpus_judges_none_in_host_memory() {
    let mut journal = journal(&small());
    let sizes = journal.plan.tests[0].sizes.clone();
    let (system, url) = ("a system".into(), "a page".into());
    let source = Source { system, url, hosts: 2, gpus: Some(2), sizes, statistic: Statistic::Mean };
    for limit in [1e-3, 1e6] {
        let wanted = demand(Metric::Bandwidth, Limit::AtLeast(limit));
        journal.plan.tests[0].expect = vec![Expectation { source: Some(source.clone()), ..wanted }];
        let verdicts = judge(&journal, None).verdicts;
        let verdict = verdicts.into_iter().find(|verdict| verdict.kind == Kind::Expectation).unwrap();
        assert_eq!((verdict.status, verdict.tally.judged), (Status::Inconclusive, 0), "{}", verdict.reason);
    }
}

#[test]
fn unverified_data_never_passes_where_nothing_else_is_demanded() {
    let mut journal = journal(&small());
    for test in &mut journal.plan.tests {
        test.verify = false;
        test.expect.clear();
    }
    let verdicts = judge(&journal, None);
    assert_eq!(verdicts.exit_code, 3, "{}", verdicts.sentence);
    assert!(verdicts.sentence.contains("verify = false"));
}

#[test]
fn tcp_in_place_of_verbs_never_passes() {
    let mut journal = journal(&small());
    for attempt in &mut journal.tries {
        let link = std::sync::Arc::make_mut(attempt.link.as_mut().unwrap());
        link.transport = railgauge_wire::terms::Carrier::Tcp;
    }
    let verdicts = judge(&journal, Some(196.0));
    assert_eq!(verdicts.exit_code, 3);
    assert!(verdicts.sentence.contains("the plan asks for verbs, but tcp carried the bytes"), "{}", verdicts.sentence);
}

#[test]
fn the_document_of_a_troubled_run() {
    let scenario = Scenario { sizes: vec![65536, 1 << 20], repeats: 1, ..Scenario::troubled(4, 1) };
    let verdicts = judge(&journal(&scenario), None);
    insta::assert_json_snapshot!(verdicts);
}

#[test]
fn a_confirmed_part_fails_an_open_one_is_inconclusive_and_the_plan_can_waive_both() {
    let waivers = [
        (Vec::new(), Status::Inconclusive, 3),
        (vec![Waiver::Host("gpu003".into())], Status::Inconclusive, 0),
        (vec![Waiver::All], Status::Inconclusive, 0),
        (vec![Waiver::Host("gpu001".into()), Waiver::Rail(1), Waiver::Group("leaf1".into())], Status::Inconclusive, 3),
    ];
    for (waive, status, code) in waivers {
        let mut journal = journal(&Scenario { slow: Some(2), sizes: vec![1 << 20], ..Scenario::healthy(8, 1) });
        journal.plan.tests.iter_mut().for_each(|test| test.expect.clear());
        journal.plan.localise.waive = waive.clone();
        let verdicts = judge(&journal, None);
        let parts = verdicts.verdicts.iter().find(|verdict| verdict.kind == Kind::Parts).unwrap();
        assert_eq!((parts.status, verdicts.exit_code), (status, code), "{waive:?}: {}", parts.reason);
        assert_eq!(parts.waived, code == 0, "{waive:?}");
        assert!(parts.parts.iter().any(|part| part.name.contains("gpu003")), "{waive:?}: {:?}", parts.parts);
    }
}

#[test]
fn what_the_plan_wants_of_hosts_is_judged_from_the_journal_alone() {
    let mut journal = journal(&small());
    journal.plan.preflight.wanted.kernel = Some("0.0".into());
    journal.plan.preflight.wanted.governor = Some("performance".into());
    let verdicts = judge(&journal, None);
    let of = |verdict: &&Verdict| verdict.kind == Kind::Preflight;
    let found: Vec<&Verdict> = verdicts.verdicts.iter().filter(of).collect();
    assert_eq!(found.iter().map(|verdict| verdict.tally.in_scope).collect::<Vec<_>>(), [6, 6]);
    assert_eq!((found[0].status, found[0].tally.violating, verdicts.exit_code), (Status::Fail, 6, 1));
    // One host never answered.
    journal.hosts.remove("gpu002");
    let verdicts = judge(&journal, None);
    let found: Vec<&Verdict> = verdicts.verdicts.iter().filter(of).collect();
    assert_eq!((found[0].tally.violating, found[0].tally.missing), (5, 1));
    assert!(found[0].holdings.iter().any(|one| one.host == "gpu002"));
}

#[test]
fn a_percentile_that_the_samples_do_not_carry_is_neither_kept_nor_broken() {
    let judged = |operations: u64, limit: f64| {
        let mut journal = journal(&small());
        journal.tries.iter_mut().for_each(|one| support::with_operations(one.result.as_mut().unwrap(), operations));
        let test = journal.plan.tests.iter_mut().find(|test| test.name == "write-lat").unwrap();
        test.expect = vec![demand(Metric::LatencyP99, Limit::AtMost(limit))];
        let verdicts = judge(&journal, None);
        let of = |verdict: &&Verdict| verdict.kind == Kind::Expectation && verdict.test == "write-lat";
        verdicts.verdicts.iter().find(of).unwrap().status
    };
    assert_eq!(judged(4000, 100.0), Status::Pass);
    assert_eq!(judged(999, 100.0), Status::Inconclusive);
    // Half of the operations took longer: so did one in a hundred.
    assert_eq!(judged(999, 0.5), Status::Fail);
}

#[test]
fn one_operation_has_no_standard_deviation() {
    let mut journal = journal(&small());
    let is_latency = |one: &&Try| one.result.as_ref().unwrap().initiator.latency.is_some();
    let case = journal.tries.iter().find(is_latency).unwrap().case;
    for one in journal.tries.iter_mut().filter(|one| one.case == case) {
        support::with_operations(one.result.as_mut().unwrap(), 1);
    }
    let name = journal.cases[case as usize].test.to_string();
    let test = journal.plan.tests.iter_mut().find(|test| test.name == name).unwrap();
    test.expect = vec![demand(Metric::LatencyStdev, Limit::AtMost(1e9))];
    let results = results(&journal).unwrap();
    let of_case = |row: &Row| row.case == case && row.metric == Metric::LatencyStdev;
    let row = rows(&journal, &results).into_iter().find(of_case).unwrap();
    assert_eq!((row.value, row.n, row.error.is_some()), (None, 0, true), "{row:?}");
    let of_test = |verdict: &Verdict| verdict.kind == Kind::Expectation && verdict.test == name;
    let verdict = judge(&journal, None).verdicts.into_iter().find(of_test).unwrap();
    assert_eq!((verdict.status, verdict.tally.missing), (Status::Inconclusive, 1));
}

#[test]
fn a_run_that_did_not_come_to_its_end_is_no_pass() {
    let ends = [
        (JournalEnd::Broken, None),
        (JournalEnd::Interrupted, Some(130)),
        (JournalEnd::Prevented { why: "no space".into(), remedy: None }, Some(4)),
    ];
    for (end, code) in ends {
        let mut journal = journal(&small());
        journal.end = end.clone();
        let verdicts = judge(&journal, Some(196.0));
        assert_eq!((verdicts.status, verdicts.exit_code), (Status::Inconclusive, 3), "{end:?}");
        assert_eq!(verdicts.run_exit_code, code, "{end:?}");
        let own: Vec<_> = verdicts.verdicts.iter().filter(|verdict| verdict.status != Status::Pass).collect();
        assert_eq!(own.iter().map(|verdict| verdict.kind).collect::<Vec<_>>(), [Kind::Run], "{end:?}");
    }
}
