use railgauge_analysis::words::number;
use serde_json::{Map, Value, json};

use super::Answer;

const VERSION: u32 = 2;
const NOTHING: &str = "–";
/// First characters of a text that a spreadsheet treats as a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

pub fn document(answer: &Answer) -> Value {
    let object =
        |row| -> Map<String, Value> { answer.columns.iter().map(|name| (*name).to_owned()).zip(row).collect() };
    json!({
        "version": VERSION,
        "runs": answer.runs,
        "left_out": answer.left_out,
        "columns": answer.columns,
        "rows": answer.rows().map(|row: Vec<Value>| object(row)).collect::<Vec<_>>(),
    })
}

/// CSV with a header, quoted by RFC 4180, with line feeds as line ends, which all readers accept. Null is an empty cell, an empty text is
/// `""`. A text that a spreadsheet would treat as a formula has `'` before it; numbers never do.
pub fn csv(answer: &Answer) -> String {
    let cell = |value| match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(&text),
        other => other.to_string(),
    };
    let mut out = answer.columns.join(",") + "\n";
    for row in answer.rows() {
        out.push_str(&row.into_iter().map(cell).collect::<Vec<_>>().join(","));
        out.push('\n');
    }
    out
}

fn quoted(text: &str) -> String {
    let guard = if text.starts_with(FORMULA) { "'" } else { "" };
    // Semicolons and tabs too: spreadsheets of some countries split at them, and what follows one could be treated as a formula.
    let needs_quotes = text.is_empty() || text.contains(['"', ',', ';', '\t', '\n', '\r']) || text != text.trim();
    if needs_quotes { format!("\"{guard}{}\"", text.replace('"', "\"\"")) } else { format!("{guard}{text}") }
}

/// The rows under the names of their columns, numbers on the right. Reals have four significant digits; the other formats have all.
pub fn table(answer: &Answer) -> String {
    let cell = |value| match value {
        Value::String(text) if !text.is_empty() => (false, text.replace(['\n', '\r', '\t'], " ")),
        Value::Number(real) if real.is_f64() => (true, real.as_f64().map(number).unwrap_or_default()),
        Value::Number(whole) => (true, whole.to_string()),
        _ => (false, NOTHING.to_owned()),
    };
    let mut lines = vec![answer.columns.iter().map(|name| (false, (*name).to_owned())).collect::<Vec<_>>()];
    lines.extend(answer.rows().map(|row| row.into_iter().map(cell).collect()));
    let of_column = |column: usize| {
        let cells = lines.iter().map(|line| &line[column]);
        (cells.clone().any(|(is_number, _)| *is_number), cells.map(|(_, text)| text.chars().count()).max().unwrap_or(0))
    };
    let columns: Vec<(bool, usize)> = (0..answer.columns.len()).map(of_column).collect();
    let mut out = String::new();
    for line in &lines {
        let cells = line.iter().zip(&columns).map(|((_, cell), (is_number, width))| {
            if *is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::quoted;

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
            assert_eq!(quoted(given), cell, "{given:?}");
        }
    }
}
