use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use railgauge_analysis::{history::RunError, row::Phase, words::count};
use railgauge_frame::{self as frame, COLUMNS, Filter, Frame, frame_of};
use railgauge_model::border::text::path_text;
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error("no run could be read; the first: {}", left_out.first().map_or("", |first| first.error.as_str()))]
    NoRun { left_out: Vec<LeftOut> },
    /// No row of any run has a requested test or host: an empty result would look like no failure.
    #[error("no row of these runs has the test or host `{name}` (a row of a collective has its first and last rank)")]
    Unknown { name: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Read {
    pub directory: String,
    pub run_id: String,
    /// The tool of an imported run; `None` for runs of railgauge.
    pub imported: Option<String>,
    pub rows: usize,
    /// Whether the run is complete; otherwise cases may be missing.
    pub whole: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub directory: String,
    pub error: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub columns: Vec<&'static str>,
    frames: Vec<Frame>,
    pub runs: Vec<Read>,
    pub left_out: Vec<LeftOut>,
}

/// The rows of these runs, with these columns or all of them. Unreadable runs are skipped and listed.
///
/// # Errors
/// No run can be read, or no run has a test or host of the filter.
pub fn answer(directories: &[PathBuf], filter: &Filter, columns: Option<&[&str]>) -> Result<Answer, QueryError> {
    let columns: Vec<&str> = COLUMNS
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| columns.is_none_or(|some| some.contains(name)))
        .collect();
    let mut unseen: BTreeSet<&str> = filter.tests.iter().chain(&filter.hosts).map(String::as_str).collect();
    let (mut frames, mut runs, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for directory in directories {
        match one(directory, filter, &columns, &mut unseen) {
            Ok((frame, run)) => {
                frames.push(frame);
                runs.push(run);
            }
            Err(error) => left_out.push(LeftOut { directory: path_text(directory), error: error.to_string() }),
        }
    }
    match unseen.first() {
        _ if runs.is_empty() => Err(QueryError::NoRun { left_out }),
        Some(name) => Err(QueryError::Unknown { name: (*name).to_owned() }),
        None => Ok(Answer { columns, frames, runs, left_out }),
    }
}

fn one(
    directory: &Path,
    filter: &Filter,
    columns: &[&str],
    unseen: &mut BTreeSet<&str>,
) -> Result<(Frame, Read), RunError> {
    let needed: BTreeSet<&str> = columns.iter().copied().chain(Filter::COLUMNS).chain(["run_id", "phase"]).collect();
    let found = frame_of(directory, &needed.into_iter().collect::<Vec<_>>())?;
    let first = frame::values(&frame::select(&found.frame, &["run_id"])?).next();
    let run_id = first.and_then(|row| Some(row.first()?.as_str()?.to_owned())).unwrap_or_default();
    let kept = filter.keep(&found.frame, |name| _ = unseen.remove(name))?;
    let (directory, rows) = (path_text(directory), kept.height());
    let run = Read { directory, run_id, imported: found.imported, rows, whole: found.is_whole };
    Ok((frame::select(&kept, columns)?, run))
}

impl Answer {
    pub fn rows(&self) -> impl Iterator<Item = Vec<Value>> + '_ {
        self.frames.iter().flat_map(frame::values)
    }

    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
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
        let phase = self.columns.iter().position(|name| *name == "phase");
        let confirms = |row: &Vec<Value>| phase.is_some_and(|phase| row[phase] == Phase::Confirmation.word());
        let confirmations = self.rows().filter(confirms).count();
        if confirmations > 0 {
            notes.push(format!(
                "{} of suspects that were measured again: they count for no test, and have the phase `confirmation`",
                count(confirmations, "row")
            ));
        }
        notes.extend(self.left_out.iter().map(|run| format!("left out: {}: {}", run.directory, run.error)));
        notes
    }
}
