//! One measured rate with its bar, and how all of them are printed.

use std::fmt::Write;

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub seed: u64,
    /// Fewer runs.
    pub quick: bool,
}

impl Options {
    /// `full` runs, or a tenth of them (twenty at least) with `--quick`.
    pub fn runs(&self, full: usize) -> usize {
        if self.quick { (full / 10).max(20).min(full) } else { full }
    }
}

/// Which side of its bar a figure must be on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bar {
    /// Not below.
    AtLeast(f64),
    /// Not above.
    AtMost(f64),
}

#[derive(Debug, Clone)]
pub struct Row {
    pub what: String,
    pub hits: f64,
    /// Of how many runs, or in how many series-years.
    pub of: f64,
    /// What is promised of `hits / of`.
    pub bar: Bar,
}

impl Row {
    /// A share of runs.
    pub fn share(what: impl Into<String>, hits: usize, of: usize, bar: Bar) -> Self {
        Self { what: what.into(), hits: hits as f64, of: of as f64, bar }
    }

    /// A rate per unit, such as alerts a series-year, or any other figure with `of` = 1.
    pub fn rate(what: impl Into<String>, hits: f64, of: f64, bar: Bar) -> Self {
        Self { what: what.into(), hits, of, bar }
    }

    pub fn value(&self) -> f64 {
        if self.of > 0.0 { self.hits / self.of } else { f64::NAN }
    }

    /// Whether the figure is on the right side. Nothing measured is not met.
    pub fn met(&self) -> bool {
        match self.bar {
            Bar::AtLeast(bar) => self.value() >= bar,
            Bar::AtMost(bar) => self.value() <= bar,
        }
    }
}

pub fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for row in rows {
        let (sign, bar) = match row.bar {
            Bar::AtLeast(bar) => (">=", bar),
            Bar::AtMost(bar) => ("<=", bar),
        };
        let met = if row.met() { "met" } else { "NOT MET" };
        let _ = writeln!(
            text,
            "{:<width$}  {:>8.4} {sign} {bar:<6} {:>9} of {:<9} {met}",
            row.what,
            row.value(),
            row.hits,
            row.of
        );
    }
    text
}

/// The last line, and whether every row is met.
pub fn summary(name: &str, rows: &[Row]) -> (String, bool) {
    let met = rows.iter().filter(|row| row.met()).count();
    let all = met == rows.len() && !rows.is_empty();
    let word = if all { "met" } else { "not met" };
    (format!("{name}: rows={} met={met} bar={} {word}", rows.len(), rows.len()), all)
}

pub fn json(rows: &[Row]) -> String {
    let one = |row: &Row| {
        let (kind, bar) = match row.bar {
            Bar::AtLeast(bar) => ("at_least", bar),
            Bar::AtMost(bar) => ("at_most", bar),
        };
        json!({ "what": row.what, "hits": row.hits, "of": row.of, "value": row.value(), kind: bar, "met": row.met() })
    };
    format!("{:#}\n", Value::Array(rows.iter().map(one).collect()))
}
