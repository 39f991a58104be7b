//! Comparisons and trends take values from a frame only where it is the result of the journal as it is.

use std::{fs, path::Path};

use railgauge_analysis::history::{self, METRICS, RunError};
use railgauge_frame::Parquet;
use railgauge_model::journal::event::Event;
use railgauge_report::write;

use crate::support::{Scenario, text};

fn run(place: &Path) {
    Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(4, 1) }.write(place);
    write(place, &Parquet).unwrap();
}

#[test]
fn no_bit_of_a_frame_changes_what_is_read() {
    let place = tempfile::tempdir().unwrap();
    run(place.path());
    let whole = history::read(place.path(), &METRICS, &Parquet).unwrap();
    let frame = place.path().join("records.parquet");
    let bytes = fs::read(&frame).unwrap();
    for at in (0..bytes.len()).step_by(bytes.len() / 60) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        fs::write(&frame, flipped).unwrap();
        assert_eq!(history::read(place.path(), &METRICS, &Parquet).unwrap().readings, whole.readings, "byte {at}");
    }
    // That of another run.
    let other = tempfile::tempdir().unwrap();
    Scenario { slow: Some(1), sizes: vec![65536], repeats: 1, ..Scenario::healthy(4, 1) }.write(other.path());
    write(other.path(), &Parquet).unwrap();
    fs::copy(other.path().join("records.parquet"), &frame).unwrap();
    assert_eq!(history::read(place.path(), &METRICS, &Parquet).unwrap().readings, whole.readings);
}

#[test]
fn a_run_whose_journal_is_damaged_is_refused_by_name_also_with_a_frame() {
    let place = tempfile::tempdir().unwrap();
    run(place.path());
    let journal = place.path().join("records.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let mut lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
    let at = lines.len() - 2;
    lines[at] = lines[at].replacen("Outcome", "Outcame", 1);
    fs::write(&journal, lines.concat()).unwrap();
    // Before the report is drawn again, and after: the frame then holds what is left.
    for again in [false, true] {
        if again {
            write(place.path(), &Parquet).unwrap();
        }
        let error = history::read(place.path(), &METRICS, &Parquet).unwrap_err();
        assert!(matches!(error, RunError::Damaged { line, .. } if line == at + 1), "{again}: {error}");
    }
}

#[test]
fn a_run_whose_cases_cannot_be_read_is_damaged_and_not_unmeasured() {
    let place = tempfile::tempdir().unwrap();
    run(place.path());
    let journal = place.path().join("records.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("\"Planned\"")).unwrap();
    fs::write(&journal, text.replacen("\"Planned\"", "\"Planmed\"", 1)).unwrap();
    let error = history::read(place.path(), &METRICS, &Parquet).unwrap_err();
    assert!(matches!(error, RunError::Damaged { line, .. } if line == at + 1), "{error}");
    // One that broke off before it was written was not damaged.
    fs::write(&journal, lines[..at].join("\n") + "\n" + &lines[at][..40]).unwrap();
    let error = history::read(place.path(), &METRICS, &Parquet).unwrap_err();
    assert!(matches!(error, RunError::Unplanned { .. }), "{error}");
}

#[test]
fn what_is_there_twice_cannot_be_resumed() {
    let place = tempfile::tempdir().unwrap();
    run(place.path());
    let journal = place.path().join("records.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(lines.len() - 3, lines[lines.len() - 4]);
    fs::write(&journal, lines.join("\n") + "\n").unwrap();
    let error = history::read(place.path(), &METRICS, &Parquet).unwrap_err();
    assert!(matches!(error, RunError::Damaged { resumable: false, .. }), "{error}");
}

/// Lines that are whole and that no run writes so: the report is inconclusive for them, and no other reader takes the values.
#[test]
fn a_run_whose_lines_contradict_each_other_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut lines = Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(4, 1) }.lines();
    let up = lines.iter().position(|line| matches!(line.event, Event::HostUp { .. })).unwrap();
    let mut stranger = lines[up].clone();
    let Event::HostUp { host, .. } = &mut stranger.event else { unreachable!() };
    *host = "stranger".into();
    lines.insert(up, stranger);
    fs::write(place.path().join("records.jsonl"), text(&lines)).unwrap();
    for again in [false, true] {
        if again {
            write(place.path(), &Parquet).unwrap();
        }
        let error = history::read(place.path(), &METRICS, &Parquet).unwrap_err();
        assert!(matches!(error, RunError::Contradiction { .. }), "{again}: {error}");
    }
}

/// A line of the night before, in the journal of this one.
#[test]
fn a_case_of_another_night_is_no_case_of_this_run() {
    let lines = |day: u32| Scenario { sizes: vec![65536], repeats: 1, day, ..Scenario::healthy(4, 1) }.lines();
    let (before, mut this) = (lines(10), lines(11));
    let at = this.iter().rposition(|line| matches!(line.event, Event::Outcome(_))).unwrap();
    this[at] = before[at].clone();
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("records.jsonl"), text(&this)).unwrap();
    let journal = railgauge_analysis::journal::read(&place.path().join("records.jsonl")).unwrap();
    assert_eq!(journal.contradictions.first().map(|found| found.line), Some(at + 1), "{:?}", journal.contradictions);
}

/// What says how a run ended is written when all else is.
#[test]
fn no_verdicts_stand_beside_a_page_that_could_not_be_written() {
    for name in ["junit.xml", "report.html"] {
        let place = tempfile::tempdir().unwrap();
        Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(4, 1) }.write(place.path());
        fs::create_dir_all(place.path().join(name).join("taken")).unwrap();
        write(place.path(), &Parquet).unwrap_err();
        assert!(!place.path().join("verdicts.json").exists(), "{name}");
    }
}
