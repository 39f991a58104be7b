//! Reads what a journal has gained since it was read last.

use std::{
    fs::File,
    io::{self, Read},
    path::PathBuf,
};

use railgauge_model::files;

use crate::analysis::underway::Underway;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 18;

/// A journal that somebody else is writing.
pub(super) struct Follower {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of a line whose end is not written yet.
    begun: Vec<u8>,
    /// The run, as far as it was read.
    pub(super) run: Underway,
}

impl Follower {
    pub(super) fn of(path: PathBuf) -> Self {
        Self { path, file: None, begun: Vec::new(), run: Underway::default() }
    }

    /// Reads up to the end of the last whole line.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub(super) fn catch_up(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(files::open(&self.path)?),
        };
        let mut chunk = vec![0; CHUNK];
        loop {
            let got = match file.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                got => got?,
            };
            if got == 0 {
                return Ok(());
            }
            let mut rest = &chunk[..got];
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                self.begun.extend_from_slice(&rest[..=end]);
                self.run.line(&self.begun);
                self.begun.clear();
                rest = &rest[end + 1..];
            }
            self.begun.extend_from_slice(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use railgauge_model::journal::{event::Event, line};

    use super::*;
    use crate::analysis::underway::Doing;

    #[test]
    fn a_line_counts_once_it_is_whole_and_damage_is_counted() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("records.jsonl");
        let mut follower = Follower::of(path.clone());
        assert!(follower.catch_up().is_err());
        let mut file = File::create(&path).unwrap();
        let note =
            line::encode("r", 1, "2026-11-22T03:00:00.000Z", &Event::Note { host: "a".into(), text: "t".into() });
        let end = line::encode("r", 2, "2026-11-22T03:00:01.000Z", &Event::Finished).unwrap();
        file.write_all(&note.unwrap()).unwrap();
        file.write_all(&end[..20]).unwrap();
        follower.catch_up().unwrap();
        assert_eq!((follower.run.doing(), follower.run.unread), (Doing::Preparing, 0));
        file.write_all(&end[20..]).unwrap();
        file.write_all(b"{\"v\":4,\"n\":3}\n").unwrap();
        follower.catch_up().unwrap();
        assert_eq!((follower.run.doing(), follower.run.unread), (Doing::Finished, 1));
    }
}
