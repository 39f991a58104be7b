//! Expands a word of the command line to run directories.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use glob::PatternError;
use railgauge_model::directory::{FACTS, JOURNAL, LOG, PLAN, RESERVE, VERDICTS};

use super::names::shape;

/// Files that a run without a journal may have left: a plan next to any other file is a user's folder.
const LEFT: [&str; 3] = [PLAN, LOG, RESERVE];

#[derive(Debug, thiserror::Error)]
pub enum NoRuns {
    #[error("`{word}` is not a pattern of names: {cause}; [[] is the character [ itself")]
    Pattern { word: String, cause: PatternError },
    #[error("there is no `{word}`")]
    Nothing { word: String },
    #[error("`{word}` holds no run directory: none has a records.jsonl")]
    NoRun { word: String },
    #[error("`{word}` is a file: name the run directory that it lies in")]
    File { word: String },
}

/// Expands `word`, in the order of names: a run directory, a directory that holds some, or a pattern (`reports/nightly-2026-*`) of either.
///
/// # Errors
/// The pattern is invalid, or matches no run directory.
pub fn run_directories(word: &str) -> Result<Vec<PathBuf>, NoRuns> {
    let named = || word.to_owned();
    let plain = Path::new(word);
    if plain.is_file() {
        return Err(NoRuns::File { word: named() });
    }
    let places = if plain.exists() {
        vec![plain.to_owned()]
    } else {
        let matches = glob::glob(word).map_err(|cause| NoRuns::Pattern { word: named(), cause })?;
        // An unreadable directory is reported below, by name.
        matches.filter_map(Result::ok).collect()
    };
    if places.is_empty() {
        return Err(NoRuns::Nothing { word: named() });
    }
    // Matches of a pattern are treated like the content of a directory.
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for place in places {
        match below(&place) {
            runs if runs.is_empty() => others.push(place),
            runs => found.extend(runs),
        }
    }
    found.extend(like(&found, others));
    let found = each_once(found);
    if found.is_empty() {
        return Err(NoRuns::NoRun { word: named() });
    }
    Ok(found)
}

/// In the order of names. A directory with two names occurs once: a run must not count twice.
pub fn each_once(mut directories: Vec<PathBuf>) -> Vec<PathBuf> {
    directories.sort();
    without_repeats(directories)
}

/// Keeps the first of equal directories.
pub fn without_repeats(mut directories: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    directories.retain(|directory| seen.insert(real(directory)));
    directories
}

/// Without links and dots, so that one directory has one name.
pub fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn below(place: &Path) -> Vec<PathBuf> {
    // An unreadable run directory, or one without its journal, is kept so that reading it reports the problem.
    let there = |path: &Path| match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    };
    let traces = [JOURNAL, FACTS, VERDICTS];
    let is_run = |path: &Path| traces.iter().any(|name| there(&path.join(name)));
    if is_run(place) {
        return vec![place.to_owned()];
    }
    let entries: Vec<PathBuf> =
        std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let (mut runs, others): (Vec<PathBuf>, Vec<PathBuf>) = entries.into_iter().partition(|path| is_run(path));
    runs.extend(like(&runs, others));
    // A directory matched by a pattern.
    if runs.is_empty() && has_plan(place) {
        runs.push(place.to_owned());
    }
    runs
}

/// Other directories that are runs too, given `runs`: what a run leaves that was killed before its first record (a plan
/// alone), and whatever has a similar name, however incomplete. A similar name that is not a directory, such as a link
/// to an archive that is not mounted, is an unreadable run.
fn like(runs: &[PathBuf], others: Vec<PathBuf>) -> Vec<PathBuf> {
    let names: HashSet<String> = runs.iter().map(|run| shape(&run.to_string_lossy())).collect();
    let is_like = |path: &PathBuf| has_plan(path) || names.contains(&shape(&path.to_string_lossy()));
    others.into_iter().filter(is_like).collect()
}

/// Whether a directory holds a plan and otherwise only files of a run.
fn has_plan(path: &Path) -> bool {
    let names: Vec<_> =
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    names.iter().any(|name| name == PLAN) && names.iter().all(|name| LEFT.iter().any(|own| name == own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_by_name_by_parent_and_by_pattern() {
        let place = tempfile::tempdir().unwrap();
        for name in ["b", "a", "notes"] {
            std::fs::create_dir(place.path().join(name)).unwrap();
        }
        for name in ["a", "b"] {
            std::fs::write(place.path().join(name).join("records.jsonl"), "").unwrap();
        }
        let root = place.path().to_str().unwrap();
        let both = vec![place.path().join("a"), place.path().join("b")];
        assert_eq!(run_directories(root).unwrap(), both.clone());
        assert_eq!(run_directories(&format!("{root}/*")).unwrap(), both.clone());
        assert_eq!(run_directories(&format!("{root}/a")).unwrap(), both[..1].to_vec());
        std::os::unix::fs::symlink(place.path().join("a"), place.path().join("latest")).unwrap();
        assert_eq!(run_directories(root).unwrap(), both.clone(), "a link to a run is that run");
        // Runs without a journal, or with a journal that is not a file, are reported.
        for (name, what) in [("lost", "verdicts.json"), ("odd", "facts.json")] {
            std::fs::create_dir(place.path().join(name)).unwrap();
            std::fs::write(place.path().join(name).join(what), "").unwrap();
        }
        std::fs::create_dir_all(place.path().join("folder/records.jsonl")).unwrap();
        let all = ["a", "b", "folder", "lost", "odd"].map(|name| place.path().join(name)).to_vec();
        assert_eq!(run_directories(root).unwrap(), all);
        assert!(matches!(run_directories(&format!("{root}/notes")), Err(NoRuns::NoRun { .. })));
        // So are started ones: a plan without a journal, or nothing at all under a name such as runs have.
        for name in ["begun", "night-2", "night-1", "project"] {
            std::fs::create_dir(place.path().join(name)).unwrap();
        }
        std::fs::write(place.path().join("night-1/records.jsonl"), "").unwrap();
        std::fs::write(place.path().join("begun/plan.toml"), "").unwrap();
        for file in ["plan.toml", "README"] {
            std::fs::write(place.path().join("project").join(file), "").unwrap();
        }
        // Or something else than a directory under such a name; a page next to its run has another.
        std::os::unix::fs::symlink(place.path().join("away"), place.path().join("night-3")).unwrap();
        std::fs::write(place.path().join("night-4"), "").unwrap();
        std::fs::write(place.path().join("night-1.html"), "").unwrap();
        // Or with only a page or a log left, or one level too deep.
        for (night, file) in [("night-5", "log.txt"), ("night-6", "report.html")] {
            std::fs::create_dir(place.path().join(night)).unwrap();
            std::fs::write(place.path().join(night).join(file), "").unwrap();
        }
        std::fs::create_dir_all(place.path().join("night-7/night-7")).unwrap();
        let nights = [1, 2, 3, 4, 5, 6, 7].map(|night| place.path().join(format!("night-{night}"))).to_vec();
        let mut all = ["a", "b", "begun", "folder", "lost"].map(|name| place.path().join(name)).to_vec();
        all.extend(nights.clone());
        all.push(place.path().join("odd"));
        assert_eq!(run_directories(root).unwrap(), all.clone());
        // A pattern matches the same runs.
        assert_eq!(run_directories(&format!("{root}/*")).unwrap(), all);
        assert_eq!(run_directories(&format!("{root}/night-?")).unwrap(), nights);
        assert_eq!(run_directories(&format!("{root}/begun")).unwrap(), vec![place.path().join("begun")]);
        assert!(matches!(run_directories(&format!("{root}/z*")), Err(NoRuns::Nothing { .. })));
        assert!(matches!(run_directories(&format!("{root}/[")), Err(NoRuns::Pattern { .. })));
    }
}
