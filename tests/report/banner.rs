//! What stands below the verdict: the part that is bad and the first thing to do belong to what failed.

use std::path::Path;

use railgauge_analysis::{journal, status::Status};
use railgauge_model::{
    journal::event::{Event, Line},
    plan::model::{Limit, Topology},
};
use railgauge_report::{draw, view::View};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy::{self, Entry},
};

use crate::{
    soak::made::{self, Made},
    support::{self, Scenario},
    switches::tree,
};

fn view(text: &str) -> View {
    let path = Path::new("records.jsonl");
    draw(&journal::parse(text.as_bytes(), path).unwrap(), path).unwrap().view
}

fn small(hosts: usize) -> Scenario {
    Scenario { sizes: vec![1 << 24], repeats: 1, ..Scenario::healthy(hosts, 1) }
}

/// The first thing to do, with what it is for.
fn step(view: &View) -> (String, String) {
    let first = view.banner.remedy.as_ref().unwrap();
    (first.about.clone(), first.text.clone())
}

#[test]
fn a_host_that_is_not_as_the_plan_wants_is_the_bad_part_with_its_remedy() {
    let mut lines = small(6).lines();
    for line in &mut lines {
        match &mut line.event {
            Event::Started { resolved, .. } => resolved.preflight.wanted.kernel = Some("6.1.0".to_owned()),
            Event::HostUp { host, facts, .. } => {
                facts.kernel = if host == "gpu002" { "5.0.1" } else { "6.1.0" }.to_owned();
            }
            _ => {}
        }
    }
    let view = view(&support::text(&lines));
    assert_eq!(view.status, Status::Fail);
    assert!(view.sentence.contains("kernel is 5.0.1 on gpu002; the plan requires 6.1.0"), "{}", view.sentence);
    let (about, text) = step(&view);
    assert!(about.contains("gpu002") && text.ends_with("[same-kernel]"), "{about}: {text}");
}

#[test]
fn hosts_that_all_differ_from_the_plan_are_one_cause() {
    let mut lines = small(6).lines();
    for line in &mut lines {
        match &mut line.event {
            Event::Started { resolved, .. } => resolved.preflight.wanted.kernel = Some("6.1.0".to_owned()),
            Event::HostUp { facts, .. } => facts.kernel = "5.0.1".to_owned(),
            _ => {}
        }
    }
    let view = view(&support::text(&lines));
    assert_eq!(view.status, Status::Fail);
    assert!(view.sentence.contains("kernel is 5.0.1 on gpu[001-006]"), "{}", view.sentence);
    assert!(step(&view).0.contains("gpu[001-006]"), "{:?}", view.banner);
}

/// What most of the lost hosts need comes first, and is told of those that need it.
#[test]
fn the_first_step_about_lost_hosts_is_that_of_most() {
    let mut lines = small(6).lines();
    let place = lines.iter().position(|line| matches!(line.event, Event::Outcome(_))).unwrap();
    let at = lines[place].at.clone();
    let lost = |host: &str, remedy: Entry| {
        let failure = Failure::new(Stage::Measure, Kind::Lost, "its agent is gone").remedy(remedy);
        Line { at: at.clone(), event: Event::HostLost { host: host.to_owned(), failure } }
    };
    let (one, most) = (remedy::FIND_KILLER, remedy::SAME_KERNEL);
    lines.splice(place..place, [lost("gpu001", one), lost("gpu004", most), lost("gpu005", most)]);
    let (about, text) = step(&view(&support::text(&lines)));
    assert_eq!(about, "gpu[004-005] were lost");
    assert!(text.ends_with("[same-kernel]"), "{text}");
}

/// A test tells a lost host as a soak does, and says what was found of the others.
#[test]
fn a_host_that_was_lost_in_a_test_is_told() {
    let view = view(&Scenario { dies: Some(2), ..small(6) }.jsonl());
    assert!(view.banner.causes.iter().any(|cause| cause.starts_with("host lost: gpu003")), "{:?}", view.banner);
}

#[test]
fn a_port_that_fails_a_soak_is_the_bad_part() {
    let made = Made { flaps: vec![(1, 0, 100_000, 102_000)], ..Made::healthy() };
    let view = view(&made::lines(&made));
    assert_eq!(view.status, Status::Fail);
    assert!(view.sentence.contains("gpu002 mlx5_0"), "{}", view.sentence);
    let (about, text) = step(&view);
    assert!(about.contains("gpu002 mlx5_0") && text.ends_with("[link-went-down]"), "{about}: {text}");
}

/// A run of which the first test demands so many Gb/s.
fn demanding(scenario: &Scenario, limit: f64) -> View {
    let mut lines = scenario.lines();
    for line in &mut lines {
        if let Event::Started { resolved, .. } = &mut line.event {
            resolved.localise.waive.clear();
            for test in &mut resolved.tests {
                test.expect.truncate(usize::from(test.name == "write-bw"));
                test.expect.iter_mut().for_each(|demand| demand.limit = Limit::AtLeast(limit));
            }
        }
    }
    view(&support::text(&lines))
}

/// No single part is behind a limit that every value breaks.
#[test]
fn a_limit_that_all_values_break_is_looked_at_before_any_part() {
    let view = demanding(&small(6), 9000.0);
    assert_eq!(view.status, Status::Fail);
    let (about, text) = step(&view);
    assert!(text.ends_with("[limit-broken-by-all]"), "{about}: {text}");
    // Nothing else is wrong, and some values break it: that has a first step, too.
    let view = demanding(&small(6), 196.5);
    assert_eq!(view.status, Status::Fail);
    let (about, text) = step(&view);
    assert!(about.contains("write-bw") && text.ends_with("[broken-limit]"), "{about}: {text}");
}

#[test]
fn a_run_that_broke_off_is_gone_on_with_first() {
    let mut lines = small(4).lines();
    lines.truncate(lines.len() - 6);
    let view = view(&support::text(&lines));
    assert_ne!(view.status, Status::Pass);
    let (about, text) = step(&view);
    assert!(text.contains("railgauge run --resume"), "{about}: {text}");
}

/// Taken up again it would end in the same way.
#[test]
fn a_run_whose_plan_must_be_changed_is_not_gone_on_with() {
    let told = |remedy: Option<remedy::Remedy>| {
        let mut lines = small(4).lines();
        let why = "the soak cannot begin".to_owned();
        lines.last_mut().unwrap().event = Event::Prevented { why, remedy };
        let view = view(&support::text(&lines));
        assert_eq!(view.status, Status::Inconclusive);
        assert!(view.banner.remedy.as_ref().unwrap().about.contains("the soak cannot begin"));
        let reasons: Vec<String> = view.expectations.iter().map(|one| one.reason.clone()).collect();
        (step(&view).1, reasons.join("; ") + &view.sentence)
    };
    let (step, said) = told(Some(remedy::RATE_FOR_SHARE.into()));
    assert!(step.ends_with("[rate-for-share]") && !said.contains("--resume"), "{step}: {said}");
    assert!(told(None).0.contains("--resume"));
}

/// A run in which flows between these leaves carry 70 %, by whether the plan knows the switches; with a limit for all flows.
fn low(from: usize, is_known: bool, limit: Option<f64>) -> View {
    let scenario = small(16);
    let leaf = |host: &str| (0..16).position(|at| scenario.name(at) == host).unwrap() / 4;
    let mut lines: Vec<Line> = scenario.lines();
    let mut slow = Vec::new();
    for line in &mut lines {
        match &mut line.event {
            Event::Started { resolved, .. } => {
                resolved.topology = is_known.then(|| -> Topology { tree(&scenario) });
                for test in &mut resolved.tests {
                    test.expect.truncate(usize::from(limit.is_some() && test.name == "write-bw"));
                    test.expect.iter_mut().for_each(|demand| demand.limit = Limit::AtLeast(limit.unwrap()));
                }
            }
            Event::Planned { cases } => {
                let is_low = |case: &&railgauge_model::journal::event::Case| {
                    &*case.test == "write-bw" && leaf(&case.flow.from.host) == from && leaf(&case.flow.to.host) != from
                };
                slow = cases.iter().filter(is_low).map(|case| case.id).collect();
            }
            Event::Outcome(outcome) if slow.contains(&outcome.case) => {
                if let Ok(sample) = &mut outcome.result {
                    sample.initiator.elapsed = sample.initiator.elapsed * 10 / 7;
                    sample.initiator.slices.iter_mut().for_each(|slice| *slice = *slice * 7 / 10);
                }
            }
            _ => {}
        }
    }
    view(&support::text(&lines))
}

#[test]
fn a_link_that_explains_all_low_flows_is_the_part_and_no_boundary_is() {
    let without = low(2, false, None);
    assert!(!without.parts.as_ref().unwrap().named.iter().any(|part| part.name.contains("port 31")));
    let view = low(2, true, None);
    let link = "leaf2 port 31";
    assert!(view.sentence.contains(link), "{}", view.sentence);
    let causes = view.banner.causes.join("; ");
    assert!(!causes.contains("boundary") && !causes.contains("path between"), "{causes}");
    let parts = view.parts.as_ref().unwrap();
    assert!(
        parts.reasons.concat().join(" ").contains(link) && !parts.reasons.concat().join(" ").contains("is not known"),
        "{}",
        parts.reasons.concat().join(" ")
    );
    let names: Vec<&str> = parts.named.iter().map(|named| named.name.as_str()).collect();
    assert!(names.len() == 1 && names[0].contains(link), "{names:?}");
    let (about, text) = step(&view);
    // It was not measured again: nobody is to take a cable out for that.
    assert!(about.contains(link) && text.ends_with("[measure-again]"), "{about}: {text}");
}

#[test]
fn a_limit_that_all_break_comes_before_a_link_that_may_be_bad() {
    let (about, text) = step(&low(2, true, Some(9000.0)));
    assert!(text.ends_with("[limit-broken-by-all]"), "{about}: {text}");
}

#[test]
fn what_failures_have_in_common_is_named() {
    let mut lines = small(6).lines();
    let mut with_last = Vec::new();
    for line in &mut lines {
        match &mut line.event {
            Event::Planned { cases } => {
                let of_last =
                    cases.iter().filter(|case| &*case.flow.to.host == "gpu006" && &*case.flow.from.host != "gpu006");
                with_last = of_last.map(|case| (case.id, case.flow.from.host.to_string())).collect();
            }
            Event::Outcome(outcome) => {
                if let Some((_, from)) = with_last.iter().find(|(case, _)| *case == outcome.case) {
                    let failure = Failure::new(Stage::Join, Kind::Fabric, "0 of 1 connections of the initiator came");
                    outcome.result = Err(failure.remedy(remedy::CHECK_FIREWALL).at(from).with("gpu006"));
                }
            }
            _ => {}
        }
    }
    let view = view(&support::text(&lines));
    let [group] = view.troubles.as_slice() else { panic!("{:?}", view.troubles) };
    assert!(group.hosts.starts_with("gpu[00") && group.hosts.ends_with(", each with gpu006"), "{}", group.hosts);
    let (about, text) = step(&view);
    assert!(about.contains("gpu006"), "{about}");
    assert!(text.contains("from gpu006 to gpu001") && !text.contains("this host"), "{text}");
}

/// Without a topology nothing says that they share a switch; they are one card all the same.
#[test]
fn hosts_that_are_slow_alike_are_told_together() {
    let scenario = Scenario { slow: Some(19), slow_hosts: 5, ..small(24) };
    let drawn = view(&scenario.jsonl());
    let parts = drawn.parts.unwrap();
    let names: Vec<&str> = parts.named.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["hosts gpu[020-024]"], "{}", parts.reasons.concat().join(" "));
    assert!(
        parts.reasons.concat().join(" ").contains("hosts gpu[020-024]")
            && drawn.banner.causes.join("; ").contains("hosts gpu[020-024]")
    );
    // So are they in the verdict.
    let verdicts = drawn.expectations.iter().map(|verdict| verdict.reason.as_str());
    let named: Vec<&str> = verdicts.filter(|reason| reason.contains("hosts gpu[020-024]")).collect();
    assert!(!named.is_empty() && named.iter().all(|reason| !reason.contains("host gpu020")), "{named:?}");
    let [test, change, reason, _] = &parts.named[0].evidence[0];
    assert!(!test.is_empty() && change.contains(" to ") && reason.contains("5 hosts"), "{:?}", parts.named[0].evidence);

    // Three are told by themselves.
    let few = view(&Scenario { slow: Some(19), slow_hosts: 3, ..small(24) }.jsonl()).parts.unwrap();
    assert_eq!(few.named.len(), 3, "{}", few.reasons.concat().join(" "));
}
