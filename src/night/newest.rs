//! Which run of a directory counts: the newest that is not still going on.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use railgauge_model::{border::text::path_text, directory::JOURNAL, files};
use serde::Deserialize;

use super::judged::{Judged, NightError};
use crate::analysis::{history, journal::JournalEnd};

/// Longest first line that is looked at, in bytes: it holds the whole plan.
const LONGEST: u64 = 64 << 20;

/// The newest run that `word` stands for: a run directory, a directory of run directories, or a pattern. Where a newer one is still
/// going on, the newest that is not; where all of them are, the newest.
///
/// # Errors
/// There is no run, or the newest one cannot be read: an older one says nothing of tonight.
pub fn newest(word: &str) -> Result<Judged, NightError> {
    let mut runs: Vec<(Timestamp, PathBuf)> = Vec::new();
    for directory in history::run_directories(word).map_err(NightError::NoRuns)? {
        runs.push((begun(&directory)?, directory));
    }
    runs.sort();
    let mut running = None;
    for (_, directory) in runs.into_iter().rev() {
        let judged = Judged::read(&directory)?;
        if judged.end() != &JournalEnd::Running {
            return Ok(judged);
        }
        running = running.or(Some(judged));
    }
    running.ok_or_else(|| NightError::NoRuns(history::NoRuns::NoRun { word: word.to_owned() }))
}

/// When a run began, from the first line of its records alone; where that is damaged, when the file was changed last.
fn begun(directory: &Path) -> Result<Timestamp, NightError> {
    #[derive(Deserialize)]
    struct First {
        at: String,
    }
    let path = directory.join(JOURNAL);
    let unreadable = |cause| NightError::File { path: path_text(&path), cause };
    let file = files::open(&path).map_err(unreadable)?;
    let changed = file.metadata().and_then(|about| about.modified()).map_err(unreadable)?;
    let mut line = Vec::new();
    BufReader::new(file).take(LONGEST).read_until(b'\n', &mut line).map_err(unreadable)?;
    let first = serde_json::from_slice(&line).ok().and_then(|First { at }| at.parse().ok());
    Ok(first.unwrap_or_else(|| Timestamp::try_from(changed).unwrap_or(Timestamp::MIN)))
}
