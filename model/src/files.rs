//! Opening and replacing files in and next to run directories.
//!
//! Others may be able to write to the directory of such a file. So only regular files are opened: links are not followed, pipes and devices
//! are refused. Writes go to a temporary file with an unpredictable name that is then renamed: the file is complete or absent, and a link
//! in its place is replaced.

use std::{
    ffi::OsStr,
    fs::{self, File, FileType, OpenOptions, Permissions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use crate::border::text::path_text;

const PREFIX: &str = ".railgauge-";
const SUFFIX: &str = ".new";

/// Makes a directory and its parents, not writable by others whatever the umask.
pub fn make_directories(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o775).create(path)
}

/// Mode of new files. The umask decides whether others can read and the group can write. Others can never write: they could change
/// measurements.
const MODE: u32 = 0o664;
const PRIVATE: u32 = 0o600;

pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

pub fn open_with(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    let only_a_file = |kind: FileType| match kind.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} lies in its place, and it has to be a regular file: take that away", noun(kind)),
        )),
    };
    // The first check gives the clearer message, and opening a device may have side effects. The second check is authoritative.
    if let Ok(found) = path.symlink_metadata() {
        only_a_file(found.file_type())?;
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = how.custom_flags(flags).mode(MODE).open(path)?;
    only_a_file(file.metadata()?.file_type())?;
    Ok(file)
}

/// `Err` for a file with further names (hard links): what is appended to it would be in all of them.
pub fn must_have_one_name(file: &File) -> io::Result<()> {
    match file.metadata()?.nlink() {
        0 | 1 => Ok(()),
        names => {
            let cause = format!("it has {names} names (hard links), which would all change: put a copy in its place");
            Err(io::Error::new(io::ErrorKind::InvalidInput, cause))
        }
    }
}

pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn noun(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a named pipe",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

/// Lets `write` fill a temporary file next to `path`, then renames it to `path`. On failure the old file stays. The temporary name is
/// unique, so several processes may do this at once. File and name survive a power failure after this returns.
///
/// # Errors
/// Those of `write`, and those of the file system as mapped by `failed`.
pub fn replace<E>(
    path: &Path,
    write: impl FnOnce(&File) -> Result<(), E>,
    failed: impl Fn(io::Error) -> E,
) -> Result<(), E> {
    prepare(path, write, &failed)?.place().map_err(failed)
}

/// The first half of [`replace`]: fills the temporary file, which is removed unless it is placed.
pub fn prepare<E>(
    path: &Path,
    write: impl FnOnce(&File) -> Result<(), E>,
    failed: impl Fn(io::Error) -> E,
) -> Result<Prepared, E> {
    prepare_with_mode(path, MODE, true, write, failed)
}

#[derive(Debug)]
#[must_use = "a file that is not placed is taken away"]
pub struct Prepared {
    temporary: NamedTempFile,
    path: PathBuf,
    replaces: bool,
}

impl Prepared {
    pub fn place(self) -> io::Result<()> {
        let Self { temporary, path, replaces } = self;
        if replaces { temporary.persist(&path) } else { temporary.persist_noclobber(&path) }?;
        let directory = directory_of(&path);
        File::open(directory).and_then(|directory| directory.sync_all())
    }
}

pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Describes the error without the random name of the temporary file.
fn in_words(directory: &Path, error: &io::Error) -> io::Error {
    let directory = path_text(directory);
    let why = match error.kind() {
        io::ErrorKind::NotFound => format!("the directory {directory} is not there; make it first"),
        io::ErrorKind::PermissionDenied => format!("this user may make no file in the directory {directory}"),
        _ => return io::Error::new(error.kind(), error.to_string()),
    };
    io::Error::new(error.kind(), why)
}

/// [`prepare`] with this mode minus the umask, set before the content is written. An existing file is replaced only if `replaces`.
fn prepare_with_mode<E>(
    path: &Path,
    mode: u32,
    replaces: bool,
    write: impl FnOnce(&File) -> Result<(), E>,
    failed: impl Fn(io::Error) -> E,
) -> Result<Prepared, E> {
    // What killed processes left here. Not what is new: another process may not have its lock yet.
    let _ = sweep(directory_of(path), Duration::from_secs(60));
    let temporary = tempfile::Builder::new()
        .prefix(PREFIX)
        .suffix(SUFFIX)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(directory_of(path))
        .map_err(|error| failed(in_words(directory_of(path), &error)))?;
    // The lock marks the file as in use. File systems without locks return an error; there it may be swept.
    let _ = temporary.as_file().try_lock();
    write(temporary.as_file())?;
    temporary.as_file().sync_all().map_err(&failed)?;
    Ok(Prepared { temporary, path: path.to_owned(), replaces })
}

pub fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

/// Removes temporary files of this age left by killed processes. Files that a living process fills stay.
pub fn sweep(directory: &Path, age: Duration) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let written = || entry.metadata().and_then(|about| about.modified());
        let is_old = || written().is_ok_and(|then| then.elapsed().unwrap_or_default() >= age);
        if !is_temporary(&entry.file_name()) || !is_old() {
            continue;
        }
        let in_use = |file: File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if open(&path).is_ok_and(in_use) {
            continue;
        }
        remove(&path)?;
    }
    Ok(())
}

/// Removes a file if it is there.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    replace(path, |mut file| file.write_all(content.as_ref()), |error| error)
}

/// [`write()`] for a file that only its owner may ever read. Fails with [`io::ErrorKind::AlreadyExists`] if the file exists.
pub fn write_private_new(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    prepare_with_mode(path, PRIVATE, false, |mut file| file.write_all(content.as_ref()), |error| error)?.place()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_may_write_the_same_file_at_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("report.html");
        std::thread::scope(|scope| {
            for writer in 0..16_u8 {
                let path = &path;
                scope.spawn(move || (0..20).for_each(|_| write(path, vec![writer; 10_000]).unwrap()));
            }
        });
        let content = fs::read(&path).unwrap();
        assert!(content.len() == 10_000 && content.iter().all(|byte| *byte == content[0]));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "a temporary file is left");
    }

    #[test]
    fn what_is_prepared_is_in_its_place_only_when_it_is_placed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("records.parquet");
        write(&path, "old").unwrap();
        let prepared = || prepare(&path, |mut file| file.write_all(b"new"), |error| error).unwrap();
        drop(prepared());
        assert_eq!((fs::read(&path).unwrap(), fs::read_dir(place.path()).unwrap().count()), (b"old".to_vec(), 1));
        prepared().place().unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read_dir(place.path()).unwrap().count()), (b"new".to_vec(), 1));
    }

    #[test]
    fn a_private_file_is_private_before_it_has_content() {
        let place = tempfile::tempdir().unwrap();
        let mode = |file: &File| file.metadata().unwrap().permissions().mode() & 0o777;
        let path = place.path().join("names.tsv");
        let checked = |mut file: &File| {
            assert_eq!(mode(file), 0o600);
            file.write_all(b"x")
        };
        prepare_with_mode(&path, PRIVATE, true, checked, |error| error).unwrap().place().unwrap();
        fs::remove_file(&path).unwrap();
        write_private_new(&path, "y").unwrap();
        assert_eq!((mode(&File::open(&path).unwrap()), fs::read(&path).unwrap()), (0o600, b"y".to_vec()));
        assert_eq!(write_private_new(&path, "z").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"y");
    }

    #[test]
    fn a_link_in_its_place_is_replaced_and_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (path, target) = (place.path().join("report.html"), place.path().join("other"));
        fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        write(&path, "page").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }

    fn pipe(path: &Path) {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("file"), "mine").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("gone"), at("dangling")).unwrap();
        pipe(&at("pipe"));
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert_eq!(read(&at("file")).unwrap(), b"mine");
        assert_eq!(open(&at("gone")).unwrap_err().kind(), io::ErrorKind::NotFound);
        let append = |path: &Path| open_with(path, OpenOptions::new().create(true).append(true));
        let others =
            [at("link"), at("dangling"), at("pipe"), at("socket"), place.path().to_owned(), "/dev/null".into()];
        for (path, noun) in others.iter().zip(["link", "link", "pipe", "socket", "directory", "device"]) {
            for opened in [open(path), append(path)] {
                let error = opened.unwrap_err().to_string();
                assert!(error.contains(noun), "{path:?}: {error}");
            }
        }
        assert!(!at("gone").exists());
        append(&at("new")).unwrap();
    }

    #[test]
    fn writing_sweeps_what_killed_processes_left_here_long_ago() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in [".railgauge-abcdef.new", ".railgauge-bcdefg.new"] {
            fs::write(at(name), "half").unwrap();
        }
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
        File::open(at(".railgauge-abcdef.new")).unwrap().set_modified(long_ago).unwrap();
        write(&at("report.html"), "page").unwrap();
        assert_eq!([".railgauge-abcdef.new", ".railgauge-bcdefg.new"].map(|name| at(name).exists()), [false, true]);
    }

    #[test]
    fn a_pipe_in_its_place_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("report.html");
        pipe(&path);
        write(&path, "page").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "page");
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_is_being_written_stays() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at(".railgauge-abcdef.new"), "half").unwrap();
        pipe(&at(".railgauge-bcdefg.new"));
        fs::write(at("notes.new"), "mine").unwrap();
        let sweeping = |mut file: &File| {
            sweep(place.path(), Duration::ZERO)?;
            file.write_all(b"page")
        };
        replace(&at("report.html"), sweeping, |error| error).unwrap();
        let mut names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["notes.new", "report.html"]);
    }

    #[test]
    fn what_was_there_stays_if_writing_fails() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("verdicts.json");
        fs::write(&path, "old").unwrap();
        let half = |mut file: &File| file.write_all(b"half").and_then(|()| Err(io::Error::other("no")));
        let failed = replace(&path, half, |error| error);
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "a temporary file is left");
    }
}
