//! Text and tables that fit the width of a terminal.

use std::{
    borrow::Cow,
    fmt::{Result, Write},
};

use crate::view::Table;

/// How text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    pub colour: bool,
    /// With all details.
    pub verbose: bool,
}

impl Screen {
    /// For files and pipes.
    pub const PLAIN: Self = Self { width: 100, colour: false, verbose: false };

    /// Wraps a text at blanks; `first` and `others` are prefixes of its lines. A longer word has a line of its own and is
    /// not broken.
    pub(crate) fn wrap(&self, out: &mut String, first: &str, others: &str, text: &str) -> Result {
        let mut line = first.to_owned();
        let mut empty = true;
        for word in words(text) {
            let fits = line.chars().count() + usize::from(!empty) + word.chars().count() <= self.width;
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

    /// As [`Screen::wrap`], in at most `most` lines unless all details are wanted.
    pub(crate) fn clip(&self, out: &mut String, first: &str, others: &str, text: &str, most: usize) -> Result {
        let mut lines = String::new();
        self.wrap(&mut lines, first, others, text)?;
        if self.verbose || lines.lines().count() <= most {
            return out.write_str(&lines);
        }
        let mut kept = lines.lines().take(most).collect::<Vec<_>>().join("\n");
        while kept.chars().rev().take_while(|c| *c != '\n').count() + 2 > self.width && kept.pop().is_some() {}
        writeln!(out, "{} …", kept.trim_end())
    }

    /// Rows in aligned columns, at most `most`; says how many it leaves out. Columns that do not fit are left out, or with
    /// all details continue below with the first column in front.
    pub(crate) fn table(&self, out: &mut String, title: &str, table: &Table, columns: &[usize], most: usize) -> Result {
        if table.rows.is_empty() {
            return Ok(());
        }
        if !title.is_empty() {
            writeln!(out, "{title}:")?;
        }
        let head: Vec<String> = columns.iter().map(|&at| table.columns[at].head()).collect();
        let rows: Vec<Vec<&str>> =
            table.rows.iter().take(most).map(|row| columns.iter().map(|&at| row[at].as_str()).collect()).collect();
        let width = |at: usize| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            cells.chain([head[at].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let all = widths.clone();
        let used = |piece: &[usize]| piece.iter().map(|&at| all[at] + GAP).sum::<usize>();
        let (mut pieces, mut piece) = (Vec::new(), vec![0]);
        for (at, width) in widths.iter().enumerate().skip(1) {
            if piece.len() > 1 && used(&piece) + width + GAP > self.width {
                pieces.push(std::mem::replace(&mut piece, vec![0]));
            }
            piece.push(at);
        }
        pieces.push(piece);
        let mut widths = widths;
        if !self.verbose {
            // A text in the first column that does not fit is cut, so that it is not left out.
            let next = pieces.get(1).and_then(|piece| piece.get(1).copied());
            pieces.truncate(1);
            if let (Some(at), Some(piece)) = (next.filter(|&at| !table.columns[columns[at]].number), pieces.first_mut())
            {
                let room = self.width.saturating_sub(used(piece) + GAP);
                if room >= LEAST {
                    widths[at] = room;
                    piece.push(at);
                }
            }
        }
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        for piece in pieces {
            for row in std::iter::once(&head).chain(&rows) {
                let cell = |&at: &usize| {
                    let (text, width) = (cut(row[at], widths[at]), widths[at]);
                    if table.columns[columns[at]].number {
                        format!("  {text:>width$}")
                    } else {
                        format!("  {text:<width$}")
                    }
                };
                writeln!(out, "{}", piece.iter().map(cell).collect::<String>().trim_end())?;
            }
        }
        let more = table.rows.len().saturating_sub(most);
        if more > 0 { writeln!(out, "  and {more} more: see the page") } else { Ok(()) }
    }
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

/// At most `width` columns.
pub(crate) fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if text.chars().count() <= width {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().take(width.saturating_sub(1)).chain(['…']).collect())
}

const GAP: usize = 2;

/// Columns for a text that is cut.
const LEAST: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::columns;

    const NARROW: Screen = Screen { width: 80, ..Screen::PLAIN };

    #[test]
    fn text_is_broken_at_blanks_and_nothing_is_lost() {
        let text = "one two three ".repeat(30);
        let mut out = String::new();
        NARROW.wrap(&mut out, "", "    ", text.trim()).unwrap();
        assert!(out.lines().count() > 1 && out.lines().all(|line| line.chars().count() <= NARROW.width));
        assert!(out.split_whitespace().eq(text.split_whitespace()));
    }

    #[test]
    fn a_clipped_text_ends_with_a_mark_within_the_width() {
        for text in ["word ".repeat(60), "a".repeat(79) + " " + &"b".repeat(80) + " c"] {
            let mut out = String::new();
            NARROW.clip(&mut out, "", "  ", text.trim(), 2).unwrap();
            assert_eq!(out.lines().count(), 2, "{out}");
            assert!(out.trim_end().ends_with('…') && out.lines().all(|line| line.chars().count() <= NARROW.width + 2));
        }
        let mut out = String::new();
        NARROW.clip(&mut out, "", "  ", "short", 2).unwrap();
        assert_eq!(out, "short\n");
    }

    #[test]
    fn a_wide_table_drops_columns_or_continues_below_with_its_first() {
        let columns = columns(&(0..9).map(|n| format!("#column number {n}")).collect::<Vec<_>>().join(" | "));
        let table = Table { columns, rows: vec![(0..9).map(|n| n.to_string()).collect()] };
        let shown = |screen: Screen| {
            let mut out = String::new();
            screen.table(&mut out, "", &table, &Vec::from_iter(0..9), 1).unwrap();
            assert!(out.lines().all(|line| line.chars().count() <= screen.width), "{out}");
            out
        };
        assert_eq!(shown(NARROW).lines().count(), 2);
        let whole = shown(Screen { verbose: true, ..NARROW });
        assert_eq!(whole.matches("column number 0").count(), 3, "{whole}");
        (1..9).for_each(|n| assert_eq!(whole.matches(&format!("column number {n}")).count(), 1, "{whole}"));
        assert_eq!(shown(Screen { width: 1000, ..NARROW }).matches("column").count(), 9);
    }
}
