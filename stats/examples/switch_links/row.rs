//! One measured figure with its bar, and how all of them are printed.

use std::fmt::Write;

use serde_json::{Value, json};

/// Which side of its bar a figure must be on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bar {
    /// Not below.
    AtLeast(f64),
    /// Not above.
    AtMost(f64),
    Beside,
}

#[derive(Debug, Clone)]
pub struct Row {
    pub what: String,
    pub hits: usize,
    pub of: usize,
    /// What is promised of `hits / of`.
    pub bar: Bar,
}

impl Row {
    pub fn value(&self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }

    /// Whether the figure is on the right side. Nothing counted is not met.
    pub fn met(&self) -> bool {
        match (self.bar, self.value()) {
            (Bar::Beside, _) => true,
            (Bar::AtLeast(bar), Some(value)) => value >= bar,
            (Bar::AtMost(bar), Some(value)) => value <= bar,
            (_, None) => false,
        }
    }
}

pub fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for row in rows {
        let bar = match row.bar {
            Bar::AtLeast(bar) => format!(">= {bar:<5}"),
            Bar::AtMost(bar) => format!("<= {bar:<5}"),
            Bar::Beside => " ".repeat(8),
        };
        let met = match (row.bar, row.met()) {
            (Bar::Beside, _) => "",
            (_, true) => "met",
            (_, false) => "NOT MET",
        };
        let value = row.value().map_or_else(|| "     –".to_owned(), |value| format!("{value:6.4}"));
        let _ = writeln!(text, "{:<width$}  {value} {bar} {:>6} of {:<6} {met}", row.what, row.hits, row.of);
    }
    text
}

/// The last line, and whether every row with a bar is met.
pub fn summary(rows: &[Row]) -> (String, bool) {
    let judged: Vec<&Row> = rows.iter().filter(|row| row.bar != Bar::Beside).collect();
    let met = judged.iter().filter(|row| row.met()).count();
    let all = met == judged.len() && !judged.is_empty();
    let word = if all { "met" } else { "not met" };
    (format!("switch-links: rows={} met={met} bar={} {word}", judged.len(), judged.len()), all)
}

pub fn json(rows: &[Row]) -> String {
    let one = |row: &Row| {
        let mut value =
            json!({ "what": row.what, "hits": row.hits, "of": row.of, "value": row.value(), "met": row.met() });
        match row.bar {
            Bar::AtLeast(bar) => value["at_least"] = json!(bar),
            Bar::AtMost(bar) => value["at_most"] = json!(bar),
            Bar::Beside => {}
        }
        value
    };
    format!("{:#}\n", Value::Array(rows.iter().map(one).collect()))
}
