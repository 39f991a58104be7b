//! Words for people decide nothing: replaced by ids they change no verdict, no exit code and no frame.

use railgauge_model::journal::event::{Event, Line};
use railgauge_wire::failure::{Failure, Kind, Stage};

use crate::{
    reworded::changes,
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
