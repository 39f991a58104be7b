//! The run directory and the names of its files. Users rely on the names.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    border::text::{path_quoted, path_text},
    files,
    journal::writer::Claim,
};

pub const PLAN: &str = "plan.toml";
pub const FACTS: &str = "facts.json";
pub const JOURNAL: &str = "records.jsonl";
pub const FRAME: &str = "records.parquet";
pub const VERDICTS: &str = "verdicts.json";
pub const JUNIT: &str = "junit.xml";
pub const PAGE: &str = "report.html";
pub const LOG: &str = "log.txt";
pub const RESERVE: &str = ".reserve";
pub const FILES: [&str; 9] = [PLAN, FACTS, JOURNAL, FRAME, VERDICTS, JUNIT, PAGE, LOG, RESERVE];
/// Files that a run writes before its first record. A directory with only these can be started again.
const EARLY: [&str; 4] = [PLAN, JOURNAL, LOG, RESERVE];

#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error(
        "the run directory {} holds a run; give another with -o DIR, or continue that run with --resume {}",
        path_text(.0), path_quoted(.0)
    )]
    Taken(PathBuf),
    #[error("the directory {} is not empty and holds no run; give another with -o DIR", path_text(.0))]
    Foreign(PathBuf),
    /// It contains no run to resume.
    #[error("{} holds no run to continue: {why}; {instead}", path_text(path))]
    Nothing { path: PathBuf, instead: String, why: &'static str },
    #[error("cannot use the run directory {}: {cause}; choose another place with -o DIR", path_text(path))]
    Unusable { path: PathBuf, cause: io::Error },
    #[error("cannot continue the run in {}: {cause}", path_text(path))]
    Held { path: PathBuf, cause: io::Error },
}

fn names(path: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect()
}

fn may_hold_a_run(names: &[OsString]) -> bool {
    names.is_empty() || names.iter().any(|name| name == JOURNAL)
}

fn is_early(name: &OsString) -> bool {
    EARLY.iter().any(|early| name == early) || files::is_temporary(name)
}

fn instead(path: &Path) -> String {
    let is_free = match names(path) {
        Ok(names) => may_hold_a_run(&names) && names.iter().all(is_early),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    match is_free {
        true => format!("`railgauge run PLAN -o {}` starts one there", path_quoted(path)),
        false => "name a directory that `railgauge run` made".to_owned(),
    }
}

fn of_journal(cause: io::Error) -> io::Error {
    io::Error::new(cause.kind(), format!("{JOURNAL}: {cause}"))
}

#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Makes a run directory and its parents, and claims its journal. Users outside the group cannot read a directory made here; an
    /// existing one keeps its mode. A directory whose run ended before its first record is reused.
    ///
    /// # Errors
    /// It holds a run or something else, or cannot be made.
    pub fn create(path: &Path) -> Result<(Self, Claim), DirectoryError> {
        let unusable = |cause| DirectoryError::Unusable { path: path.to_owned(), cause };
        if let Some(above) = path.parent() {
            files::make_directories(above).map_err(unusable)?;
        }
        match fs::DirBuilder::new().mode(0o750).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(unusable(error)),
            _ => {}
        }
        let directory = Self { path: path.to_owned() };
        let names = names(path).map_err(unusable)?;
        if !may_hold_a_run(&names) {
            return Err(DirectoryError::Foreign(path.to_owned()));
        }
        let claim = Claim::create(&directory.journal()).map_err(of_journal).map_err(unusable)?;
        if claim.is_written().map_err(unusable)? {
            return Err(DirectoryError::Taken(path.to_owned()));
        }
        if !names.iter().all(is_early) {
            return Err(DirectoryError::Foreign(path.to_owned()));
        }
        // Removes leftovers of interrupted writes, and the log, which would be appended to; the other files are rewritten.
        files::sweep(path, Duration::ZERO).map_err(unusable)?;
        files::remove(&directory.log()).map_err(unusable)?;
        Ok((directory, claim))
    }

    /// Opens a run directory and claims its journal. Changes nothing in it.
    ///
    /// # Errors
    /// It holds no run, or another process writes to it.
    pub fn open(path: &Path) -> Result<(Self, Claim), DirectoryError> {
        let held = |cause| DirectoryError::Held { path: path.to_owned(), cause };
        let nothing = |why| DirectoryError::Nothing { path: path.to_owned(), instead: instead(path), why };
        let directory = Self { path: path.to_owned() };
        if !path.is_dir() {
            return Err(nothing("it is not a directory"));
        }
        if directory.journal().symlink_metadata().is_err() {
            return Err(nothing("it has no records.jsonl"));
        }
        let claim = Claim::open(&directory.journal()).map_err(of_journal).map_err(held)?;
        match claim.is_written().map_err(held)? {
            true => Ok((directory, claim)),
            false => Err(nothing("its records.jsonl holds no whole line")),
        }
    }

    /// Syncs the directory, so that the file names survive a power failure.
    pub fn sync(&self) -> io::Result<()> {
        fs::File::open(&self.path)?.sync_all()
    }

    pub fn default_path(plan: &str, now: jiff::Timestamp) -> PathBuf {
        // Plan names are free text; characters unsuitable for a file name become dashes.
        let name: String =
            plan.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
        PathBuf::from("reports").join(format!("{name}-{}", now.strftime("%Y%m%dT%H%M%SZ")))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn run_id(&self) -> String {
        let full = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        full.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
    }
}

macro_rules! files {
    ($($name:ident = $file:ident,)*) => {
        impl Directory {
            $(pub fn $name(&self) -> PathBuf {
                self.path.join($file)
            })*
        }
    };
}
files! { plan = PLAN, facts = FACTS, journal = JOURNAL, log = LOG, reserve = RESERVE, }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_names_hold_no_separators() {
        let now = "2026-11-21T03:04:05Z".parse().unwrap();
        let path = Directory::default_path("before/after ü", now);
        assert_eq!(path, Path::new("reports/before-after-ü-20261121T030405Z"));
    }

    #[test]
    fn what_is_there_decides() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("foreign")).unwrap();
        fs::write(at("foreign/x"), "").unwrap();
        assert!(matches!(Directory::create(&at("foreign")), Err(DirectoryError::Foreign(_))));
        assert!(matches!(Directory::open(&at("foreign")), Err(DirectoryError::Nothing { .. })));
        assert!(matches!(Directory::open(&at("gone")), Err(DirectoryError::Nothing { .. })));
        assert!(!at("gone").exists());
        // Suggest the command only where it works.
        let proposed =
            |name: &str| Directory::open(&at(name)).unwrap_err().to_string().contains("railgauge run PLAN -o");
        assert!(proposed("gone") && !proposed("foreign"));

        let (directory, claim) = Directory::create(&at("new/run")).unwrap();
        fs::write(directory.plan(), "name = \"x\"").unwrap();
        fs::write(at("new/run/.railgauge-abcdef.new"), "name").unwrap();
        assert!(matches!(Directory::create(&at("new/run")), Err(DirectoryError::Unusable { .. })));
        assert!(matches!(Directory::open(&at("new/run")), Err(DirectoryError::Held { .. })));
        drop(claim);
        // It ended before its first record: it starts again, and cannot be resumed.
        assert!(matches!(Directory::open(&at("new/run")), Err(DirectoryError::Nothing { .. })));
        let (directory, claim) = Directory::create(&at("new/run")).unwrap();
        assert!(!at("new/run/.railgauge-abcdef.new").exists());
        drop(claim);
        fs::write(at("new/run/notes"), "mine").unwrap();
        assert!(matches!(Directory::create(&at("new/run")), Err(DirectoryError::Foreign(_))));
        fs::remove_file(at("new/run/notes")).unwrap();
        fs::create_dir(at("plans")).unwrap();
        fs::write(at("plans/plan.toml"), "mine").unwrap();
        assert!(matches!(Directory::create(&at("plans")), Err(DirectoryError::Foreign(_))));
        assert_eq!(fs::read_to_string(at("plans/plan.toml")).unwrap(), "mine");
        fs::write(directory.journal(), "something").unwrap();
        assert!(matches!(Directory::create(&at("new/run")), Err(DirectoryError::Taken(_))));
        assert!(Directory::open(&at("new/run")).is_ok());
    }

    #[test]
    fn others_cannot_look_into_a_new_directory() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let (directory, _claim) = Directory::create(&place.path().join("run")).unwrap();
        let mode = fs::metadata(directory.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o007, 0, "{mode:o}");
    }
}
