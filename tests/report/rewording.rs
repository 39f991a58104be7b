//! Words for people decide nothing: replaced by ids they change no verdict, no exit code and no frame.

use std::{collections::BTreeSet, path::Path};

use railgauge_analysis::journal;
use railgauge_model::journal::event::{Event, Line};
use railgauge_report::draw;
use railgauge_wire::failure::{Failure, Kind, Stage};
use serde_json::Value;

use crate::{
    reworded::{changes, reworded},
    support::{self, Scenario},
};

#[test]
fn rewording_changes_no_verdict_and_no_frame() {
    let small = |scenario: Scenario| Scenario { sizes: vec![65536], repeats: 1, ..scenario };
    let scenarios = [
        small(Scenario::troubled(5, 1)),
        small(Scenario { dies: Some(0), interrupted: true, ..Scenario::troubled(6, 2) }),
        small(Scenario { dies: Some(1), ..Scenario::healthy(4, 2) }),
        small(Scenario { slow: Some(2), ..Scenario::healthy(4, 1) }),
    ];
    for scenario in scenarios {
        assert!(changes(scenario.jsonl().as_bytes()).unwrap() > 0, "{scenario:?}");
    }
}

/// Reasons of verdicts: words, and fields.
fn reasons(text: &[u8]) -> Vec<(String, Value)> {
    let path = Path::new("records.jsonl");
    let drawn = draw(&journal::parse(text, path).unwrap(), path).unwrap();
    let document: Value = serde_json::from_str(&drawn.verdicts.json().unwrap()).unwrap();
    let of = |verdict: &Value| (verdict["reason"].as_str().unwrap().to_owned(), verdict["reasons"].clone());
    document["verdicts"].as_array().unwrap().iter().map(of).collect()
}

/// What speaks against a case can be read without its words as well.
#[test]
fn whatever_speaks_against_a_case_stands_in_fields() {
    let small = |scenario: Scenario| Scenario { sizes: vec![65536], repeats: 1, ..scenario };
    let scenario = small(Scenario { dies: Some(0), interrupted: true, ..Scenario::troubled(6, 2) });
    let path = Path::new("records.jsonl");
    let kinds = |text: &[u8]| -> Vec<(u64, Vec<Value>)> {
        let drawn = draw(&journal::parse(text, path).unwrap(), path).unwrap();
        let document: Value = serde_json::from_str(&drawn.verdicts.json().unwrap()).unwrap();
        let of = |trouble: &Value| {
            assert!(!trouble["error"].as_str().unwrap().is_empty());
            let against = trouble["against"].as_array().unwrap();
            (trouble["case"].as_u64().unwrap(), against.iter().map(|one| one["kind"].clone()).collect())
        };
        document["troubles"].as_array().unwrap().iter().map(of).collect()
    };
    let text = scenario.jsonl();
    let own = kinds(text.as_bytes());
    assert!(own.len() > 3 && own.iter().all(|(_, kinds)| !kinds.is_empty()), "{own:?}");
    assert_eq!(own, kinds(&reworded(text.as_bytes())));
    let all: BTreeSet<&str> = own.iter().flat_map(|(_, kinds)| kinds).map(|kind| kind.as_str().unwrap()).collect();
    assert!(all.contains("not-run") && all.contains("failed"), "{all:?}");
}

/// What a verdict rests on can be read without its words: those may be worded anew, the fields stay.
#[test]
fn every_reason_of_a_verdict_stands_in_fields() {
    let small = |scenario: Scenario| Scenario { sizes: vec![65536], repeats: 1, ..scenario };
    let scenarios = [
        (small(Scenario::healthy(6, 1)), &["measured", "kept", "nothing-stands-out"][..]),
        (small(Scenario { slow: Some(2), ..Scenario::healthy(6, 1) }), &["broken", "suspect"]),
        (
            small(Scenario { dies: Some(0), interrupted: true, ..Scenario::troubled(6, 2) }),
            &["interrupted", "lost", "incomplete", "not-measured"],
        ),
    ];
    for (scenario, wanted) in scenarios {
        let text = scenario.jsonl();
        let (own, other) = (reasons(text.as_bytes()), reasons(&reworded(text.as_bytes())));
        let mut kinds = BTreeSet::new();
        for ((words, found), (again, same)) in own.iter().zip(&other) {
            let found = found.as_array().unwrap();
            assert!(!words.is_empty() && !again.is_empty() && !found.is_empty(), "{words}");
            kinds.extend(found.iter().map(|reason| reason["id"].as_str().unwrap().to_owned()));
            let kind = |reason: &Value| reason["id"].clone();
            let same: Vec<Value> = same.as_array().unwrap().iter().map(kind).collect();
            assert_eq!(found.iter().map(kind).collect::<Vec<_>>(), same, "{words}");
        }
        assert!(wanted.iter().all(|kind| kinds.contains(*kind)), "{wanted:?}: {kinds:?}");
    }
}

#[test]
fn every_stage_and_kind_of_failure_can_be_reworded() {
    let stages = [
        Stage::Connect,
        Stage::Deploy,
        Stage::Start,
        Stage::Facts,
        Stage::Configure,
        Stage::Open,
        Stage::Join,
        Stage::Verify,
        Stage::Measure,
        Stage::Converse,
    ];
    let kinds = [
        Kind::Lost,
        Kind::Unsupported,
        Kind::Configuration,
        Kind::Fabric,
        Kind::Corruption,
        Kind::Deadline,
        Kind::Aborted,
        Kind::Internal,
    ];
    let scenario = Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(3, 1) };
    for stage in stages {
        let mut kinds = kinds.iter().cycle();
        let spoil = |line: Line| {
            let Event::Outcome(mut outcome) = line.event else { return line };
            let kind = *kinds.next().unwrap();
            let told = Failure::new(stage, kind, format!("gpu002: {kind:?} of what was sent: no space left on device"));
            outcome.result = Err(if outcome.case % 2 == 0 { told.at("gpu002").with("gpu001") } else { told });
            Line { event: Event::Outcome(outcome), ..line }
        };
        let lines: Vec<Line> = scenario.lines().into_iter().map(spoil).collect();
        assert!(changes(support::text(&lines).as_bytes()).unwrap() > 0, "{stage}");
    }
}
