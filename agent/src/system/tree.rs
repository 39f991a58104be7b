//! Reads sysfs and procfs below a root directory, so that tests can supply a tree.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use parking_lot::Mutex;
use railgauge_wire::natural;

/// In bytes; longer files are cut there.
const LONGEST: u64 = 1 << 20;

pub(crate) type Seen = Arc<Mutex<BTreeSet<PathBuf>>>;

/// Environment variable for another root than `/`, for tests of whole hosts (docs/dev/agent.md).
pub(crate) const ROOT: &str = "RAILGAUGE_ROOT";

pub(crate) fn root() -> PathBuf {
    std::env::var_os(ROOT).filter(|root| !root.is_empty()).map_or_else(|| "/".into(), PathBuf::from)
}

#[derive(Debug)]
pub struct Tree {
    pub(crate) root: PathBuf,
    unreadable: RefCell<BTreeMap<String, String>>,
    seen: Option<Seen>,
}

impl Tree {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), unreadable: RefCell::default(), seen: None }
    }

    /// Also records every path read from now on.
    pub(crate) fn recording(root: impl Into<PathBuf>) -> (Self, Seen) {
        let seen = Seen::default();
        (Self { seen: Some(Arc::clone(&seen)), ..Self::new(root) }, seen)
    }

    fn place(&self, path: &Path) -> PathBuf {
        if let Some(seen) = &self.seen {
            seen.lock().insert(path.to_owned());
        }
        self.root.join(path)
    }

    /// `/`, or the directory in the environment variable [`ROOT`].
    pub(crate) fn host() -> Self {
        Self::new(root())
    }

    /// Whether it is the tree of this host, whose kernel can be queried.
    pub(crate) fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The text of a file, trimmed. `None` if it is missing, has no value or is forbidden; the last is noted.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(path)?).trim().to_owned())
    }

    /// The bytes of a file, as [`text`](Self::text).
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let path = path.as_ref();
        self.read(path, LONGEST).map_err(|error| self.failed(path, &error)).ok()
    }

    /// At most so many bytes of a file.
    pub fn read(&self, path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(64);
        self.open(path)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Opens a file for reading without blocking.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        File::options().read(true).custom_flags(libc::O_NONBLOCK).open(self.place(path.as_ref()))
    }

    /// As [`text`](Self::text), for a file of every host: its absence is noted too.
    pub fn expected(&self, path: impl AsRef<Path>) -> Option<String> {
        let path = path.as_ref();
        if !self.has(path) {
            self.note(path, "not there");
        }
        self.text(path)
    }

    /// Notes a value of another type.
    pub fn value<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        let text = self.text(&path)?;
        let value = text.parse().ok();
        if value.is_none() {
            self.note(path.as_ref(), &format!("holds {:?}", text.chars().take(40).collect::<String>()));
        }
        value
    }

    /// `mlx5_2` before `mlx5_10`; empty without such a directory.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let path = path.as_ref();
        match fs::read_dir(self.place(path)) {
            Ok(entries) => {
                let mut names: Vec<_> =
                    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
                natural::sort(&mut names);
                names
            }
            Err(error) => {
                self.failed(path, &error);
                Vec::new()
            }
        }
    }

    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.place(path.as_ref()).exists()
    }

    /// Final target of a symbolic link, below the root or not.
    pub fn target(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        fs::canonicalize(self.place(path.as_ref())).ok()
    }

    /// Unreadable paths without the root, with reasons.
    pub fn unreadable(self) -> BTreeMap<String, String> {
        self.unreadable.into_inner()
    }

    /// Notes why a file could not be read, unless it is missing or has no value.
    pub fn failed(&self, path: &Path, error: &io::Error) {
        let absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        // Drivers' answers for no value, such as the speed of a port that is down.
        let no_value = [libc::EINVAL, libc::EOPNOTSUPP, libc::ENODEV, libc::ENODATA];
        if !absent && !error.raw_os_error().is_some_and(|code| no_value.contains(&code)) {
            self.note(path, &error.to_string());
        }
    }

    pub fn note(&self, what: impl AsRef<Path>, why: &str) {
        self.unreadable.borrow_mut().insert(what.as_ref().display().to_string(), why.to_owned());
    }
}

/// Limit of a list: more than Linux has processors.
const MOST: u32 = 1 << 16;

/// The kernel's list of processors or nodes, such as `0-3,8,10-11`. `None` for another text.
pub(crate) fn list(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(list("0"), Some(vec![0]));
        for bad in ["", "3-1", "x", "0-4294967295", "1,,2"] {
            assert_eq!(list(bad), None, "{bad}");
        }
    }

    #[test]
    fn absent_is_silent_and_wrong_is_noted() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("mtu"), "many\n").unwrap();
        let tree = Tree::new(root.path());
        assert_eq!(tree.text("nowhere"), None);
        assert_eq!(tree.value::<u32>("mtu"), None);
        assert_eq!(tree.expected("etc/os-release"), None);
        let unreadable = tree.unreadable();
        assert_eq!(unreadable.len(), 2, "{unreadable:?}");
        assert_eq!(unreadable["mtu"], "holds \"many\"");
    }
}
