//! A plan's text as it is written: lines of TOML, and comments that are wrapped.

/// Columns of a comment.
const WIDTH: usize = 110;

/// The text.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// A line of TOML.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.0.push_str(text.as_ref());
        self.0.push('\n');
    }

    /// An empty line, unless one is there.
    pub(super) fn gap(&mut self) {
        if !self.0.is_empty() && !self.0.ends_with("\n\n") {
            self.0.push('\n');
        }
    }

    /// A comment, in as many lines as it takes.
    pub(super) fn say(&mut self, text: impl AsRef<str>) {
        self.wrapped("# ", text.as_ref());
    }

    /// An entry of a list in a comment.
    pub(super) fn item(&mut self, text: impl AsRef<str>) {
        self.wrapped("#   ", text.as_ref());
    }

    /// A line of TOML that is not in force.
    pub(super) fn example(&mut self, text: &str) {
        self.line(format!("# {text}"));
    }

    /// An empty line of a comment.
    pub(super) fn blank(&mut self) {
        self.line("#");
    }

    fn wrapped(&mut self, start: &str, text: &str) {
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && start.len() + line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(format!("{start}{line}"));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(format!("{start}{line}"));
    }

    /// The whole text.
    pub(super) fn finished(self) -> String {
        self.0
    }
}

/// A text as TOML writes it (TOML 1.0, basic strings).
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out + "\""
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
        for text in ["plain", "a \"b\" \\ c", "tab\t, end\n", "ümlaut"] {
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
        let mut page = Page::default();
        page.say("word ".repeat(60));
        page.say("a text\nwith a line break");
        let text = page.finished();
        assert!(text.lines().all(|line| line.starts_with("# ") && line.len() <= WIDTH), "{text}");
        assert!(text.ends_with("# a text with a line break\n"));
    }
}
