//! Names of files that steer a terminal: nothing of them reaches it, whatever command is told of them.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::support::Scenario;

/// Clears the line, writes one that looks like ours, turns the direction of what follows.
const NAME: &str = "a\u{1b}[2K\rPASS\n\u{202e}b";

fn railgauge(place: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_railgauge")).args(words).current_dir(place).output().unwrap()
}

#[test]
fn names_of_files_reach_the_terminal_as_text() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    Scenario::healthy(3, 1).write(&at(NAME));
    Scenario { day: 1, seed: 7, ..Scenario::healthy(3, 1) }.write(&at("other"));
    let plan = format!("{NAME}.toml");
    fs::write(at(&plan), "name = ").unwrap();
    fs::create_dir(at("nights")).unwrap();
    Scenario::healthy(3, 1).write(&at("nights").join("1"));
    // What trend cannot read it names.
    fs::create_dir(at("nights").join(NAME)).unwrap();
    fs::write(at("nights").join(NAME).join("records.jsonl"), "{}\n").unwrap();
    let page = format!("{NAME}.html");
    for words in [
        &["report", NAME][..],
        &["report", &plan],
        &["compare", NAME, "--", NAME],
        &["compare", "-o", &page, "other", "--", NAME],
        &["trend", NAME],
        &["trend", "nights", "-o", "trend.html"],
        &["runs", "baseline", NAME],
        &["check", &plan],
        &["run", "--dry-run", NAME],
        &["run", "--resume", NAME],
        &["run", &plan, "-o", NAME],
        &["preflight", &plan],
    ] {
        let Output { stdout, stderr, .. } = railgauge(place.path(), words);
        for said in [stdout, stderr] {
            let said = String::from_utf8(said).unwrap();
            assert!(!said.contains(['\u{1b}', '\r', '\u{202e}']), "{words:?}: {said:?}");
            assert!(!said.lines().any(|line| line == "PASS"), "{words:?}: {said:?}");
        }
    }
    for page in [&page, "trend.html"] {
        let text = fs::read_to_string(at(page)).unwrap();
        let bad = text.lines().find(|line| line.contains(['\u{1b}', '\r', '\u{202e}']));
        assert!(bad.is_none(), "{page:?}: {bad:?}");
        assert_eq!(text.contains('\u{fffd}'), page == "trend.html", "only the page of trend names a run");
    }
}
