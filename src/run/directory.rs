//! The run directory: where it lies and what its files are called. The names are the contract with users.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Why there is no new run directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// It holds something already.
    #[error(
        "the run directory {} is not empty; give another with -o DIR, or go on with that run by --resume {}",
        .0.display(), .0.display()
    )]
    Taken(PathBuf),
    /// It cannot be made or looked into.
    #[error("cannot make the run directory {}: {cause}; choose another place with -o DIR", path.display())]
    Unmade {
        /// The directory.
        path: PathBuf,
        /// What the operating system says.
        cause: io::Error,
    },
}

/// An existing run directory.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Makes a new, empty run directory and everything above it.
    ///
    /// # Errors
    /// It exists and is not empty, or cannot be made.
    pub fn create(path: &Path) -> Result<Self, DirectoryError> {
        let unmade = |cause| DirectoryError::Unmade { path: path.to_owned(), cause };
        fs::create_dir_all(path).map_err(unmade)?;
        if fs::read_dir(path).map_err(unmade)?.next().is_some() {
            return Err(DirectoryError::Taken(path.to_owned()));
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Opens a run directory that holds a journal.
    ///
    /// # Errors
    /// There is no journal in it.
    pub fn open(path: &Path) -> Result<Self, String> {
        let directory = Self { path: path.to_owned() };
        match directory.journal().is_file() {
            true => Ok(directory),
            false => Err(format!("{} is not a run directory: it has no records.jsonl", path.display())),
        }
    }

    /// `reports/<plan name>-<UTC time>` under the current directory.
    pub fn default_path(plan: &str, now: jiff::Timestamp) -> PathBuf {
        // Plan names are free text: whatever a file name should not hold becomes a dash.
        let name: String =
            plan.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
        PathBuf::from("reports").join(format!("{name}-{}", now.strftime("%Y%m%dT%H%M%SZ")))
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the directory: the run's identity.
    pub fn run_id(&self) -> String {
        let full = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        full.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
    }

    /// The plan as given.
    pub fn plan(&self) -> PathBuf {
        self.path.join("plan.toml")
    }

    /// What every host is.
    pub fn facts(&self) -> PathBuf {
        self.path.join("facts.json")
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.path.join("records.jsonl")
    }

    /// What agents and launchers said.
    pub fn log(&self) -> PathBuf {
        self.path.join("log.txt")
    }

    /// Room kept for the last records when the disk fills up.
    pub fn reserve(&self) -> PathBuf {
        self.path.join(".reserve")
    }
}

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
    fn a_used_directory_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("x"), "").unwrap();
        assert!(matches!(Directory::create(place.path()), Err(DirectoryError::Taken(_))));
        assert!(Directory::open(place.path()).unwrap_err().contains("records.jsonl"));
    }
}
