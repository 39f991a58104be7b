//! What is undecided: its first step is one that can settle it, and what further tests came to is counted as it was.

use std::path::Path;

use railgauge_analysis::journal;
use railgauge_model::journal::event::{Case, Event, Line, Outcome};
use railgauge_report::{draw, view::View};
use railgauge_wire::failure::{Failure, Kind, Stage};

use crate::support::{self, Scenario};

/// Eight hosts, one of them slow.
fn slow() -> Scenario {
    Scenario { sizes: vec![1 << 24], repeats: 1, slow: Some(4), ..Scenario::healthy(8, 1) }
}

fn view(text: &str) -> View {
    let path = Path::new("records.jsonl");
    draw(&journal::parse(text.as_bytes(), path).unwrap(), path).unwrap().view
}

/// The first thing to do, with what it is for.
fn step(view: &View) -> (String, String) {
    let first = view.banner.remedy.as_ref().unwrap();
    (first.about.clone(), first.text.clone())
}

/// The run whose suspects were measured again, where something was changed in its own lines and in those that follow.
fn again(change: impl Fn(&mut Event), further: impl Fn(&Case, &mut Outcome)) -> String {
    let mut lines: Vec<Line> = slow().lines();
    lines.iter_mut().for_each(|line| change(&mut line.event));
    let text = support::text(&lines);
    let cases = support::followed::wanted(&text);
    assert!(!cases.is_empty());
    let mut more = slow().further(&cases);
    for line in &mut more {
        let Event::Outcome(outcome) = &mut line.event else { continue };
        further(cases.iter().find(|case| case.id == outcome.case).unwrap(), outcome);
    }
    support::continued(&text, &more)
}

fn is_of_slow(case: &Case) -> bool {
    case.flow.hosts().iter().any(|host| &***host == "gpu005")
}

#[test]
fn of_hosts_of_one_machine_nothing_is_to_be_measured_again() {
    let one_machine = |event: &mut Event| {
        if let Event::HostUp { facts, .. } = event {
            facts.hostname = "build".into();
        }
    };
    let (about, text) = step(&view(&again(one_machine, |_, _| {})));
    assert_eq!(about, "host gpu005 (undecided)");
    assert!(text.ends_with("[hosts-of-one-machine]"), "{text}");
}

#[test]
fn further_tests_with_a_value_are_not_told_as_those_without() {
    let fail_controls = |case: &Case, outcome: &mut Outcome| {
        if !is_of_slow(case) {
            outcome.result = Err(Failure::new(Stage::Join, Kind::Fabric, "it did not come up").at("gpu001"));
        }
    };
    let view = view(&again(|_| {}, fail_controls));
    let parts = view.parts.as_ref().unwrap();
    let part = parts.named.iter().find(|part| part.name == "host gpu005").unwrap();
    assert_eq!(part.standing, "undecided");
    let values = part.further.iter().filter(|[_, _, told]| told.ends_with("Gb/s") || told.ends_with("µs")).count();
    assert_eq!(values, part.further.len(), "{:?}", part.further);
    for [_, _, reason, _] in &part.evidence {
        assert!(!reason.contains(" with a value") && !reason.contains("too few"), "{reason}");
        assert!(reason.contains("no known-good pair"), "{reason}");
    }
    // Controls that failed may come up.
    let (_, text) = step(&view);
    assert!(!text.contains("[more-partners]"), "{text}");
}

#[test]
fn what_the_plan_does_not_let_be_measured_again_has_that_as_its_first_step() {
    let mut lines = slow().lines();
    for line in &mut lines {
        if let Event::Started { resolved, .. } = &mut line.event {
            resolved.localise.confirm = false;
        }
    }
    let (about, text) = step(&view(&support::text(&lines)));
    assert_eq!(about, "host gpu005 (suspect)");
    assert!(text.contains("confirm = true") && text.ends_with("[confirm-suspects]"), "{text}");
    let (_, text) = step(&view(&slow().jsonl()));
    assert!(text.ends_with("[measure-again]"), "{text}");
}
