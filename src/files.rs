//! Files that are there as a whole or not at all.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// Beginning and end of the name of a temporary file.
const PREFIX: &str = ".railgauge-";
const SUFFIX: &str = ".new";

/// Lets `write` fill a temporary file beside `path` and puts it in its place; what was there stays if that fails. The name of
/// the temporary file is nobody else's, so that several processes may do so at once and no link lies in its place. File and
/// name are safe against a power cut when this returns.
///
/// # Errors
/// Those of `write`, and those of the file system, as `failed` makes them.
pub fn replace<E>(
    path: &Path,
    write: impl FnOnce(&File) -> Result<(), E>,
    failed: impl Fn(io::Error) -> E,
) -> Result<(), E> {
    // What is no regular file, as /dev/null or a pipe, is written to and not replaced.
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return write(&OpenOptions::new().write(true).open(path).map_err(failed)?);
    }
    // A path without a directory lies in the current one.
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = tempfile::Builder::new()
        .prefix(PREFIX)
        .suffix(SUFFIX)
        // As for any file that is made, the umask decides.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
        .map_err(&failed)?;
    write(temporary.as_file())?;
    temporary.as_file().sync_all().map_err(&failed)?;
    temporary.persist(path).map_err(|error| failed(error.error))?;
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
}

/// Whether a file has the name of one that [`replace`] had not finished when its process was killed.
pub fn is_temporary(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

/// [`replace`] with these bytes.
///
/// # Errors
/// Those of the file system.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    replace(path, |mut file| file.write_all(content.as_ref()), |error| error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
    fn a_link_in_its_place_is_replaced_and_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (path, target) = (place.path().join("report.html"), place.path().join("other"));
        fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        write(&path, "page").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn what_is_no_file_is_written_to_and_stays() {
        use std::os::unix::fs::FileTypeExt;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let read = std::thread::spawn({
            let path = path.clone();
            move || fs::read_to_string(path).unwrap()
        });
        write(&path, "page").unwrap();
        assert_eq!(read.join().unwrap(), "page");
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
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
