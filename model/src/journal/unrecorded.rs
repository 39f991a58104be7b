//! What agents told and the journal does not have yet.
//!
//! A record of a soak's watch covers up to five minutes, so that the journals of days stay small. A controller that is killed would lose
//! them. So what is not recorded yet stands in a file beside the journal, which is replaced every few seconds and has one line for each
//! host at most. `--resume` puts it into the journal; a run that ends by itself has recorded everything and takes the file away.

use std::{fs, io, path::Path};

use super::{
    event::Line,
    line::{self, LineError},
};
use crate::files;

/// Replaces the file. `run` is what the lines of the journal call the run.
///
/// # Errors
/// Errors of the file system.
pub fn write(path: &Path, run: &str, lines: &[Line]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for (line, number) in lines.iter().zip(1..) {
        bytes.extend(line::encode(run, number, &line.at, &line.event)?);
    }
    files::write(path, bytes)
}

/// Reads the lines of this run, and what is wrong with each of the others. A file that is not there has none.
///
/// # Errors
/// Errors of the file system.
pub fn read(path: &Path, run: &str) -> io::Result<(Vec<Line>, Vec<LineError>)> {
    let bytes = match files::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
        bytes => bytes?,
    };
    let (mut lines, mut wrong) = (Vec::new(), Vec::new());
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match line::decode(line, Some(run)) {
            Ok(read) => lines.push(read.line),
            Err(error) => wrong.push(error),
        }
    }
    Ok((lines, wrong))
}

/// Takes the file away, if there is one.
///
/// # Errors
/// Errors of the file system.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::event::Event;

    #[test]
    fn what_was_written_is_read_and_damage_is_told() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(".watched");
        assert!(read(&path, "r").unwrap().0.is_empty());
        let note = |text: &str| Line {
            at: "2026-11-22T03:00:00.000Z".into(),
            event: Event::Note { host: "a".into(), text: text.into() },
        };
        write(&path, "r", &[note("one"), note("two")]).unwrap();
        let (lines, wrong) = read(&path, "r").unwrap();
        assert_eq!((lines, wrong.len()), (vec![note("one"), note("two")], 0));
        // Those of another run in the same place are none of this one.
        assert_eq!(read(&path, "other").unwrap().1.len(), 2);
        let damaged = fs::read_to_string(&path).unwrap().replace("two", "tvo");
        fs::write(&path, damaged).unwrap();
        let (lines, wrong) = read(&path, "r").unwrap();
        assert_eq!((lines, wrong.len()), (vec![note("one")], 1));
        remove(&path).unwrap();
        remove(&path).unwrap();
    }
}
