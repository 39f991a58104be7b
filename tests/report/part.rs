//! A run of a part of a plan says so wherever its verdict stands.

use std::{fs, path::Path};

use railgauge_model::{journal::event::Event, plan::subset::Subset};
use railgauge_report::text;
use railgauge_report::text::Screen;

use crate::kept::write;
use crate::support::{self, Scenario};

const PART: &str = "4 of 9 hosts (gpu[001-004]), 1 of 3 tests (bw)";

/// What a run of a part of a plan leaves.
fn part(scenario: &Scenario, directory: &Path) {
    let mut lines = scenario.lines();
    let Some(Event::Started { resolved, .. }) = lines.first_mut().map(|line| &mut line.event) else { panic!() };
    resolved.subset = Some(Subset {
        hosts: Some((1..=4).map(|n| format!("gpu{n:03}")).collect()),
        of_hosts: 9,
        tests: Some(vec!["bw".to_owned()]),
        of_tests: ["bw", "lat", "sum"].map(String::from).into(),
        repeats: None,
        left_out: Vec::new(),
    });
    fs::write(directory.join("records.jsonl"), support::text(&lines)).unwrap();
}

fn healthy() -> Scenario {
    Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) }
}

/// As one line, whatever lines were broken.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_pass_of_a_part_is_told_as_one_beside_the_verdict() {
    let place = tempfile::tempdir().unwrap();
    part(&healthy(), place.path());
    let written = write(place.path()).unwrap();
    let verdicts = &written.verdicts;
    // The word and the code are those of what was run.
    assert_eq!((verdicts.status.word(), verdicts.exit_code), ("pass", 0));
    assert!(verdicts.sentence.ends_with(&format!(" (part of the plan: {PART})")), "{}", verdicts.sentence);
    let told = joined(&text::summary(&written.view, &written.page, &Screen::PLAIN));
    assert_eq!(told.matches(PART).count(), 1, "{told}");
    let page = fs::read_to_string(&written.page).unwrap().replace("&#x2f;", "/");
    let (before, banner) = page.split_once("<section class=\"verdict pass\">").unwrap();
    assert!(before.contains(": pass, of a part of the plan</title>"));
    let banner = banner.split_once("</section>").unwrap().0;
    assert!(banner.contains("pass <small>of a part of the plan</small>"), "{banner}");
    assert_eq!(banner.matches(PART).count(), 1, "{banner}");
}

#[test]
fn a_failed_part_is_told_as_one_too() {
    let place = tempfile::tempdir().unwrap();
    part(&Scenario { wrong: true, ..healthy() }, place.path());
    let written = write(place.path()).unwrap();
    assert!(written.verdicts.sentence.contains(PART), "{}", written.verdicts.sentence);
    assert!(joined(&text::summary(&written.view, &written.page, &Screen::PLAIN)).contains(PART));
}

#[test]
fn what_reads_junit_sees_that_the_rest_was_skipped() {
    let (place, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    part(&healthy(), place.path());
    healthy().write(whole.path());
    let junit = |of: &Path| {
        write(of).unwrap();
        fs::read_to_string(of.join("junit.xml")).unwrap()
    };
    let (of_part, of_whole) = (junit(place.path()), junit(whole.path()));
    let case = of_part.split("<testcase ").find(|case| case.contains("name=\"the whole plan\"")).unwrap();
    assert!(case.contains("<skipped") && case.contains(PART), "{case}");
    assert_eq!(of_part.matches("<failure").count() + of_part.matches("<error").count(), 0, "{of_part}");
    assert!(!of_whole.contains("<skipped") && !of_whole.contains("the whole plan"), "{of_whole}");
}

#[test]
fn a_whole_plan_is_told_without_it() {
    let place = tempfile::tempdir().unwrap();
    healthy().write(place.path());
    let written = write(place.path()).unwrap();
    let page = fs::read_to_string(&written.page).unwrap();
    assert!(!text::summary(&written.view, &written.page, &Screen::PLAIN).contains("part of the plan"));
    assert!(!page.contains("of a part of the plan") && !page.contains("part of the plan:"));
}
