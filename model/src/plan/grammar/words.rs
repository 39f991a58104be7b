//! Splits a command line into words as a POSIX shell does with spaces, quotes and backslashes. No variables, no globs, no pipes.

use super::wrong::Wrong;

pub fn split(text: &str) -> Result<Vec<String>, Wrong> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some((_, end)) if end == c => break,
                        Some((_, '\\')) if c == '"' => match chars.next() {
                            Some((_, kept @ ('"' | '\\' | '$' | '`'))) => word.push(kept),
                            Some((_, other)) => word.extend(['\\', other]),
                            None => return Err(unclosed(at, text)),
                        },
                        Some((_, inner)) => word.push(inner),
                        None => return Err(unclosed(at, text)),
                    }
                }
            }
            '\\' => match chars.next() {
                Some((_, kept)) => word.get_or_insert_default().push(kept),
                None => return Err(Wrong::new(at..text.len(), "a backslash with nothing behind it", "leave it out")),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

fn unclosed(at: usize, text: &str) -> Wrong {
    Wrong::new(at..text.len(), "a quote that is not closed", "close it, or write the command as a list of words")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_split_like_a_shell_splits_them() {
        for (text, words) in [
            ("ip netns exec {host}", vec!["ip", "netns", "exec", "{host}"]),
            (r#"a "b c" 'd "e' f\ g"#, vec!["a", "b c", "d \"e", "f g"]),
            (r#""a\"b" "\n" '' x'y'z"#, vec!["a\"b", "\\n", "", "xyz"]),
            ("  ", vec![]),
            ("$HOME; `x`", vec!["$HOME;", "`x`"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        assert_eq!(split("a 'b").unwrap_err().at, 2..4);
        assert!(split("a\\").is_err());
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words in prop::collection::vec(".{0,8}", 0..6)) {
            let text = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(split(&text).unwrap(), words);
        }
    }
}
