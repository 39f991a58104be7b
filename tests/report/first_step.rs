//! The first thing to do belongs to what is known to be bad; where nothing is, to what all that break a limit share.

use std::path::Path;

use railgauge_analysis::{
    journal,
    results::results,
    rows::rows,
    status::Status,
    verdict::{Kind, Verdict, verdicts},
};
use railgauge_model::{
    journal::event::{Case, Event, Line, Outcome},
    plan::{Plan, model::Limit},
};
use railgauge_report::{draw, view::View};
use railgauge_wire::{
    failure::{Failure, Kind as FailureKind, Stage},
    remedy,
    unit::Bytes,
};

use crate::support::{self, Scenario};

fn small(hosts: usize) -> Scenario {
    Scenario { sizes: vec![1 << 24], repeats: 1, ..Scenario::healthy(hosts, 1) }
}

fn parsed(lines: &[Line]) -> journal::Journal {
    journal::parse(support::text(lines).as_bytes(), Path::new("records.jsonl")).unwrap()
}

fn view(lines: &[Line]) -> View {
    draw(&parsed(lines), Path::new("records.jsonl")).unwrap().view
}

/// The first thing to do, with what it is for.
fn step(lines: &[Line]) -> (String, String) {
    let first = view(lines).banner.remedy.unwrap();
    (first.about, first.text)
}

/// A run with a plan and outcomes that were changed, without what the plan waives.
fn altered(scenario: &Scenario, plan: impl Fn(&mut Plan), mut outcome: impl FnMut(&Case, &mut Outcome)) -> Vec<Line> {
    let mut lines = scenario.lines();
    let mut known = Vec::new();
    for line in &mut lines {
        match &mut line.event {
            Event::Started { resolved, .. } => {
                resolved.localise.waive.clear();
                plan(resolved);
            }
            Event::Planned { cases } => known = cases.clone(),
            Event::Outcome(one) => outcome(known.iter().find(|case| case.id == one.case).unwrap(), one),
            _ => {}
        }
    }
    lines
}

/// Leaves the first demand of the bandwidth test alone, for all sizes, and gives it a limit.
fn limited(plan: &mut Plan, limit: f64) {
    for test in &mut plan.tests {
        test.expect.truncate(usize::from(test.name == "write-bw"));
        for demand in &mut test.expect {
            (demand.limit, demand.sizes) = (Limit::AtLeast(limit), None);
        }
    }
}

/// Whether it is the case of the bandwidth test between two hosts.
fn is_between(case: &Case, hosts: [&str; 2]) -> bool {
    &*case.test == "write-bw" && case.flow.hosts().iter().all(|host| hosts.contains(&&***host))
}

fn slowed(outcome: &mut Outcome, to: u64) {
    if let Ok(sample) = &mut outcome.result {
        sample.initiator.elapsed = sample.initiator.elapsed * 100 / to;
        sample.initiator.slices.iter_mut().for_each(|slice| *slice = *slice * to / 100);
    }
}

fn failed_limit(lines: &[Line]) -> Verdict {
    let journal = parsed(lines);
    let results = results(&journal).unwrap();
    let found = verdicts(&journal, &results, &rows(&journal, &results), Vec::new());
    let is_broken = |one: &Verdict| one.kind == Kind::Expectation && one.status == Status::Fail;
    found.verdicts.into_iter().find(is_broken).unwrap()
}

#[test]
fn one_case_without_a_value_does_not_hide_that_all_others_break_a_limit() {
    let fails = |remedy: bool| {
        altered(
            &small(6),
            |plan| limited(plan, 9000.0),
            |case, outcome| {
                if is_between(case, ["gpu001", "gpu002"]) {
                    let failure = Failure::new(Stage::Join, FailureKind::Fabric, "it did not come up").at("gpu001");
                    outcome.result = Err(if remedy { failure.remedy(remedy::CHECK_FIREWALL) } else { failure });
                }
            },
        )
    };
    for lines in [fails(false), fails(true)] {
        let (about, text) = step(&lines);
        assert!(text.ends_with("[limit-broken-by-all]"), "{about}: {text}");
    }
}

/// They break no limit: nobody knows how fast right ones would be.
#[test]
fn cases_with_wrong_bytes_are_none_that_break_a_limit() {
    let lines = altered(
        &small(6),
        |plan| limited(plan, 9000.0),
        |case, outcome| {
            if is_between(case, ["gpu001", "gpu002"]) {
                let sample = outcome.result.as_mut().unwrap();
                (sample.checked.wrong, sample.checked.first_wrong) = (Bytes(1), Some(0));
            }
        },
    );
    let verdict = failed_limit(&lines);
    assert_eq!(verdict.tally.violating, 15);
    assert_eq!((verdict.tally.judged, verdict.compared.iter().filter(|(_, breaks)| *breaks).count()), (14, 14));
}

#[test]
fn a_later_limit_that_all_values_break_comes_before_an_earlier_one_that_some_break() {
    let lines = altered(
        &small(6),
        |plan| {
            limited(plan, 196.5);
            let test = &mut plan.tests[0];
            let mut second = test.expect[0].clone();
            (second.limit, second.line) = (Limit::AtLeast(9000.0), second.line + 1);
            test.expect.push(second);
        },
        |_, _| {},
    );
    let (about, text) = step(&lines);
    assert!(text.ends_with("[limit-broken-by-all]") && about.contains("9000"), "{about}: {text}");
}

/// Two limits with the same demand are told apart by what they are about.
#[test]
fn a_broken_limit_is_told_with_what_it_is_about() {
    let of = |group: Option<&str>, limit: f64| {
        altered(
            &small(6),
            |plan| {
                limited(plan, limit);
                let left = ["gpu001", "gpu002", "gpu003"].map(String::from).to_vec();
                plan.groups.insert("left".to_owned(), left);
                plan.tests[0].expect[0].group = group.map(str::to_owned);
                plan.localise.waive.push(railgauge_model::plan::model::Waiver::All);
            },
            |case, outcome| {
                if is_between(case, ["gpu001", "gpu003"]) {
                    slowed(outcome, 70);
                }
            },
        )
    };
    for (limit, remedy) in [(9000.0, "[limit-broken-by-all]"), (150.0, "[limit-broken-by-one]")] {
        let demand = format!("write-bw: bandwidth at least {limit} Gb/s");
        let left = view(&of(Some("left"), limit));
        let first = left.banner.remedy.as_ref().unwrap();
        assert!(first.text.ends_with(remedy), "{}", first.text);
        assert!(first.about.starts_with(&format!("{demand} (group left)")), "{}", first.about);
        assert!(left.banner.causes.iter().any(|cause| cause.contains("group left")), "{}", left.sentence);
        // A terminal and a chat have no list.
        assert!(!first.text.contains("the list of the verdict"), "{}", first.text);
        // Of all, nothing is to be said.
        let all = view(&of(None, limit));
        assert!(!all.sentence.contains("group"), "{}", all.sentence);
    }
}

#[test]
fn beside_a_confirmed_part_the_first_step_is_about_that_part() {
    let scenario = Scenario { slow: Some(4), ..small(8) };
    let text = support::followed::followed_up(&scenario, &scenario).0;
    let journal = journal::parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    let view = draw(&journal, Path::new("records.jsonl")).unwrap().view;
    assert!(view.banner.causes[0].starts_with("host gpu005 is at "), "{:?}", view.banner);
    let first = view.banner.remedy.unwrap();
    assert_eq!(first.about, "host gpu005 (confirmed)");
    assert!(first.text.ends_with("[slow-host]"), "{}", first.text);
    let results = results(&journal).unwrap();
    let found = verdicts(&journal, &results, &rows(&journal, &results), Vec::new());
    let parts = found.verdicts.iter().find(|one| one.kind == Kind::Parts && one.status == Status::Fail).unwrap();
    assert_eq!(parts.remedy.as_ref().unwrap().id, "slow-host");
}

/// A part that is known to be bad comes before one of which nobody knows.
#[test]
fn a_part_that_is_not_settled_has_no_first_step_beside_a_confirmed_one() {
    let scenario = Scenario { slow: Some(1), slow_hosts: 2, ..small(10) };
    let cases = support::followed::wanted(&scenario.jsonl());
    let mut more = scenario.further(&cases);
    for line in &mut more {
        let Event::Outcome(outcome) = &mut line.event else { continue };
        let case = cases.iter().find(|case| case.id == outcome.case).unwrap();
        if case.flow.hosts().iter().any(|host| &***host == "gpu003") {
            outcome.result = Err(Failure::new(Stage::Join, FailureKind::Fabric, "it did not come up").at("gpu003"));
        }
    }
    let text = support::continued(&scenario.jsonl(), &more);
    let journal = journal::parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    let view = draw(&journal, Path::new("records.jsonl")).unwrap().view;
    let first = view.banner.remedy.unwrap();
    assert_eq!(first.about, "host gpu002 (confirmed)", "{}", first.text);
    let [confirmed, undecided, ..] = view.banner.causes.as_slice() else { panic!("{:?}", view.banner.causes) };
    assert!(confirmed.starts_with("host gpu002 is at ") && confirmed.ends_with("(confirmed)"), "{confirmed}");
    assert!(
        view.banner.causes.iter().any(|cause| cause.starts_with("host gpu003 ") && cause.ends_with("(undecided)")),
        "{undecided}"
    );
    let parts = view.parts.unwrap().named;
    let standing = |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.standing.as_str());
    assert_eq!((standing("host gpu002"), standing("host gpu003")), (Some("confirmed"), Some("undecided")));
}

/// What one case alone breaks is shared with no other.
#[test]
fn the_first_step_of_a_limit_fits_how_many_cases_break_it() {
    let lines = altered(
        &small(6),
        |plan| limited(plan, 150.0),
        |case, outcome| {
            if is_between(case, ["gpu003", "gpu004"]) {
                slowed(outcome, 70);
            }
        },
    );
    let verdict = failed_limit(&lines);
    assert_eq!(verdict.tally.violating, 1);
    let mut lines = lines;
    for line in &mut lines {
        // Nothing is said of parts.
        if let Event::Started { resolved, .. } = &mut line.event {
            resolved.localise.waive.push(railgauge_model::plan::model::Waiver::All);
        }
    }
    let (about, text) = step(&lines);
    assert!(text.ends_with("[limit-broken-by-one]"), "{about}: {text}");
}

/// A demand that was not met reads as if it were.
#[test]
fn a_demand_is_never_told_as_what_happened() {
    let damaged = |lines: &[Line]| {
        let mut text = support::text(lines);
        let at = text.match_indices('\n').nth(9).unwrap().0;
        text.insert(at + 20, '#');
        let journal = journal::parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
        draw(&journal, Path::new("records.jsonl")).unwrap().view
    };
    let bare = |mut lines: Vec<Line>| {
        for line in &mut lines {
            if let Event::HostUp { facts, .. } = &mut line.event {
                facts.rdma.clear();
            }
        }
        lines
    };
    let unverified = altered(
        &small(6),
        |plan| {
            plan.tests.iter_mut().for_each(|test| {
                test.verify = false;
                test.expect.clear();
            });
        },
        |_, _| {},
    );
    for view in [damaged(&bare(small(6).lines())), view(&bare(unverified))] {
        assert_ne!(view.status, Status::Pass);
        // Where nothing is known to help there is no step.
        let Some(first) = view.banner.remedy else { continue };
        assert!(!first.about.is_empty() && !first.text.is_empty(), "{first:?}");
        let told = format!("{}: {}", first.about, first.text);
        let demands = ["as they were written", "worse than its peers", "every case is measured"];
        assert!(demands.iter().all(|demand| !told.contains(demand)), "{told}");
    }
}

/// `--resume` measures again what a damaged line had.
#[test]
fn records_that_a_resumed_run_makes_good_have_that_as_their_first_step() {
    let mut text = support::text(&small(6).lines());
    let at = text.match_indices("\"Outcome\"").nth(3).unwrap().0;
    text.insert(at + 20, '#');
    let journal = journal::parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    let view = draw(&journal, Path::new("records.jsonl")).unwrap().view;
    assert_eq!(view.run.remarks[0], "Records are damaged or inconsistent in 1 place: do not rely on this report.");
    let first = view.banner.remedy.unwrap();
    assert!(first.text.ends_with("[resume-run]"), "{first:?}");
    assert!(first.about.contains("cannot be read"), "{first:?}");
}
