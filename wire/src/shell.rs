/// A word as a shell takes it unchanged. A tilde at the beginning stays one: paths of ours begin with it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+~={}".contains(c);
    // Bash makes several words of `{1..3}`; of other braces without a comma it makes none.
    let expands = word.contains('{') && word.contains("..");
    if !word.is_empty() && word.chars().all(plain) && !expands {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_word_stays_one() {
        assert_eq!(quoted("~/.ssh/known_hosts"), "~/.ssh/known_hosts");
        assert_eq!(quoted("{address}"), "{address}");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        for several in ["{1..3}", "{a,b}", "x{1..3}y"] {
            assert_eq!(quoted(several), format!("'{several}'"));
        }
    }
}
