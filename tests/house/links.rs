//! Links of the documents lead to files and headings that exist.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The documents in a folder and below it.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    files.chain(folders.iter().flat_map(|folder| documents(folder))).collect()
}

/// A text without its blocks of code.
fn prose(text: &str) -> String {
    text.split("\n```").step_by(2).collect::<Vec<_>>().join("\n")
}

/// Whether a document has a heading that the forges give this anchor: lower case, hyphens for spaces, no other marks.
fn has_heading(document: &Path, anchor: &str) -> bool {
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let slug = |line: &str| -> String {
        line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-").chars().filter(is_kept).collect()
    };
    let text = fs::read_to_string(document).unwrap();
    prose(&text).lines().filter(|line| line.starts_with('#')).any(|line| slug(line) == anchor)
}

/// Whether a link from a document leads somewhere. Those to the network are not tried.
fn leads_somewhere(document: &Path, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { document.to_owned() } else { document.parent().unwrap().join(path) };
    link.contains("://") || target.exists() && (anchor.is_empty() || has_heading(&target, anchor))
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = documents(&root.join("docs"));
    let others = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "lab/README.md"];
    all.extend(others.map(|name| root.join(name)));
    let (mut dead, mut count) = (Vec::new(), 0);
    for document in all {
        let text = prose(&fs::read_to_string(&document).unwrap());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            count += 1;
            if !leads_somewhere(&document, link) {
                dead.push(format!("{}: {link}", document.strip_prefix(root).unwrap().display()));
            }
        }
    }
    assert!(count > 100, "{count} links");
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// Comments and messages name documents that exist.
#[test]
fn documents_that_the_code_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for (file, text) in crate::architecture::ROOTS.into_iter().flat_map(crate::architecture::sources) {
        for (at, _) in text.match_indices("docs/") {
            let name: String =
                text[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || "/-_.".contains(*c)).collect();
            let Some((name, _)) = name.split_once(".md") else { continue };
            count += 1;
            assert!(root.join(format!("{name}.md")).exists(), "{file}: {name}.md does not exist");
        }
    }
    assert!(count > 10, "{count} names");
}

/// The example of the journal's format has the version that this railgauge writes.
#[test]
fn the_journal_of_the_documents_has_the_current_version() {
    let docs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/formats.md")).unwrap();
    let line = docs.lines().find(|line| line.starts_with("{\"v\":")).unwrap();
    let example: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(example["v"], railgauge_model::journal::event::VERSION);
}
