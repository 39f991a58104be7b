//! Reading sysfs and procfs below a root directory, so that a tree written for a test is read like a host.

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

/// Longest file that is read to its end, in bytes; what is longer is cut there.
const LONGEST: u64 = 1 << 20;

/// Paths that were looked at, as they were asked for.
pub(crate) type Seen = Arc<Mutex<BTreeSet<PathBuf>>>;

/// The environment variable that names another root than `/`, as tests of whole hosts do (docs/dev/agent.md).
pub(crate) const ROOT: &str = "RAILGAUGE_ROOT";

/// The root of this host's tree: see [`Tree::host`].
pub(crate) fn root() -> PathBuf {
    std::env::var_os(ROOT).filter(|root| !root.is_empty()).map_or_else(|| "/".into(), PathBuf::from)
}

/// A root directory, and what could not be read below it.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    unreadable: RefCell<BTreeMap<String, String>>,
    seen: Option<Seen>,
}

impl Tree {
    /// The tree below `root`; `/` is this host.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), unreadable: RefCell::default(), seen: None }
    }

    /// The same tree, with a list of every path that is looked at from now on.
    pub(crate) fn recording(root: impl Into<PathBuf>) -> (Self, Seen) {
        let seen = Seen::default();
        (Self { seen: Some(Arc::clone(&seen)), ..Self::new(root) }, seen)
    }

    /// The place of a path, which is noted where that is asked for.
    fn place(&self, path: &Path) -> PathBuf {
        if let Some(seen) = &self.seen {
            seen.lock().insert(path.to_owned());
        }
        self.root.join(path)
    }

    /// This host's tree: `/`, or the directory that the environment variable [`ROOT`] names in its place.
    pub(crate) fn host() -> Self {
        Self::new(root())
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether it is the tree of the host that this process runs on, whose kernel answers for what is in it.
    pub(crate) fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The text of a file, without white space around it. `None` if there is no such file, or the kernel has no value
    /// for it, or it must not be read; the last is noted.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(path)?).trim().to_owned())
    }

    /// The bytes of a file, as [`text`](Self::text).
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let path = path.as_ref();
        let mut bytes = Vec::new();
        match self.open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes)) {
            Ok(_) => Some(bytes),
            Err(error) => {
                self.failed(path, &error);
                None
            }
        }
    }

    /// Opens a file to read it as far as it goes: reading never waits for more.
    pub fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        File::options().read(true).custom_flags(libc::O_NONBLOCK).open(self.place(path.as_ref()))
    }

    /// As [`text`](Self::text), for a file that every host has: its absence is noted too.
    pub fn expected(&self, path: impl AsRef<Path>) -> Option<String> {
        let path = path.as_ref();
        if !self.has(path) {
            self.note(path, "not there");
        }
        self.text(path)
    }

    /// A file that holds one value. What is not of its type is noted.
    pub fn value<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        let text = self.text(&path)?;
        let value = text.parse().ok();
        if value.is_none() {
            self.note(path.as_ref(), &format!("holds {:?}", text.chars().take(40).collect::<String>()));
        }
        value
    }

    /// Names in a directory, `mlx5_2` before `mlx5_10`; none if there is no such directory.
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

    /// Whether there is something at `path`.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.place(path.as_ref()).exists()
    }

    /// Where a symbolic link leads in the end; below the root or not.
    pub fn target(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        fs::canonicalize(self.place(path.as_ref())).ok()
    }

    /// Takes what could not be read: path without the root → why.
    pub fn unreadable(self) -> BTreeMap<String, String> {
        self.unreadable.into_inner()
    }

    /// Notes why a file could not be read, unless it is not there or has no value.
    pub fn failed(&self, path: &Path, error: &io::Error) {
        let absent = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        // What drivers answer where they have no value, such as the speed of a port that is down.
        let no_value = [libc::EINVAL, libc::EOPNOTSUPP, libc::ENODEV, libc::ENODATA];
        if !absent && !error.raw_os_error().is_some_and(|code| no_value.contains(&code)) {
            self.note(path, &error.to_string());
        }
    }

    /// Notes that something could not be read, and why.
    pub fn note(&self, what: impl AsRef<Path>, why: &str) {
        self.unreadable.borrow_mut().insert(what.as_ref().display().to_string(), why.to_owned());
    }
}

/// Most numbers a list is read to: more than Linux has processors.
const MOST: u32 = 1 << 16;

/// Numbers in a list such as `0-3,8,10-11`, as the kernel writes processors and nodes. `None` if the text is not such a list.
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
