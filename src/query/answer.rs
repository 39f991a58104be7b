//! The rows of runs that a filter keeps.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use railgauge_model::border::text::path_text;
use serde::Serialize;

use super::filter::{Filter, columns_like};
use crate::analysis::{
    frame::{self, COLUMNS, Cells, Frame, FrameError, kind},
    history::{RunError, frame_of},
    row::Phase,
    words::count,
};

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// Which rows; all of them if `None`.
    pub filter: Option<Filter>,
    /// Which columns, in this order; there is one at least.
    pub columns: Vec<&'static str>,
    /// In which order; as the runs were given, and their rows as they lie, if empty.
    pub order: Vec<By>,
    /// Most rows.
    pub limit: Option<usize>,
}

/// A column that rows are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct By {
    /// The column.
    pub column: &'static str,
    /// Whether larger values come first.
    pub descending: bool,
}

/// Why a question cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// There is no column of this name.
    #[error("there is no column `{name}` ({help})")]
    NoColumn {
        /// The name.
        name: String,
        /// The nearest one, or all of them.
        help: String,
    },
    /// An order is not a column, or a column and `asc` or `desc`.
    #[error("`{text}` is no order: write `value`, `value asc` or `value desc`")]
    NoOrder {
        /// What stands there.
        text: String,
    },
    /// No run could be read.
    #[error("no run could be read; the first: {}", left_out.first().map_or("", |first| first.error.as_str()))]
    NoRun {
        /// All of them.
        left_out: Vec<LeftOut>,
    },
    /// A frame is not as it should be.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// A run whose rows were looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Read {
    /// Its directory.
    pub directory: String,
    /// Its identity; empty where it has no row at all.
    pub run_id: String,
    /// Version of the columns in its file ([`frame::VERSION`]).
    pub frame: u32,
    /// What wrote the outputs, where another tool measured and they were imported; `None` for runs of railgauge.
    pub imported: Option<String>,
    /// Rows that the filter kept.
    pub rows: usize,
    /// Whether the run came to its end; cases of one that did not may be missing.
    pub whole: bool,
}

/// A run that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Its directory.
    pub directory: String,
    /// Why.
    pub error: String,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The rows, with the columns that were asked for.
    pub frame: Frame,
    /// Rows before the limit.
    pub found: usize,
    /// The runs, in the order in which they were given.
    pub runs: Vec<Read>,
    /// Runs that could not be read.
    pub left_out: Vec<LeftOut>,
    /// Rows among `found` that confirm a suspect and count for no test.
    pub confirmations: usize,
}

/// Columns by their names, between commas.
///
/// # Errors
/// There is no such column.
pub fn columns(text: &str) -> Result<Vec<&'static str>, QueryError> {
    let mut found = Vec::new();
    for name in text.split(',').map(str::trim) {
        let column = column(name)?;
        // Twice the same column has two meanings in no format.
        if !found.contains(&column) {
            found.push(column);
        }
    }
    Ok(found)
}

/// Columns to order by, between commas, each with `asc` or `desc` behind it or nothing.
///
/// # Errors
/// There is no such column, or something else stands behind it.
pub fn order(text: &str) -> Result<Vec<By>, QueryError> {
    let one = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (name, descending) = match words[..] {
            [name] => (name, false),
            [name, way] if way.eq_ignore_ascii_case("asc") => (name, false),
            [name, way] if way.eq_ignore_ascii_case("desc") => (name, true),
            _ => return Err(QueryError::NoOrder { text: text.trim().to_owned() }),
        };
        Ok(By { column: column(name)?, descending })
    };
    text.split(',').map(one).collect()
}

fn column(name: &str) -> Result<&'static str, QueryError> {
    let known = COLUMNS.into_iter().map(|(known, _)| known).find(|known| *known == name);
    known.ok_or_else(|| QueryError::NoColumn { name: name.to_owned(), help: columns_like(name) })
}

/// The rows of these runs.
///
/// # Errors
/// No run can be read. A single one that cannot is left out, and said.
pub fn answer(directories: &[PathBuf], asked: &Asked) -> Result<Answer, QueryError> {
    let needed: BTreeSet<&str> = asked.filter.iter().flat_map(Filter::columns).chain(["run_id", "phase"]).collect();
    let wanted = || asked.columns.iter().copied().chain(asked.order.iter().map(|by| by.column));
    // The order of the frame, so that frames of several runs are alike.
    let all: Vec<&str> = COLUMNS
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| needed.contains(name) || wanted().any(|one| one == *name))
        .collect();
    let mut frame = frame::empty(&all);
    let (mut runs, mut left_out) = (Vec::new(), Vec::new());
    for directory in directories {
        match one(directory, &all, asked.filter.as_ref()) {
            Ok((kept, run)) => {
                frame::below(&mut frame, &kept)?;
                runs.push(run);
            }
            Err(error) => {
                left_out.push(LeftOut { directory: path_text(directory).to_string(), error: error.to_string() })
            }
        }
    }
    if runs.is_empty() {
        return Err(QueryError::NoRun { left_out });
    }
    let found = frame.height();
    let confirmations = match frame::cells(&frame, "phase")? {
        Cells::Text(phases) => phases.iter().filter(|phase| **phase == Some(Phase::Confirmation.word())).count(),
        _ => 0,
    };
    if !asked.order.is_empty() {
        let by: Vec<(&str, bool)> = asked.order.iter().map(|by| (by.column, by.descending)).collect();
        frame = frame::sorted(&frame, &by)?;
    }
    if let Some(limit) = asked.limit {
        frame = frame::head(&frame, limit);
    }
    Ok(Answer { frame: frame::select(&frame, &asked.columns)?, found, runs, left_out, confirmations })
}

/// The rows of one run.
fn one(directory: &Path, columns: &[&str], filter: Option<&Filter>) -> Result<(Frame, Read), RunError> {
    let found = frame_of(directory, columns)?;
    let run_id = match frame::cells(&found.frame, "run_id")? {
        Cells::Text(all) => all.first().copied().flatten().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    let kept = match filter {
        Some(filter) => frame::keep(&found.frame, &filter.keeps(&found.frame)?)?,
        None => found.frame,
    };
    let (directory, rows) = (path_text(directory).to_string(), kept.height());
    Ok((kept, Read { directory, run_id, frame: found.version, imported: found.imported, rows, whole: found.is_whole }))
}

impl Answer {
    /// Names of the columns with their values.
    ///
    /// # Errors
    /// The frame holds a column that is none of ours.
    pub(super) fn cells(&self) -> Result<Vec<(&'static str, Cells<'_>)>, FrameError> {
        let names = COLUMNS.into_iter().map(|(name, _)| name);
        let mut found: Vec<(usize, &'static str)> =
            names.filter_map(|name| Some((frame::place(&self.frame, name)?, name))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, name)| Ok((name, frame::cells(&self.frame, name)?))).collect()
    }

    /// What is worth knowing of the rows and cannot be seen in them, each in a sentence.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        let old = self.runs.iter().filter(|run| run.frame < frame::VERSION).count();
        if old > 0 {
            notes.push(format!(
                "{old} of {} with a frame of version 1: value_min, value_max and tool are null in their rows; `railgauge report RUN` \
                 writes version {}",
                count(self.runs.len(), "run"),
                frame::VERSION
            ));
        }
        let part: Vec<&str> = self.runs.iter().filter(|run| !run.whole).map(|run| run.directory.as_str()).collect();
        if !part.is_empty() {
            notes.push(format!("not at its end, cases may be missing: {}", part.join(", ")));
        }
        let imported: Vec<&Read> = self.runs.iter().filter(|run| run.imported.is_some() && run.rows > 0).collect();
        if !imported.is_empty() {
            let tools: BTreeSet<&str> = imported.iter().filter_map(|run| run.imported.as_deref()).collect();
            notes.push(format!(
                "{} of {} not measured by railgauge but imported: {}",
                count(imported.iter().map(|run| run.rows).sum::<usize>(), "row"),
                count(imported.len(), "run"),
                tools.into_iter().collect::<Vec<_>>().join(", ")
            ));
        }
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for run in self.runs.iter().filter(|run| !run.run_id.is_empty()) {
            match seen.get(run.run_id.as_str()) {
                Some(first) => notes.push(format!(
                    "{} and {first} are both run {}: if one is a copy, its rows are there twice",
                    run.directory, run.run_id
                )),
                None => _ = seen.insert(&run.run_id, &run.directory),
            }
        }
        if self.confirmations > 0 {
            notes.push(format!(
                "{} of suspects that were measured again: they count for no test, and `--where \"phase != 'confirmation'\"` leaves them out",
                count(self.confirmations, "row")
            ));
        }
        notes.extend(self.left_out.iter().map(|run| format!("left out: {}: {}", run.directory, run.error)));
        notes
    }
}

/// Whether a column holds numbers.
pub(super) fn is_number(column: &str) -> bool {
    matches!(kind(column), Some(frame::Kind::Whole | frame::Kind::Real))
}
