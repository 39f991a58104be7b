//! Agents' reports that are not in the journal yet.
//!
//! A record of a soak's watch covers up to five minutes, which keeps the journals of days small. A killed controller would lose them, so
//! unrecorded reports are in a file next to the journal, replaced every few seconds, with at most one line per host. `--resume` moves it
//! into the journal; a run that ends by itself removes it.

use std::{fs, io, path::Path};

use super::{
    event::Line,
    line::{self, LineError},
};
use crate::files;

pub fn write(path: &Path, run: &str, lines: &[Line]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for (line, number) in lines.iter().zip(1..) {
        bytes.extend(line::encode(run, number, &line.at, &line.event)?);
    }
    files::write(path, bytes)
}

/// Reads the lines of this run, and what is wrong with each of the others. A missing file has none.
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
        assert_eq!(read(&path, "other").unwrap().1.len(), 2);
        let damaged = fs::read_to_string(&path).unwrap().replace("two", "tvo");
        fs::write(&path, damaged).unwrap();
        let (lines, wrong) = read(&path, "r").unwrap();
        assert_eq!((lines, wrong.len()), (vec![note("one")], 1));
        remove(&path).unwrap();
        remove(&path).unwrap();
    }
}
