//! Which runs of a directory count, the newest first.
//!
//! Runs of a part of a plan say nothing of the whole, and a run that is still going on says nothing yet. A run that cannot be read
//! counts all the same: an older one says nothing of tonight.

use std::{
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
        match plan {
            Some(plan) => found.retain(|run| run.plan.as_deref().is_none_or(|of| of == plan)),
            None => {
                let mut plans: Vec<&str> = found.iter().filter_map(|run| run.plan.as_deref()).collect();
                plans.sort_unstable();
                plans.dedup();
                if plans.len() > 1 {
                    let plans = plans.into_iter().map(str::to_owned).collect();
                    return Err(NightError::SeveralPlans { word: word.to_owned(), plans });
                }
            }
        }
        found.sort_by(|a, b| (b.began, &b.directory).cmp(&(a.began, &a.directory)));
        if found.is_empty() {
            return Err(NightError::NoRuns(history::NoRuns::NoRun { word: word.to_owned() }));
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

/// What the first line says; where it cannot be read, when the file or its directory was changed last.
fn look(directory: PathBuf) -> Found {
    let first = first_line(&directory);
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let at = first.as_ref().and_then(|first| first.at.parse().ok());
    let started = first.as_ref().and_then(|first| first.event.get("Started"));
    let plan = text(started.and_then(|started| started.get("plan")));
    let subset = started.and_then(|started| started.get("resolved")?.get("subset"));
    Found {
        began: at.unwrap_or_else(|| changed(&directory)),
        plan,
        is_subset: subset.is_some_and(|subset| !subset.is_null()),
        directory,
    }
}

#[derive(Deserialize)]
struct First {
    at: String,
    event: Value,
}

fn first_line(directory: &Path) -> Option<First> {
    let file = files::open(&directory.join(JOURNAL)).ok()?;
    let mut line = Vec::new();
    BufReader::new(file).take(LONGEST).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

fn changed(directory: &Path) -> Timestamp {
    let of = |path: &Path| fs::symlink_metadata(path).and_then(|about| about.modified()).ok();
    let time = of(&directory.join(JOURNAL)).or_else(|| of(directory));
    time.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(Timestamp::MIN)
}

/// The path of a run in a message.
pub(super) fn named(directory: &Path) -> String {
    path_text(directory.join(JOURNAL)).to_string()
}
