//! Text and tables that fit the width of a terminal.

use std::fmt::{Result, Write};

/// Columns of the summary: the default width of a terminal, also used for files.
pub const WIDTH: usize = 80;

/// Wraps a text to [`WIDTH`] columns at blanks; `first` and `others` are prefixes of its lines. A longer word has a
/// line of its own and is not broken.
pub(super) fn wrap(out: &mut String, first: &str, others: &str, text: &str) -> Result {
    let mut line = first.to_owned();
    let mut empty = true;
    for word in words(text) {
        let fits = line.chars().count() + usize::from(!empty) + word.chars().count() <= WIDTH;
        if !empty && !fits {
            writeln!(out, "{}", line.trim_end())?;
            line = others.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += &word;
        empty = false;
    }
    writeln!(out, "{}", line.trim_end())
}

/// Words between blanks; a number and its unit are one.
fn words(text: &str) -> Vec<String> {
    let number =
        |word: &str| word.chars().any(|c| c.is_ascii_digit()) && word.chars().all(|c| "0123456789.+−".contains(c));
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(last) if number(last) => *last += &format!(" {word}"),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Writes rows in aligned columns. Columns that do not fit continue below, with the first `keys` columns in front. A
/// head is its text, and whether its column is aligned on the right.
pub(super) fn columns(out: &mut String, head: &[(String, bool)], rows: &[Vec<&str>], keys: usize) -> Result {
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([head[at].0.chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let keys = keys.min(head.len());
    let used = |columns: &[usize]| columns.iter().map(|&at| widths[at] + GAP).sum::<usize>();
    let mut piece: Vec<usize> = (0..keys).collect();
    for at in keys..head.len() {
        if piece.len() > keys && used(&piece) + widths[at] + GAP > WIDTH {
            write_piece(out, head, rows, &widths, &piece)?;
            piece.truncate(keys);
        }
        piece.push(at);
    }
    write_piece(out, head, rows, &widths, &piece)
}

const GAP: usize = 2;

fn write_piece(
    out: &mut String,
    head: &[(String, bool)],
    rows: &[Vec<&str>],
    widths: &[usize],
    piece: &[usize],
) -> Result {
    let names: Vec<&str> = head.iter().map(|(name, _)| name.as_str()).collect();
    for row in [&names].into_iter().chain(rows) {
        let cell = |&at: &usize| {
            let (text, width) = (row[at], widths[at]);
            if head[at].1 { format!("  {text:>width$}") } else { format!("  {text:<width$}") }
        };
        let line: String = piece.iter().map(cell).collect();
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_blanks_and_nothing_is_lost() {
        let text = "one two three ".repeat(30);
        let mut out = String::new();
        wrap(&mut out, "", "    ", text.trim()).unwrap();
        assert!(out.lines().count() > 1 && out.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(out.split_whitespace().eq(text.split_whitespace()));
    }

    #[test]
    fn a_wide_table_goes_on_below_with_its_keys() {
        let head: Vec<(String, bool)> = (0..9).map(|n| (format!("column number {n}"), true)).collect();
        let cells: Vec<String> = (0..9).map(|n| n.to_string()).collect();
        let rows = vec![cells.iter().map(String::as_str).collect::<Vec<_>>()];
        let mut out = String::new();
        columns(&mut out, &head, &rows, 1).unwrap();
        assert!(out.lines().all(|line| line.chars().count() <= WIDTH), "{out}");
        assert_eq!(out.matches("column number 0").count(), 3, "{out}");
        (1..9).for_each(|n| assert_eq!(out.matches(&format!("column number {n}")).count(), 1, "{out}"));
    }
}
