use std::{borrow::Cow, path::Path};

pub use railgauge_wire::shell::quoted;

/// Whether a character must not reach a terminal, a page or a log: it moves a cursor, changes colours, breaks lines, changes direction, or
/// is invisible, so that two names look alike. These are Unicode's categories Cc, Zl and Zp, `Default_Ignorable_Code_Point` (UAX #44, which
/// includes the bidirectional controls of UAX #9), and the marks of interlinear annotations. A tab counts as a blank.
pub const fn is_unprintable(c: char) -> bool {
    match c {
        '\t' | ' '..='~' => false,
        '\0'..='\u{9f}' => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

pub fn is_printable(text: &str) -> bool {
    !text.contains(is_unprintable)
}

/// Makes a text printable on one line. Line ends become blanks: what follows must not look like a line of ours.
pub fn printable(text: &str) -> String {
    if is_printable(text) {
        return text.to_owned();
    }
    let replaced = |c| match c {
        '\n' => ' ',
        c if is_unprintable(c) => '\u{fffd}',
        c => c,
    };
    text.trim_end().chars().map(replaced).collect()
}

/// A path in a message, printable on one line: the author of a file chooses its name.
pub fn path_text(path: impl AsRef<Path>) -> String {
    printable(&path.as_ref().display().to_string())
}

pub fn command(words: &[String]) -> String {
    printable(&words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// A path quoted for a shell, for commands that a message suggests. An unprintable path cannot be pasted.
pub fn path_quoted(path: impl AsRef<Path>) -> String {
    let text = path_text(path);
    // A leading dash would make it an option.
    quoted(&if text.starts_with('-') { format!("./{text}") } else { text })
}

/// Text for a terminal: printable lines, with colours if wanted. This is a second check; names and agents' texts have passed [`printable`]
/// before, since line ends within a name cannot be found here.
pub fn for_terminal(text: &str, colour: bool) -> Cow<'_, str> {
    let harmless = |c: char| c == '\n' || !is_unprintable(c);
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let style = if colour { style_at(rest) } else { 0 };
        let taken = style.max(c.len_utf8());
        if style > 0 || harmless(c) {
            out.push_str(&rest[..taken])
        } else {
            out.push('\u{fffd}')
        }
        rest = &rest[taken..];
    }
    Cow::Owned(out)
}

/// Bytes of the control sequence `SGR` that a text begins with (ECMA-48, 8.3.117: colours and weights); 0 without one.
fn style_at(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(parameters.len());
    if parameters[end..].starts_with('m') { end + 3 } else { 0 }
}

pub fn line(bytes: &[u8]) -> String {
    printable(String::from_utf8_lossy(bytes).trim_end())
}

pub(super) fn lines(text: &str, better: fn(&str) -> String) -> String {
    text.split('\n').map(better).collect::<Vec<_>>().join("\n")
}

pub fn has_printable_lines(text: &str) -> bool {
    text.lines().all(is_printable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_write_can_be_printed() {
        for text in ["tab\there", "ümlaut", "日本", "± 3 µs → …", "Ελλάδα", "עברית", "\u{fffd}"] {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn a_path_is_no_option_and_one_word() {
        for (path, word) in [("a.toml", "a.toml"), ("-q.toml", "./-q.toml"), ("a b", "'a b'"), ("/-q", "/-q")] {
            assert_eq!(path_quoted(path), word);
        }
    }

    #[test]
    fn what_steers_a_terminal_or_hides_is_replaced() {
        for c in "\u{1b}\r\0\u{7f}\u{85}\u{ad}\u{61c}\u{200b}\u{200d}\u{200e}\u{202e}\u{2066}\u{2060}\u{feff}\u{e0041}"
            .chars()
        {
            assert_eq!(printable(&format!("a{c}b")), "a\u{fffd}b", "{c:?}");
        }
        assert_eq!(printable("PASS\nFAIL\n"), "PASS FAIL");
        assert_eq!(line(b"end\r\n"), "end");
    }

    #[test]
    fn a_name_is_one_line_and_only_colours_reach_a_terminal() {
        assert_eq!(path_text("a\u{1b}[2Kb\nPASS"), "a\u{fffd}[2Kb PASS");
        let styled = "\u{1b}[1;31mFAIL\u{1b}[0m \u{1b}[2K\u{1b}]0;title\u{7}\u{202e}x\nnext\r";
        assert_eq!(
            for_terminal(styled, true),
            "\u{1b}[1;31mFAIL\u{1b}[0m \u{fffd}[2K\u{fffd}]0;title\u{fffd}\u{fffd}x\nnext\u{fffd}"
        );
        assert!(!for_terminal(styled, false).contains('\u{1b}'));
        assert!(matches!(for_terminal("plain\n", false), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn any_text_comes_out_printable_and_stays_so(text: String) {
            let once = printable(&text);
            prop_assert!(is_printable(&once) && printable(&once) == once);
        }
    }
}
