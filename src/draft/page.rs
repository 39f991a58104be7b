//! A plan's text: a template, comments that are wrapped, and values as TOML has them.

use minijinja::{Environment, UndefinedBehavior, value::Serde};
use railgauge_model::border::text::printable;
use serde::Serialize;

/// Columns of a comment.
const WIDTH: usize = 110;

/// The text that the template makes of a context.
///
/// # Errors
/// The template asks for something that the context does not have.
pub(super) fn page(context: &impl Serialize) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    Ok(laid_out(&environment.render_str(include_str!("../../templates/plan.toml"), Serde(context))?))
}

/// A text of hosts as one line, which stays a comment.
pub(super) fn comment(text: &str) -> String {
    printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Long comments in several lines, no empty lines but those that are asked for.
fn laid_out(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('#') {
            _ if line == "---" => out.push_str(if out.is_empty() || out.ends_with("\n\n") { "" } else { "\n" }),
            Some(comment) if line.chars().count() > WIDTH => {
                let indent = " ".repeat(comment.len() - comment.trim_start().len());
                let mut width = usize::MAX;
                for word in comment.split_whitespace() {
                    let length = word.chars().count();
                    if width.saturating_add(length + 1) > WIDTH {
                        out.push_str(if width == usize::MAX { "#" } else { "\n#" });
                        out.push_str(&indent);
                        out.push_str(word);
                        width = 1 + indent.len() + length;
                    } else {
                        out.push(' ');
                        out.push_str(word);
                        width += 1 + length;
                    }
                }
                out.push('\n');
            }
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// A text as TOML writes it: JSON's strings are basic strings of TOML, which also escapes DEL.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\x7f', "\\u007F")
}

/// Texts as a list of TOML, in several lines where one would be long.
pub(super) fn list(texts: &[String]) -> String {
    let words: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    let one = format!("[{}]", words.join(", "));
    if one.chars().count() <= WIDTH {
        return one;
    }
    let mut lines = String::from("[\n");
    let mut line = String::new();
    for word in words {
        if !line.is_empty() && line.chars().count() + word.chars().count() + 6 > WIDTH {
            lines.push_str(&format!("    {}\n", line.trim_end()));
            line.clear();
        }
        line.push_str(&format!("{word}, "));
    }
    lines.push_str(&format!("    {}\n]", line.trim_end()));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_toml_reads_them() {
        for text in ["plain", "a \"b\" \\ c", "tab\t, end\n", "ümlaut", "\u{1b}[1m\u{7f}"] {
            let line = format!("x = {}", quoted(text));
            let table: toml::Table = toml::from_str(&line).unwrap();
            assert_eq!(table["x"].as_str(), Some(text), "{line}");
        }
        let many: Vec<String> = (0..60).map(|n| format!("host-{n}")).collect();
        let table: toml::Table = toml::from_str(&format!("x = {}", list(&many))).unwrap();
        assert_eq!(table["x"].as_array().unwrap().len(), 60);
        assert!(list(&many).lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn comments_are_wrapped_and_stay_comments() {
        let text = laid_out(&format!("---\n# {}\n\n---\n---\n#   {}\nx = 1\n", "word ".repeat(60), "item ".repeat(60)));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.lines().filter(|line| line.is_empty()).count(), 1);
        assert!(text.lines().filter(|line| line.contains("item")).all(|line| line.starts_with("#   item")), "{text}");
        assert!(text.starts_with("# word") && text.ends_with("x = 1\n"), "{text}");
    }
}
