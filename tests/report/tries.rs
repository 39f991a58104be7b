//! What becomes of several tries of a repeat, of repeats nobody asked for, and of hosts that never answered.

use std::path::Path;

use railgauge_analysis::{
    case::State,
    journal::{Journal, Try, parse},
    results::{Mismatch, results},
    rows::rows,
    status::Status,
    verdict::{Verdicts, verdicts},
};
use railgauge_model::journal::event::{Event, Line};
use railgauge_report::draw;
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    unit::Bytes,
};

use crate::support::{self, Scenario};

fn small() -> Scenario {
    Scenario { sizes: vec![4096, 65536], repeats: 2, ..Scenario::healthy(4, 1) }
}

fn journal() -> Journal {
    parse(small().jsonl().as_bytes(), Path::new("records.jsonl")).unwrap()
}

fn judge(journal: &Journal) -> (Verdicts, Vec<State>) {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let states = results.iter().map(|result| result.state).collect();
    (verdicts(journal, &results, &rows, Vec::new()), states)
}

/// The journal with a further try of the first case's first repeat before and after the one it has.
fn with(spoil: impl Fn(&mut Try)) -> [Journal; 2] {
    [true, false].map(|before| {
        let mut journal = journal();
        let at = journal.tries.iter().position(|tried| (tried.case, tried.repeat) == (0, 0)).unwrap();
        let mut bad = journal.tries[at].clone();
        spoil(&mut bad);
        journal.tries.insert(if before { at } else { at + 1 }, bad);
        journal
    })
}

#[test]
fn wrong_bytes_stay_wrong_whatever_another_try_of_the_repeat_says() {
    let wrong_sample = |tried: &mut Try| {
        let checked = &mut tried.result.as_mut().unwrap().checked;
        (checked.wrong, checked.first_wrong) = (Bytes(8), Some(4096));
    };
    for journal in with(wrong_sample) {
        let (verdicts, states) = judge(&journal);
        assert_eq!((states[0], verdicts.status, verdicts.exit_code), (State::Wrong, Status::Fail, 1));
        assert!(
            verdicts.sentence.starts_with("1 of ") && verdicts.sentence.contains("with wrong bytes"),
            "{}",
            verdicts.sentence
        );
        assert!(
            verdicts.troubles[0].against.to_string().contains("8 bytes are not what was sent"),
            "{:?}",
            verdicts.troubles
        );
        let row = &rows(&journal, &results(&journal).unwrap())[0];
        assert_eq!((row.wrong, row.error.is_some()), (8, true));
    }
    let corrupt = Failure::new(Stage::Verify, Kind::Corruption, "an atomic brought back another word").at("gpu001");
    for journal in with(|tried| tried.result = Err(corrupt.clone())) {
        let (verdicts, states) = judge(&journal);
        assert_eq!((states[0], verdicts.exit_code), (State::Wrong, 1), "{}", verdicts.sentence);
        assert!(verdicts.troubles[0].against.to_string().contains("another word"), "{:?}", verdicts.troubles);
    }
    // Any other failure is made good by a later try.
    let lost = Failure::new(Stage::Measure, Kind::Lost, "gone").at("gpu001");
    for journal in with(|tried| tried.result = Err(lost.clone())) {
        assert_eq!(judge(&journal).1[0], State::Measured);
    }
}

#[test]
fn a_repeat_that_the_plan_does_not_have_is_no_result() {
    let mut journal = journal();
    journal.tries.last_mut().unwrap().repeat = 7;
    let error = results(&journal).unwrap_err();
    assert!(matches!(error, Mismatch::UnaskedRepeat { repeat: 8, repeats: 2, .. }), "{error}");
}

#[test]
fn what_was_measured_on_a_host_that_never_answered_cannot_be_true() {
    let lines: Vec<Line> = small().lines();
    let without = |gone: &dyn Fn(&str) -> bool| {
        let of = |line: &&Line| !matches!(&line.event, Event::HostUp { host, .. } if gone(host));
        let lines: Vec<Line> = lines.iter().filter(of).cloned().collect();
        parse(support::text(&lines).as_bytes(), Path::new("records.jsonl")).unwrap()
    };
    let nobody = without(&|_| true);
    let (verdicts, states) = judge(&nobody);
    assert!(states.iter().all(|state| *state == State::Impossible), "{states:?}");
    assert_eq!((verdicts.status, verdicts.exit_code), (Status::Inconclusive, 3), "{}", verdicts.sentence);
    let one = without(&|host| host == "gpu002");
    let (verdicts, states) = judge(&one);
    assert!(states.contains(&State::Impossible) && states.contains(&State::Measured), "{states:?}");
    assert_eq!(verdicts.exit_code, 3);
    let error = &verdicts.troubles[0].against.to_string();
    assert!(error.contains("gpu002: connect: the host never answered in this run"), "{error}");
    assert!(draw(&nobody, Path::new("records.jsonl")).is_ok());
}

#[test]
fn every_sample_that_counts_must_have_come_by_what_the_plan_asks_for() {
    use railgauge_wire::terms::Carrier;

    // One of two repeats came over TCP; the last one, and a failed try behind it, by what was asked for.
    let mut journal = journal();
    let of_first = |tried: &&mut Try| (tried.case, tried.repeat) == (0, 0);
    let link = journal.tries.iter_mut().find(of_first).and_then(|tried| tried.link.as_mut()).unwrap();
    std::sync::Arc::make_mut(link).transport = Carrier::Tcp;
    let (verdicts, states) = judge(&journal);
    assert_eq!(states[0], State::Contaminated, "{}", verdicts.sentence);
    assert_ne!(verdicts.exit_code, 0);
}
