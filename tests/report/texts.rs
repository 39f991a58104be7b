//! Texts that steer a terminal or hide, in every field of a journal: none of them is shown.

use std::{collections::BTreeSet, fs, path::Path};

use railgauge_model::{border::text::is_unprintable, journal::event::Event};
use railgauge_report::text;
use railgauge_report::text::Screen;
use serde_json::Value;

use crate::kept::write;
use crate::support::{self, Scenario, sealed, sealed_within};

/// Clears a terminal, colours it, turns the direction, and is not seen.
const EVIL: &str = "\u{1b}[2J\u{202e}\u{200b}\u{9b}31m\r\n\u{2028}SPOOF";

/// A run with something of everything: hosts that are down, notes, failures, doubts.
fn journal() -> String {
    let mut lines = Scenario { sizes: vec![65536], repeats: 1, ..Scenario::troubled(5, 1) }.lines();
    let at = lines[0].at.clone();
    let why = "the disk is full".to_owned();
    let remedy = railgauge_wire::remedy::RESUME_RUN.with([("directory", "runs/a".to_owned())]);
    lines.pop();
    lines.push(railgauge_model::journal::event::Line { at, event: Event::Prevented { why, remedy: Some(remedy) } });
    support::text(&lines)
}

/// Every kind of text once: its place, and the same for all lines of an event.
fn places(value: &Value, kind: &str, place: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(_) => found.push((kind.to_owned(), place.to_owned())),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                places(item, &format!("{kind}/-"), &format!("{place}/{at}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, item) in fields {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                places(item, &format!("{kind}/{name}"), &format!("{place}/{escaped}"), found);
            }
        }
        _ => {}
    }
}

/// Everything a person reads of a run.
fn shown(journal: &str) -> Result<String, String> {
    let room = tempfile::tempdir().unwrap();
    fs::write(room.path().join("records.jsonl"), journal).unwrap();
    let written = write(room.path()).map_err(|error| error.to_string())?;
    let file = |name: &str| fs::read_to_string(room.path().join(name)).unwrap();
    let summary = text::summary(&written.view, Path::new("report.html"), &Screen::PLAIN);
    Ok(summary + &file("report.html") + &file("verdicts.json") + &file("junit.xml"))
}

#[test]
fn no_text_of_a_journal_reaches_a_reader_as_it_is() {
    let text = journal();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut seen = BTreeSet::new();
    let (mut drawn, mut refused) = (0, 0);
    for (at, line) in lines.iter().enumerate() {
        let mut found = Vec::new();
        places(line, "", "", &mut found);
        found.retain(|(kind, _)| kind != "/sum" && seen.insert(kind.clone()));
        for (kind, place) in found {
            let mut lines = lines.clone();
            let spoiled = lines[at].pointer_mut(&place).unwrap();
            *spoiled = Value::String(spoiled.as_str().unwrap().to_owned() + EVIL);
            let run = lines[0]["run"].as_str().unwrap().to_owned();
            let journal: String = lines
                .iter_mut()
                .map(|line| {
                    let line = line.as_object_mut().unwrap();
                    line.remove("sum");
                    let names_run = line.contains_key("run");
                    let body = Value::from(line.clone()).to_string();
                    if names_run { sealed(&body) } else { sealed_within(&run, &body) }
                })
                .collect();
            let said = shown(&journal);
            *if said.is_ok() { &mut drawn } else { &mut refused } += 1;
            let said = said.unwrap_or_else(|error| error);
            let bad = said.chars().find(|c| is_unprintable(*c) && *c != '\n');
            assert_eq!(bad, None, "{kind} of line {}", at + 1);
            assert!(!said.contains("\nSPOOF"), "{kind} of line {}: a line of its own", at + 1);
        }
    }
    assert!(drawn > 30 && refused > 0, "{drawn} drawn, {refused} refused");
}

#[test]
fn what_an_author_writes_in_lines_keeps_them() {
    let mut lines = Scenario::healthy(2, 1).lines();
    if let Event::Started { resolved, .. } = &mut lines[0].event {
        resolved.description = "first\nsecond".into();
    }
    let journal =
        railgauge_analysis::journal::parse(support::text(&lines).as_bytes(), Path::new("records.jsonl")).unwrap();
    assert_eq!(journal.plan.description, "first\nsecond");
}
