//! Whole lines with sums that agree, and that no run writes so: whoever wrote them, they never pass.

use std::path::Path;

use railgauge_analysis::{
    history::METRICS,
    journal::parse,
    status::Status,
    verdict::{Kind, Verdicts},
};
use railgauge_model::journal::event::{Case, Event, Line, Outcome};
use railgauge_report::draw;
use railgauge_wire::{
    failure::{self, Failure, Stage},
    unit::Bytes,
};

use crate::support::{self, Scenario};

fn small() -> Scenario {
    Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(4, 2) }
}

/// A journal that passes.
fn lines() -> Vec<Line> {
    let mut lines = small().lines();
    // Four hosts are too few for demands on peers.
    if let Event::Started { resolved, .. } = &mut lines[0].event {
        resolved.tests.iter_mut().for_each(|test| test.expect.clear());
    }
    lines
}

fn judged(lines: &[Line]) -> Verdicts {
    let path = Path::new("records.jsonl");
    let journal = parse(support::text(lines).as_bytes(), path).unwrap();
    draw(&journal, path).unwrap().verdicts
}

/// Such a journal is inconclusive, and the verdict of this kind names these words.
fn never_passes(kind: Kind, lines: &[Line], words: &[&str]) {
    let found = judged(lines);
    assert_eq!((found.status, found.exit_code), (Status::Inconclusive, 3), "{}", found.sentence);
    let verdict = found.verdicts.iter().find(|verdict| verdict.kind == kind).expect("a verdict of this kind");
    assert_eq!(verdict.status, Status::Inconclusive);
    for word in words {
        assert!(verdict.reason.to_string().contains(word), "{word}: {}", verdict.reason);
    }
}

fn place(lines: &[Line], of: impl Fn(&Event) -> bool) -> usize {
    lines.iter().position(|line| of(&line.event)).unwrap()
}

fn line(event: Event) -> Line {
    Line { at: "2026-11-21T02:00:30.000Z".into(), event }
}

/// The journal with other planned cases, numbered anew, each with an outcome.
fn planned(change: impl Fn(&mut Vec<Case>)) -> Vec<Line> {
    let mut lines = lines();
    let at = place(&lines, |event| matches!(event, Event::Planned { .. }));
    let Event::Planned { cases } = &mut lines[at].event else { unreachable!() };
    change(cases);
    (0..).zip(cases.iter_mut()).for_each(|(id, case)| case.id = id);
    let all = cases.len() as u64;
    lines.retain(|line| !matches!(&line.event, Event::Outcome(outcome) if outcome.case >= all));
    lines
}

#[test]
fn a_healthy_journal_contradicts_nothing() {
    let found = judged(&lines());
    assert_eq!(found.status, Status::Pass, "{}", found.sentence);
}

#[test]
fn a_host_of_which_the_records_say_nothing_is_named() {
    let mut lines = lines();
    if let Event::Started { resolved, .. } = &mut lines[0].event {
        let spare = railgauge_model::plan::model::Host { name: "spare".into(), ..resolved.hosts[0].clone() };
        resolved.hosts.push(spare);
    }
    never_passes(Kind::Hosts, &lines, &["spare"]);
}

#[test]
fn a_line_about_a_host_that_the_plan_does_not_have_is_named() {
    let failure = Failure::new(Stage::Connect, failure::Kind::Lost, "no route");
    let mut lines = lines();
    lines.insert(2, line(Event::HostLost { host: "stranger".into(), failure }));
    never_passes(Kind::Records, &lines, &["line 3", "stranger"]);
    let Event::HostUp { facts, .. } = lines[1].event.clone() else { unreachable!() };
    lines[2].event = Event::HostUp { host: "other".into(), facts, clock: None, wall: None };
    never_passes(Kind::Records, &lines, &["line 3", "other"]);
}

#[test]
fn a_failure_about_a_host_that_the_plan_does_not_have_is_named() {
    let broken = || Failure::new(Stage::Measure, failure::Kind::Fabric, "cut");
    for told in [broken().at("zzz"), broken().at("gpu001").with("zzz")] {
        let mut lines = lines();
        let at = place(&lines, |event| matches!(event, Event::Outcome(_)));
        let Event::Outcome(outcome) = &mut lines[at].event else { unreachable!() };
        outcome.result = Err(told);
        never_passes(Kind::Records, &lines, &["zzz", &format!("line {}", at + 1)]);
        assert!(judged(&lines).troubles.iter().all(|trouble| !trouble.against.to_string().contains("zzz")));
    }
}

#[test]
fn planned_cases_that_the_plan_does_not_make_are_named() {
    let at = place(&lines(), |event| matches!(event, Event::Planned { .. })) + 1;
    let at = format!("line {at}");
    type Change = fn(&mut Vec<Case>);
    let changes: [(Change, &str); 7] = [
        (|cases| drop(cases.pop()), "1 case"),
        (|cases| drop(cases.remove(0)), "case 0"),
        (|cases| cases[1] = cases[0].clone(), "case 1"),
        (|cases| cases[2].flow.to = cases[2].flow.from.clone(), "case 2"),
        (|cases| (cases[0].flow.from.rail, cases[0].flow.to.rail) = (1_000_000_000, 1_000_000_000), "case 0"),
        (|cases| cases[3].flow.from.host = "gpu900".into(), "case 3"),
        (|cases| cases.extend_from_slice(&[cases[0].clone()]), "case"),
    ];
    for (change, case) in changes {
        never_passes(Kind::Records, &planned(change), &[&at, case]);
    }
}

#[test]
fn a_plan_that_makes_more_cases_than_fit_into_memory_is_told_at_once() {
    use railgauge_model::plan::model::{AtOnce, Pattern};
    let mut lines = lines();
    if let Event::Started { resolved, .. } = &mut lines[0].event {
        resolved.tests[0].pattern = Pattern::AtOnce(AtOnce::Permutation(65_536));
    }
    never_passes(Kind::Records, &lines, &["at least"]);
}

#[test]
fn a_second_list_of_cases_and_what_stands_behind_the_end_are_named() {
    let mut lines = lines();
    let at = place(&lines, |event| matches!(event, Event::Planned { .. }));
    lines.insert(at + 1, lines[at].clone());
    never_passes(Kind::Records, &lines, &[&format!("line {}", at + 2), "second"]);
    lines.remove(at + 1);
    let outcome = lines.iter().find(|line| matches!(line.event, Event::Outcome(_))).unwrap().clone();
    let behind = lines.len() + 1;
    lines.extend([outcome, line(Event::Finished)]);
    never_passes(Kind::Records, &lines, &[&format!("line {behind}"), "after the end"]);
    // The same behind an interruption that is taken for an end.
    lines[behind - 2].event = Event::Interrupted;
    never_passes(Kind::Records, &lines, &[&format!("line {behind}"), "after the end"]);
    // Taken up again it may stand there.
    lines.insert(behind - 1, line(Event::Resumed { unread: Vec::new() }));
    assert_eq!(judged(&lines).status, Status::Pass);
}

#[test]
fn times_that_are_none_or_outside_of_the_run_are_named() {
    let outcome = place(&lines(), |event| matches!(event, Event::Outcome(_)));
    let mut at_no_time = lines();
    at_no_time[outcome].at = "yesterday".into();
    never_passes(Kind::Records, &at_no_time, &[&format!("line {}", outcome + 1), "yesterday"]);
    for time in ["1970-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z"] {
        let mut began = lines();
        let Event::Outcome(one) = &mut began[outcome].event else { unreachable!() };
        let one: &mut Outcome = one;
        one.started_at = time.into();
        never_passes(Kind::Records, &began, &[&format!("line {}", outcome + 1), time]);
    }
}

#[test]
fn a_run_that_nobody_can_have_made_at_its_time_is_no_pass() {
    for year in ["1970", "2099"] {
        let mut lines = lines();
        for line in &mut lines {
            line.at = line.at.replace("2026", year);
            if let Event::Outcome(outcome) = &mut line.event {
                outcome.started_at = outcome.started_at.to_string().replace("2026", year).into();
            }
        }
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("records.jsonl"), support::text(&lines)).unwrap();
        let found = crate::kept::write(place.path()).unwrap().verdicts;
        assert_eq!(found.status, Status::Inconclusive, "{}", found.sentence);
        let records = found.verdicts.iter().find(|verdict| verdict.kind == Kind::Records).unwrap();
        assert!(
            records.reason.to_string().contains("line 1") && records.reason.to_string().contains(year),
            "{}",
            records.reason
        );
    }
}

#[test]
fn wrong_bytes_in_a_further_case_fail_the_run() {
    let mut lines = lines();
    let Event::Planned { cases } =
        lines.iter().find(|l| matches!(l.event, Event::Planned { .. })).unwrap().event.clone()
    else {
        unreachable!()
    };
    let further = Case { id: cases.len() as u64, ..cases[0].clone() };
    let end = lines.len() - 1;
    lines.insert(end, line(Event::Confirming { cases: vec![further.clone()], links: false }));
    lines.extend(small().further(&[further]).into_iter().skip(1));
    let finished = lines.remove(end + 1);
    lines.push(finished);
    assert_eq!(judged(&lines).status, Status::Pass);
    let last = lines.len() - 2;
    let Event::Outcome(outcome) = &mut lines[last].event else { unreachable!() };
    outcome.result.as_mut().unwrap().checked.wrong = Bytes(8);
    let found = judged(&lines);
    assert_eq!((found.status, found.exit_code), (Status::Fail, 1), "{}", found.sentence);
    assert!(found.sentence.starts_with("1 of ") && found.sentence.contains("with wrong bytes"), "{}", found.sentence);
    let link = cases[0].flow.name();
    let verdict = found.verdicts.iter().find(|one| one.kind == Kind::EveryCase && *one.test == *cases[0].test).unwrap();
    assert!(verdict.status == Status::Fail && verdict.reason.to_string().contains(&link), "{}", verdict.reason);
    assert!(found.troubles.iter().any(|trouble| trouble.case == cases.len() as u64));
}

#[test]
fn a_run_under_another_name_and_date_with_the_same_values_is_no_run_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let directory = place.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("records.jsonl"), text).unwrap();
        directory
    };
    let renamed = |mut lines: Vec<Line>| {
        for line in &mut lines {
            line.at = line.at.replace("2026-11-21", "2026-11-20");
            match &mut line.event {
                Event::Started { run_id, .. } => "another".clone_into(run_id),
                Event::Outcome(outcome) => {
                    outcome.started_at = outcome.started_at.to_string().replace("2026-11-21", "2026-11-20").into()
                }
                _ => {}
            }
        }
        support::text(&lines)
    };
    let other = Scenario { seed: 1, ..small() };
    let all = [
        write("first", &small().jsonl()),
        write("second", &renamed(small().lines())),
        write("third", &renamed(other.lines())),
    ];
    let mut read = Vec::new();
    crate::kept::read_all(&all, &METRICS, |_, run| read.push(run.map_err(|error| error.to_string())));
    assert!(read[0].is_ok() && read[2].is_ok(), "{read:?}");
    let said = read[1].as_ref().unwrap_err();
    assert!(said.contains("second") && said.contains("a copy of the run in") && said.contains("first"), "{said}");
    // Without values nobody can tell.
    let mut nothing = small().lines();
    nothing.retain(|line| !matches!(line.event, Event::Outcome(_)));
    let all = [write("empty", &support::text(&nothing)), write("empty again", &renamed(nothing))];
    let mut read = 0;
    crate::kept::read_all(&all, &METRICS, |_, run| read += usize::from(run.is_ok()));
    assert_eq!(read, 2);
}
