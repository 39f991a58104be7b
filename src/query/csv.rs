//! Rows as CSV, quoted as RFC 4180 has it. Lines end with a line feed alone, which all readers of CSV take.

use crate::analysis::frame::{Cells, FrameError};

use super::Answer;

/// Characters with which a text begins that a spreadsheet takes for a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// The rows with a line of names above them. Null is an empty cell, an empty text is `""`. A text that a spreadsheet would take for a
/// formula has `'` before it; numbers never do.
///
/// # Errors
/// The frame is not one of ours.
pub fn csv(answer: &Answer) -> Result<String, FrameError> {
    let columns = answer.cells()?;
    let mut out = columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
    out.push('\n');
    for row in 0..answer.frame.height() {
        for (place, (_, cells)) in columns.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            match cells {
                Cells::Text(all) => out.extend(all[row].map(text)),
                Cells::Whole(all) => out.extend(all[row].map(|number| number.to_string())),
                Cells::Real(all) => out.extend(all[row].map(|number| number.to_string())),
                Cells::Time(all) => out.extend(all[row].map(|time| time.to_string())),
            }
        }
        out.push('\n');
    }
    Ok(out)
}

/// A text as a cell.
fn text(text: &str) -> String {
    let guard = if text.starts_with(FORMULA) { "'" } else { "" };
    // Semicolons and tabs too: spreadsheets of some countries divide at them, and what follows one could be taken for a formula.
    let needs_quotes = text.is_empty() || text.contains(['"', ',', ';', '\t', '\n', '\r']) || text != text.trim();
    if needs_quotes { format!("\"{guard}{}\"", text.replace('"', "\"\"")) } else { format!("{guard}{text}") }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn texts_are_quoted_where_they_must_be_and_are_never_formulas() {
        for (given, cell) in [
            ("gpu01", "gpu01"),
            ("", "\"\""),
            ("a,b", "\"a,b\""),
            ("say \"no\"", "\"say \"\"no\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            (" x", "\" x\""),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "\"'\t=1\""),
            ("=A1,\"b\"", "\"'=A1,\"\"b\"\"\""),
            ("1-1", "1-1"),
        ] {
            assert_eq!(text(given), cell, "{given:?}");
        }
    }
}
