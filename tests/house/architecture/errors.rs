//! Below the command line an error is a type of its own: who gets it can tell its cases apart, and its words are made when it is shown.

use super::{ROOTS, before_tests, code, sources};

/// The only place where an error may be a text: clap's parsers of values, and what the commands print.
const EDGE: &str = "src/cli/";

/// The parameters of every `Result<…>` in a piece of code, cut at the commas between them.
fn results(text: &str) -> Vec<Vec<String>> {
    text.match_indices("Result<").filter_map(|(at, name)| parameters(&text[at + name.len()..])).collect()
}

/// What stands before the bracket that closes the list, cut at its own commas; `None` where nothing closes it.
fn parameters(text: &str) -> Option<Vec<String>> {
    let (mut found, mut depth, mut before) = (vec![String::new()], 0, ' ');
    for letter in text.chars() {
        match letter {
            '>' if before == '-' => {}
            '<' | '(' | '[' => depth += 1,
            '>' if depth == 0 => return Some(found.iter().map(|one| one.trim().to_owned()).collect()),
            '>' | ')' | ']' => depth -= 1,
            _ => {}
        }
        match letter {
            ',' if depth == 0 => found.push(String::new()),
            _ => found.last_mut()?.push(letter),
        }
        before = letter;
    }
    None
}

/// The results of a piece of code whose error is a text.
fn text_errors(text: &str) -> Vec<Vec<String>> {
    let is_text = |error: &String| {
        let kind = error.trim_start_matches("&").trim_start_matches("'static ").trim();
        ["String", "str", "std::string::String"].contains(&kind) || kind.starts_with("Cow<")
    };
    results(text).into_iter().filter(|found| found.get(1).is_some_and(is_text)).collect()
}

#[test]
fn below_the_command_line_no_error_is_a_text() {
    let mut found = Vec::new();
    for (file, text) in ROOTS.into_iter().flat_map(sources) {
        if file.starts_with(EDGE) || file.ends_with("tests.rs") || file.contains("/tests/") {
            continue;
        }
        let text = code(before_tests(&text)).collect::<Vec<_>>().join(" ");
        found.extend(text_errors(&text).into_iter().map(|result| format!("{file}: Result<{}>", result.join(", "))));
    }
    assert!(found.is_empty(), "make it an enum:\n{}", found.join("\n"));
}

#[test]
fn the_rule_sees_the_error_and_not_a_part_of_the_value() {
    let of_text = |text: &str| !text_errors(text).is_empty();
    assert!(of_text("fn a() -> Result<u64, String> {"));
    assert!(of_text("fn a() -> Result<BTreeMap<String, String>, String> {"));
    assert!(of_text("Arc<dyn Fn() -> Result<Vec<Case>, String> + Send>"));
    assert!(of_text("FnOnce(&mut C<'_, '_>) -> Result<(), &'static str>"));
    assert!(of_text("Result<Option<Result<u8, String>>, Failure>"), "one inside another");
    assert!(of_text("Result<fn(u8) -> Vec<u8>, String>"), "an arrow closes nothing");
    assert!(!of_text("fn a() -> Result<BTreeMap<String, String>, Failure> {"));
    assert!(!of_text("fn a() -> anyhow::Result<(String, String)> {"));
    assert!(!of_text("Result<(i64, String), Refusal>"));
}
