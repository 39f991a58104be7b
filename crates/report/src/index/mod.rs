//! The index of many runs: one page and the terminal text, from the same rows. Runs with problems have a row that says so.

mod text;

use std::{
    collections::BTreeMap,
    path::{Component, Path},
};

use railgauge_analysis::status::Status;
use railgauge_model::directory::PAGE;
use serde::Serialize;

use super::{
    error::{ReportError, text_file},
    html,
};

pub use text::summary;

railgauge_wire::words! {
    #[derive(Default)]
    Outcome {
        Pass = "pass",
        Fail = "fail",
        Inconclusive = "inconclusive",
        NotRun = "not-run",
        Running = "running",
        Unfinished = "unfinished",
        Damaged = "damaged",
        #[default]
        Unreadable = "unreadable",
        Imported = "imported",
    }
}

impl From<Status> for Outcome {
    fn from(status: Status) -> Self {
        match status {
            Status::Pass => Self::Pass,
            Status::Fail => Self::Fail,
            Status::NotRun => Self::NotRun,
            Status::Inconclusive => Self::Inconclusive,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    pub directory: String,
    /// Relative URL; may be empty.
    pub page: String,
    /// Empty if it cannot be read.
    pub run_id: String,
    /// Empty if it cannot be read.
    pub plan: String,
    /// Start, UTC, RFC 3339; otherwise when its files last changed.
    pub began: String,
    pub began_is_known: bool,
    /// From its first to its last record.
    pub seconds: Option<i64>,
    pub outcome: Outcome,
    /// The answer of the run, or why it has none.
    pub sentence: String,
    pub cases: Option<(u64, u64)>,
    pub failures: u64,
    /// Names of the components that it found faulty.
    pub faulty: Vec<String>,
    pub is_part: bool,
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grid {
    pub plan: String,
    /// Dates of the last nights with a measurement, newest first.
    pub nights: Vec<String>,
    /// Faulty ones first.
    pub hosts: Vec<GridRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GridRow {
    pub host: String,
    /// `good`, `unknown`, `undecided` or `faulty`.
    pub state: &'static str,
    /// Date of the first run with this state; may be empty.
    pub since: String,
    pub measured: String,
    pub why: String,
    /// By night; `None` if not measured.
    pub cells: Vec<Option<Cell>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    pub state: &'static str,
    /// Relative URL; may be empty.
    pub page: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Index {
    pub version: u32,
    pub runs_of: String,
    pub made: String,
    pub counts: Vec<(&'static str, usize)>,
    pub runs: Vec<Row>,
    pub grids: Vec<Grid>,
}

impl Index {
    /// The rows are in order already.
    pub fn of(runs_of: &str, made: String, runs: Vec<Row>, grids: Vec<Grid>) -> Self {
        let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
        runs.iter().for_each(|row| *counts.entry(row.outcome.word()).or_default() += 1);
        let mut counts: Vec<(&'static str, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        Self { version: 2, runs_of: runs_of.to_owned(), made, counts, runs, grids }
    }
}

#[derive(Debug, Serialize)]
struct Shown<'a> {
    row: &'a Row,
    began: String,
    lasted: String,
}

#[derive(Debug, Serialize)]
struct IndexView<'a> {
    index: &'a Index,
    rows: Vec<Shown<'a>>,
}

/// `1 h 4 min`, `3 min 20 s`, `12 s`.
fn lasted(seconds: i64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// `2026-11-21 02:00` of an RFC 3339 time.
fn minute(time: &str) -> String {
    time.parse::<jiff::Timestamp>().map_or_else(|_| time.to_owned(), |time| time.strftime("%Y-%m-%d %H:%M").to_string())
}

/// Replaces the page as a whole or not at all.
///
/// # Errors
/// The page cannot be rendered or written.
pub fn write(index: &Index, page: &Path) -> Result<(), ReportError> {
    let rows = index.runs.iter().map(|row| Shown {
        row,
        began: minute(&row.began),
        lasted: row.seconds.map_or_else(String::new, lasted),
    });
    let view = IndexView { index, rows: rows.collect() };
    let text = html::page("index.html", &view).map_err(ReportError::drawing("the index"))?;
    text_file(page, &text)
}

/// URL of a run's page relative to `from`; `None` without a page or a relative path.
pub fn link(run: &Path, from: &Path) -> Option<String> {
    let page = run.join(PAGE);
    page.symlink_metadata().ok()?.is_file().then_some(())?;
    let (page, from) = (page.canonicalize().ok()?, from.canonicalize().ok()?);
    let common = page.components().zip(from.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| "..".to_owned());
    let down = page.components().skip(common).map(|part| match part {
        Component::Normal(name) => escaped(name.as_encoded_bytes()),
        _ => String::new(),
    });
    Some(up.chain(down).collect::<Vec<_>>().join("/"))
}

/// For a URL: escapes everything except the unreserved characters of RFC 3986.
pub fn escaped(name: &[u8]) -> String {
    name.iter().fold(String::new(), |mut text, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(*byte)),
            byte => text += &format!("%{byte:02X}"),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_the_index_to_a_page_whatever_its_name() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("runs/a b:c%\"<é>");
        std::fs::create_dir_all(&run).unwrap();
        assert_eq!(link(&run, place.path()), None);
        std::fs::write(run.join(PAGE), "").unwrap();
        let name = "a%20b%3Ac%25%22%3C%C3%A9%3E";
        assert_eq!(link(&run, place.path()).unwrap(), format!("runs/{name}/report.html"));
        let beside = place.path().join("pages");
        std::fs::create_dir(&beside).unwrap();
        assert_eq!(link(&run, &beside).unwrap(), format!("../runs/{name}/report.html"));
    }
}
