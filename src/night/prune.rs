//! Which runs of a directory may be deleted, and deleting them.
//!
//! Anything that is not certainly a complete run of ours is kept, with the reason. Links are not followed, and only files that a run writes
//! are deleted: a directory that holds anything else is kept as a whole.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use railgauge_model::{
    border::text::path_text,
    directory::{Directory, FILES, JOURNAL},
    files,
};
use railgauge_report::index::{Outcome, Row};
use serde::Serialize;

use super::{
    judged::NightError,
    nights,
    states::{Condition, Known, Said, States},
    summary::{Summary, plan_of},
};

/// The place for signatures on a sign-off, as its template has it.
const SIGNATURES: &str = "id=\"signatures\"";
/// Largest page or document that is searched for names of runs, in bytes.
const LARGEST: u64 = 64 << 20;

#[derive(Debug, Clone, Default)]
pub struct Keep {
    pub last: Option<usize>,
    pub within: Option<SignedDuration>,
    pub failed: bool,
    pub named_in: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    pub directory: String,
    pub run_id: String,
    pub plan: String,
    pub began: String,
    pub outcome: Outcome,
    pub bytes: u64,
    /// Why it is kept; absent where it may be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    pub deleted: bool,
    #[serde(skip)]
    path: PathBuf,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    pub runs: Vec<Choice>,
    pub idle: Vec<String>,
}

pub fn choose(directory: &Path, keep: &Keep, now: Timestamp) -> Result<Chosen, PruneError> {
    let word = directory.to_string_lossy().into_owned();
    let (runs, plans) = nights::read(&word, None, now)?;
    let named = Named::of(directory, &keep.named_in, runs.iter().map(|run| run.directory.as_path()))?;
    let states = states(&runs, plans, now);
    let mut newest: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut choices = Vec::new();
    for Summary { began, row, directory: path, .. } in runs {
        // Partial and missing nights do not count as nights to keep, but stay while a newer counted night does: a part may show that a host
        // was repaired. Copies of a run are one.
        let nights = newest.entry(row.plan.clone()).or_default();
        let is_copy = nights.contains(&row.run_id);
        let is_last = is_over(row.outcome) && keep.last.is_some_and(|last| nights.len() < last || is_copy && last > 0);
        if is_last && !row.is_part && row.outcome != Outcome::NotRun {
            nights.insert(row.run_id.clone());
        }
        let is_young = keep.within.is_some_and(|within| now.duration_since(began) < within);
        let has_failed = keep.failed && row.outcome == Outcome::Fail;
        let kept = unsure(directory, &path, &row)
            .or_else(|| is_last.then(|| format!("one of the newest {} of its plan", keep.last.unwrap_or_default())))
            .or_else(|| is_young.then(|| "young".to_owned()))
            .or_else(|| has_failed.then(|| "a verdict failed".to_owned()))
            .or_else(|| named.by(&row.run_id).map(|file| format!("named in {file}")))
            .or_else(|| states.get(&row.run_id).cloned());
        choices.push(Choice {
            directory: row.directory,
            run_id: row.run_id,
            plan: row.plan,
            began: row.began,
            outcome: row.outcome,
            bytes: size(&path),
            kept,
            deleted: false,
            path,
        });
    }
    let idle = named.idle(choices.iter().map(|choice| choice.run_id.as_str()));
    Ok(Chosen { runs: choices, idle })
}

/// Why runs are needed for the states of components, by run. Without the run that measured it as good, a component whose fault another kept
/// run shows would be faulty again.
fn states(runs: &[Summary], plans: BTreeSet<String>, now: Timestamp) -> BTreeMap<String, String> {
    let of_plan = |plan: String| {
        let own: Vec<&Summary> = runs.iter().filter(|run| run.row.plan == plan).collect();
        States::of(&own, now).all
    };
    let named = |Known { name, state, repaired, faults, tests, .. }: Known| -> Vec<(String, String)> {
        let (runs, words) = match state {
            Condition::Faulty => (faults, "is"),
            _ if repaired => (tests.into_iter().map(|of| of.measured).collect(), "was"),
            _ => return Vec::new(),
        };
        let why = |run: Said| (run.run_id, format!("{name} {words} faulty, and no later run measured it"));
        runs.into_iter().map(why).collect()
    };
    plans.into_iter().flat_map(of_plan).flat_map(named).collect()
}

#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    #[error(transparent)]
    Night(#[from] NightError),
    #[error("{}: cannot be read: {cause}; runs that it names could be lost", path_text(path))]
    Named { path: PathBuf, cause: io::Error },
}

const fn is_over(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Pass | Outcome::Fail | Outcome::Inconclusive | Outcome::NotRun)
}

/// Why this must not be deleted automatically; `None` for a complete run of ours.
fn unsure(above: &Path, path: &Path, row: &Row) -> Option<String> {
    let why = match row.outcome {
        Outcome::Running => Some("it is in progress".to_owned()),
        Outcome::Unfinished => Some("it did not finish; it may be resumed".to_owned()),
        Outcome::Damaged => Some("its records are damaged".to_owned()),
        Outcome::Imported => Some("it was imported".to_owned()),
        Outcome::Unreadable => Some(format!("its records cannot be read: {}", row.sentence)),
        _ => None,
    };
    why.or_else(|| out_of_place(above, path)).or_else(|| holds_other(path))
}

/// Why a path is not a real directory directly below the named one, without links out of it.
fn out_of_place(above: &Path, path: &Path) -> Option<String> {
    match path.symlink_metadata() {
        Err(error) => return Some(error.to_string()),
        Ok(about) if !about.is_dir() => return Some("it is a link, and no directory".to_owned()),
        Ok(_) => {}
    }
    match (path.canonicalize(), above.canonicalize()) {
        (Ok(path), Ok(above)) if path.parent() == Some(above.as_path()) => None,
        (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
        _ => Some("it does not lie in the directory that was named".to_owned()),
    }
}

fn holds_other(path: &Path) -> Option<String> {
    let entries = match fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
        Ok(entries) => entries,
        Err(error) => return Some(error.to_string()),
    };
    for entry in entries {
        let name = entry.file_name();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !(FILES.iter().any(|own| name == *own) || files::is_temporary(&name)) {
            return Some(format!("it holds `{}`, which no run writes", path_text(&name)));
        }
    }
    // The first line with its sum: no other program writes that.
    plan_of(path).is_none().then(|| "its first record is not that of a run".to_owned())
}

fn size(path: &Path) -> u64 {
    let of = |name: &&str| path.join(name).symlink_metadata().map_or(0, |about| about.len());
    FILES.iter().map(of).sum()
}

struct Named {
    learned: BTreeSet<String>,
    texts: Vec<(String, String)>,
    further: usize,
}

impl Named {
    /// Baselines of the plans of these runs; pages and documents in the directory itself; and further files.
    fn of<'p>(directory: &Path, further: &[PathBuf], runs: impl Iterator<Item = &'p Path>) -> Result<Self, PruneError> {
        let learned = runs.flat_map(sources).collect();
        let unread = |path: &Path| {
            let path = path.to_owned();
            move |cause| PruneError::Named { path, cause }
        };
        let read = |path: PathBuf| {
            let length = path.metadata().map_err(unread(&path))?.len();
            if length > LARGEST {
                return Err(unread(&path)(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large")));
            }
            let text = fs::read(&path).map_err(unread(&path))?;
            Ok((path_text(&path).to_string(), String::from_utf8_lossy(&text).into_owned()))
        };
        let mut texts: Vec<_> = further.iter().cloned().map(read).collect::<Result<_, _>>()?;
        let further = texts.len();
        for entry in fs::read_dir(directory).map_err(unread(directory))? {
            let path = entry.map_err(unread(directory))?.path();
            let is_known = path.extension().is_some_and(|end| end == "html" || end == "json");
            // Whatever its name; archives next to the runs are not searched.
            if path.is_file() && (is_known || path.metadata().is_ok_and(|about| about.len() <= LARGEST)) {
                // Other pages that name runs (comparisons, trends, the index) can be made again.
                texts.extend(Some(read(path)?).filter(|(_, text)| is_kept_for(text)));
            }
        }
        Ok(Self { learned, texts, further })
    }

    fn idle<'r>(&self, runs: impl Iterator<Item = &'r str> + Clone) -> Vec<String> {
        let names_one = |text: &str| runs.clone().any(|run_id| !run_id.is_empty() && text.contains(run_id));
        let further = self.texts.iter().take(self.further);
        further.filter(|(_, text)| !names_one(text)).map(|(file, _)| file.clone()).collect()
    }

    fn by(&self, run_id: &str) -> Option<&str> {
        if self.learned.contains(run_id) {
            return Some("the baseline of a plan that was run");
        }
        self.texts.iter().find(|(_, text)| text.contains(run_id)).map(|(file, _)| file.as_str())
    }
}

/// Whether a document depends on the runs that it names: a sign-off (the only one with a place for signatures), or a baseline.
fn is_kept_for(text: &str) -> bool {
    text.contains(SIGNATURES) || is_baseline(text)
}

/// Whether a document may be a baseline, of any version: it lists runs by their identity, and values that follow from them.
fn is_baseline(text: &str) -> bool {
    let Ok(serde_json::Value::Object(document)) = serde_json::from_str(text) else { return false };
    let names_runs = document.get("runs").and_then(|runs| runs.as_array()).is_some_and(|runs| {
        !runs.is_empty() && runs.iter().all(|run| run.get("run_id").is_some_and(serde_json::Value::is_string))
    });
    names_runs && document.contains_key("railgauge")
}

fn sources(run: &Path) -> Vec<String> {
    let learned = plan_of(run).and_then(|plan| plan.baseline);
    learned.map_or_else(Vec::new, |known| known.runs.into_iter().map(|run| run.run_id).collect())
}

/// Deletes a run that may be deleted and is not being written. Its records go last, so that an interrupted deletion can be repeated.
///
/// # Errors
/// Another process writes to it, it changed since it was chosen, or a file cannot be deleted.
pub fn delete(choice: &mut Choice) -> io::Result<()> {
    if choice.kept.is_some() {
        return Ok(());
    }
    if !choice.path.symlink_metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is no longer a directory"));
    }
    let (_directory, claim) = Directory::open(&choice.path).map_err(io::Error::other)?;
    if let Some(other) = holds_other(&choice.path) {
        return Err(io::Error::other(other));
    }
    files::sweep(&choice.path, Duration::ZERO)?;
    for name in FILES.into_iter().filter(|name| *name != JOURNAL).chain([JOURNAL]) {
        match fs::remove_file(choice.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir(&choice.path)?;
    drop(claim);
    choice.deleted = true;
    Ok(())
}
