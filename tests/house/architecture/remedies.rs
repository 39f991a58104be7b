//! The table of remedies holds what is used, and nothing else.

use super::{code, sources};

#[test]
fn every_remedy_is_advised_somewhere() {
    let table: String = sources("wire/src/remedy/table").into_iter().map(|(_, text)| text).collect();
    let names: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.split_once(" = \"").map(|(name, _)| name))
        .filter(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        })
        .collect();
    assert_eq!(names.len(), railgauge_wire::remedy::all().count(), "entries that this test does not see");
    let product: Vec<String> = super::ROOTS
        .into_iter()
        .flat_map(sources)
        .filter(|(file, _)| !file.starts_with("wire/src/remedy/table"))
        .map(|(_, text)| code(super::before_tests(&text)).collect::<Vec<_>>().join("\n"))
        .collect();
    let used = |name: &str| {
        let word = |text: &str, at: usize| {
            let after = text[at + name.len()..].chars().next();
            !after.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let path = format!("remedy::{name}");
        product.iter().any(|text| {
            text.match_indices(&path).any(|(at, _)| word(text, at + path.len() - name.len()))
                || text.contains("use railgauge_wire::remedy::{") && text.contains(name)
        })
    };
    let unused: Vec<&str> = names.into_iter().filter(|name| !used(name)).collect();
    assert!(unused.is_empty(), "advised nowhere: {unused:?}");
}
