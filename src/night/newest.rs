//! Which runs of a directory count, the newest first.
//!
//! Runs of a part of a plan say nothing of the whole, and a run that is still going on says nothing yet. A run that cannot be read
//! counts all the same: an older one says nothing of tonight.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use railgauge_model::{border::text::path_text, directory::JOURNAL, files};
use serde::Deserialize;
use serde_json::Value;

use super::judged::{Judged, NightError};
use crate::analysis::{history, journal::JournalEnd};

/// Longest first line that is looked at, in bytes: it holds the whole plan.
const LONGEST: u64 = 64 << 20;

/// The runs that a word stands for, the newest first.
#[derive(Debug)]
pub struct Runs {
    word: String,
    found: Vec<Found>,
}

/// What the first line of a run's records says.
#[derive(Debug)]
struct Found {
    began: Timestamp,
    directory: PathBuf,
    /// `None` where the line cannot be read.
    plan: Option<String>,
    is_subset: bool,
    is_imported: bool,
}

impl Runs {
    /// The runs that `word` stands for: a run directory, a directory of run directories, or a pattern. Of several plans the one that
    /// is named.
    ///
    /// # Errors
    /// There is no run, none of that plan, or there are runs of several plans and none is named.
    pub fn of(word: &str, plan: Option<&str>) -> Result<Self, NightError> {
        let directories = history::run_directories(word).map_err(NightError::NoRuns)?;
        let mut found: Vec<Found> = directories.into_iter().map(look).collect();
        // What another tool measured is no run of ours. Where there is nothing else, reading it says so.
        if found.iter().any(|run| !run.is_imported) {
            found.retain(|run| !run.is_imported);
        }
        let plans: BTreeSet<String> = found.iter().filter_map(|run| run.plan.clone()).collect();
        match plan {
            Some(plan) => found.retain(|run| run.plan.as_deref().is_none_or(|of| of == plan)),
            None if plans.len() > 1 => {
                return Err(NightError::SeveralPlans { word: word.to_owned(), plans: plans.into_iter().collect() });
            }
            None => {}
        }
        found.sort_by(|a, b| (b.began, &b.directory).cmp(&(a.began, &a.directory)));
        if found.is_empty() {
            return Err(none_of(word, plan, plans));
        }
        Ok(Self { word: word.to_owned(), found })
    }

    /// The newest run of the whole plan that is not still going on; where all of them are, the newest. Where a single run is named
    /// it is that one.
    ///
    /// # Errors
    /// There is no run of the whole plan, or the newest one cannot be read.
    pub fn newest(&self) -> Result<Judged, NightError> {
        let mut running = None;
        let single = self.found.len() == 1;
        for run in self.found.iter().filter(|run| single || !run.is_subset) {
            let judged = Judged::read(&run.directory)?;
            if judged.end() != &JournalEnd::Running {
                return Ok(judged);
            }
            running = running.or(Some(judged));
        }
        running.ok_or_else(|| NightError::OnlyParts { word: self.word.clone() })
    }

    /// All of them, the newest first, each read when it is asked for. Those that cannot be read, and those that are still going on, are
    /// left out.
    pub fn readable(&self) -> impl Iterator<Item = Judged> {
        let read = self.found.iter().filter_map(|run| Judged::read(&run.directory).ok());
        read.filter(|run| run.end() != &JournalEnd::Running)
    }
}

/// There is no run: none of the plan that is named, where there are others.
pub(super) fn none_of(word: &str, plan: Option<&str>, plans: BTreeSet<String>) -> NightError {
    let word = word.to_owned();
    match plan {
        Some(plan) if !plans.is_empty() => {
            NightError::NoPlan { word, plan: plan.to_owned(), plans: plans.into_iter().collect() }
        }
        _ => NightError::NoRuns(history::NoRuns::NoRun { word }),
    }
}

/// What the first line says; where it cannot be read, when the file or its directory was changed last.
fn look(directory: PathBuf) -> Found {
    let first = first_line(&directory).and_then(|line| first_of(&line));
    let began = first.as_ref().and_then(|first| first.began);
    Found {
        began: began.unwrap_or_else(|| changed(&directory)),
        is_subset: first.as_ref().is_some_and(|first| first.is_subset),
        is_imported: first.as_ref().is_some_and(|first| first.is_imported),
        plan: first.and_then(|first| first.plan),
        directory,
    }
}

/// What a line of a journal says of its time and, if it is the first, of its run.
#[derive(Debug)]
pub(super) struct First {
    /// When it was written.
    pub(super) began: Option<Timestamp>,
    /// Name of the plan.
    pub(super) plan: Option<String>,
    /// Identity of the run; empty where the line does not say it.
    pub(super) run_id: String,
    /// Whether only a part of the plan was run.
    is_subset: bool,
    /// Whether it is what another tool measured.
    pub(super) is_imported: bool,
}

/// Reads a line without its sum: it is no evidence, only the order in which runs stand.
pub(super) fn first_of(line: &[u8]) -> Option<First> {
    #[derive(Deserialize)]
    struct Line {
        at: String,
        event: Value,
    }
    let line: Line = serde_json::from_slice(line).ok()?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let started = line.event.get("Started");
    let of = |key: &str| started.and_then(|started| started.get(key));
    let subset = of("resolved").and_then(|plan| plan.get("subset"));
    Some(First {
        began: line.at.parse().ok(),
        plan: text(of("plan")),
        run_id: text(of("run_id")).unwrap_or_default(),
        is_subset: subset.is_some_and(|subset| !subset.is_null()),
        is_imported: line.event.get("Imported").is_some(),
    })
}

/// The first line of a run's records.
pub(super) fn first_line(directory: &Path) -> Option<Vec<u8>> {
    let file = files::open(&directory.join(JOURNAL)).ok()?;
    let mut line = Vec::new();
    BufReader::new(file).take(LONGEST).read_until(b'\n', &mut line).ok()?;
    Some(line)
}

/// When the journal or its directory was changed last.
pub(super) fn changed(directory: &Path) -> Timestamp {
    let of = |path: &Path| fs::symlink_metadata(path).and_then(|about| about.modified()).ok();
    let time = of(&directory.join(JOURNAL)).or_else(|| of(directory));
    time.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(Timestamp::MIN)
}

/// The path of a run in a message.
pub(super) fn named(directory: &Path) -> String {
    path_text(directory.join(JOURNAL)).to_string()
}
