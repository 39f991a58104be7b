//! Patterns of `like`: `%` stands for any characters, `_` for one.

/// Whether a text is like a pattern, with capital letters as they are.
pub(super) fn like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut wanted) = (0, 0);
    // Where to go on if what follows the last `%` does not fit: one character later.
    let mut again: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(wanted) {
            Some('%') => {
                again = Some((at, wanted + 1));
                wanted += 1;
            }
            Some(&letter) if letter == '_' || letter == text[at] => {
                at += 1;
                wanted += 1;
            }
            _ => match again {
                Some((from, after)) => {
                    again = Some((from + 1, after));
                    (at, wanted) = (from + 1, after);
                }
                None => return false,
            },
        }
    }
    pattern[wanted..].iter().all(|letter| *letter == '%')
}
