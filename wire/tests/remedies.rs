//! docs/remedies.md and docs/remedies.json are the table of remedies as the code has it; with `UPDATE_DOCS=1` they are written.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fmt::Write as _, path::PathBuf};

use railgauge_wire::remedy::{DOCS, Entry, Place, Remedy, Template, all};

const HEAD: &str = "\
# Remedies

What to do about failures and findings, by the id that reports, `verdicts.json` and the journal have. railgauge runs none of these commands.
Programs act on the id: texts and commands may change. [remedies.json](remedies.json) has this page for them, with values in braces, `{0}` for
the first command, and brackets around what is left out if its value is unknown.

Capitals are values that a report fills in if they are known. Commands are for the host and change nothing, unless the next line has *here* (where railgauge runs) or *changes*.
";

const LOOK: &str = "on the host";

fn mark(command: &Template) -> &'static str {
    match (command.on, command.changes) {
        (Place::Host, false) => LOOK,
        (Place::Host, true) => "changes",
        (Place::Controller, false) => "here",
        (Place::Controller, true) => "here, changes",
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut entries: Vec<&Entry> = all().collect();
    entries.sort_by_key(|entry| entry.id);
    for entry in entries {
        let remedy = Remedy::from(*entry);
        write!(page, "\n## {}\n\n{}\n", entry.id, remedy.text()).unwrap();
        let marks: Vec<&str> = entry.commands.iter().map(mark).collect();
        match marks.as_slice() {
            [] => {}
            all if all.iter().all(|mark| *mark == LOOK) => {}
            [first, others @ ..] if others.iter().all(|other| other == first) => writeln!(page, "\n*{first}*").unwrap(),
            all => writeln!(page, "\n*{}*", all.join("; ")).unwrap(),
        }
    }
    page
}

fn is_as_the_code_has_it(name: &str, wanted: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
    } else {
        assert!(std::fs::read_to_string(&path).unwrap() == wanted, "{name}: run the tests with UPDATE_DOCS=1");
    }
}

#[test]
fn the_documents_list_every_remedy() {
    is_as_the_code_has_it(DOCS, &page());
    let mut entries: Vec<&Entry> = all().collect();
    entries.sort_by_key(|entry| entry.id);
    is_as_the_code_has_it("docs/remedies.json", &(serde_json::to_string_pretty(&entries).unwrap() + "\n"));
}
