//! What a journal reader forgives and what it does not.

use std::path::Path;

use railgauge::analysis::journal::{End, Journal, JournalError, parse};

use crate::support::Scenario;

fn small() -> Scenario {
    Scenario { sizes: vec![4096, 65536], repeats: 1, ..Scenario::healthy(3, 1) }
}

fn read(text: &str) -> Result<Journal, JournalError> {
    parse(text.as_bytes(), Path::new("records.jsonl"))
}

#[test]
fn a_whole_journal_is_read() {
    let journal = read(&small().jsonl()).unwrap();
    assert_eq!(journal.run_id, "acceptance-20261121T020000Z");
    assert_eq!((journal.hosts.len(), journal.cases.len(), journal.tries.len()), (3, 22, 22));
    assert_eq!(journal.end, End::Finished);
}

#[test]
fn a_torn_last_line_is_left_out_and_noted() {
    let text = small().jsonl();
    let lines = text.lines().count();
    // Cut into the last outcome, wherever: what is left of it is no event.
    let whole = text.rfind("{\"v\"").unwrap();
    let before = text[..whole].rfind("{\"v\"").unwrap();
    for cut in [before + 1, before + 40, whole - 2] {
        let journal = read(&text[..cut]).unwrap();
        assert_eq!(journal.tries.len(), 21, "{cut}");
        assert_eq!(journal.end, End::Broken);
        let note = format!("line {} of the journal was cut off by a crash", lines - 1);
        assert!(journal.notes.last().unwrap().1.starts_with(&note), "{:?}", journal.notes);
    }
}

#[test]
fn a_torn_line_before_a_resumption_is_left_out_and_noted() {
    let text = small().jsonl();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let last = lines.len() - 2;
    let half = lines[last].len() / 2;
    lines[last].truncate(half);
    lines.insert(last + 1, r#"{"v":1,"at":"2026-11-21T03:00:00.000Z","event":"Resumed"}"#.into());
    let journal = read(&lines.join("\n")).unwrap();
    assert_eq!((journal.tries.len(), journal.resumed, journal.end), (21, 1, End::Finished));
    assert!(journal.notes.last().unwrap().1.contains("cut off"));
}

#[test]
fn a_foreign_line_is_an_error_with_its_place() {
    let text = small().jsonl();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(4, "hello");
    let error = read(&lines.join("\n")).unwrap_err().to_string();
    assert!(error.starts_with("records.jsonl:5: not a line of a railgauge journal: "), "{error}");
    // A complete last line that is no event is no crash either.
    let error = read(&format!("{text}{{}}\n")).unwrap_err().to_string();
    assert!(error.contains("not a line of a railgauge journal"), "{error}");
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let text = small().jsonl().replacen("{\"v\":1,", "{\"v\":2,", 1);
    let error = read(&text).unwrap_err().to_string();
    assert!(
        error.starts_with("records.jsonl:1: written in journal version 2, this railgauge reads up to 1"),
        "{error}"
    );
    let unknown = r#"{"v":9,"at":"x","event":{"Something":{"new":1}}}"#;
    let error = read(&format!("{}{unknown}\n", small().jsonl())).unwrap_err().to_string();
    assert!(error.contains("journal version 9"), "{error}");
}

#[test]
fn nothing_and_a_journal_without_its_start_are_errors() {
    assert!(matches!(read(""), Err(JournalError::Empty { .. })));
    let text = small().jsonl();
    let rest = text.split_once('\n').unwrap().1;
    assert!(read(rest).unwrap_err().to_string().contains("the first event of a journal is `Started`"));
    assert!(read(&format!("{text}{text}")).unwrap_err().to_string().contains("two runs in one file"));
}
