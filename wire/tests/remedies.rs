//! docs/remedies.md and docs/remedies.json are the table of remedies as the code has it; with `UPDATE_DOCS=1` they are written.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fmt::Write as _, path::PathBuf};

use railgauge_wire::remedy::{DOCS, Entry, Place, Remedy, all};

const HEAD: &str = "\
# Remedies

What to do about failures and findings. `verdicts.json`, the report of the preflight and the journal name a remedy by its `id`,
with the `values` it fills in, its `text`, its `commands` and a link to this page. Programs act on the id: words and commands may
change. railgauge runs none of these commands. [remedies.json](remedies.json) is this page for programs.

What stands in capitals is filled in where it is known; a command says what it lacks (`missing`). In remedies.json a value stands in
braces (`{interface}`), and `{0}` is the first command. A part of a command in brackets (`[--context {context}]`) is left out where
its value is not known.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut entries: Vec<&Entry> = all().collect();
    entries.sort_by_key(|entry| entry.id);
    for entry in entries {
        let remedy = Remedy::from(*entry);
        write!(page, "\n## {}\n\n{}\n", entry.id, remedy.text()).unwrap();
        if !entry.commands.is_empty() {
            page += "\n| command | where | changes something |\n| --- | --- | --- |\n";
        }
        for command in remedy.commands() {
            let place = match command.on {
                Place::Host => "on the host",
                Place::Controller => "where railgauge runs",
            };
            let changes = if command.changes { "yes" } else { "no" };
            writeln!(page, "| `{}` | {place} | {changes} |", command.command.replace('|', "\\|")).unwrap();
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
