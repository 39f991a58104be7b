//! The append-only record of a run: one line of JSON per event, written before anything is shown.
//!
//! A reserve file is allocated beside the journal. When the disk fills up, its room is given back so that what is being
//! measured at that moment still gets its line; then the run ends. A line is written whole or not at all.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::event::Line;

/// Room kept for the last lines, in bytes. A line with a latency distribution takes about 4 KiB, so this is enough
/// for two thousand flows that end at once.
const RESERVE: usize = 8 << 20;

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// Length of the complete lines.
    length: u64,
    reserve: PathBuf,
    full: bool,
}

/// The disk is full. The line was still written, into the reserved room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl Journal {
    /// Opens a journal for appending and allocates its reserve. A torn last line, left by a crash, is cut off. Until it is
    /// dropped nobody else can open it.
    ///
    /// # Errors
    /// The file cannot be opened, another process writes to it, or there is no room for the reserve.
    pub fn open(path: &Path, reserve: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        // File systems without locks (some parallel ones) answer with another error, and are used all the same.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let cause = "another railgauge is writing to it: wait for that run, or end it";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, cause));
        }
        let length = complete(&mut file)?;
        file.set_len(length)?;
        // Written, not only sized: a sparse file would reserve nothing.
        let mut room = File::create(reserve)?;
        let allocated = room.write_all(&vec![0x55; RESERVE]).and_then(|()| room.sync_all());
        if let Err(error) = allocated {
            let _ = fs::remove_file(reserve);
            return Err(error);
        }
        Ok(Self { file, length, reserve: reserve.to_owned(), full: false })
    }

    /// Appends one line. `Ok(Some(Full))` means that the line is safe but the run should end.
    ///
    /// # Errors
    /// The line could not be written even into the reserved room; the journal still ends with a whole line.
    pub fn append(&mut self, line: &Line) -> io::Result<Option<Full>> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        if let Err(error) = self.put(&bytes) {
            if error.kind() != io::ErrorKind::StorageFull && error.kind() != io::ErrorKind::QuotaExceeded {
                return Err(error);
            }
            fs::remove_file(&self.reserve)?;
            self.full = true;
            self.put(&bytes)?;
        }
        Ok(self.full.then_some(Full))
    }

    /// Makes sure that a power cut loses nothing written so far.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.file.set_len(self.length)?;
                Err(error)
            }
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // The reserve is ours alone; where it is gone already there is nothing to do.
        let _ = fs::remove_file(&self.reserve);
    }
}

/// Length of the file up to and including its last newline.
fn complete(file: &mut File) -> io::Result<u64> {
    use std::io::Read;
    let mut end = file.metadata()?.len();
    let mut block = vec![0; 64 << 10];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::event::{Event, VERSION};

    fn line() -> Line {
        Line { v: VERSION, at: "2026-11-21T00:00:00.000Z".into(), event: Event::Finished }
    }

    #[test]
    fn a_torn_line_is_cut_and_whole_lines_stay() {
        let place = tempfile::tempdir().unwrap();
        let (path, reserve) = (place.path().join("records.jsonl"), place.path().join(".reserve"));
        let mut journal = Journal::open(&path, &reserve).unwrap();
        assert_eq!(journal.append(&line()).unwrap(), None);
        drop(journal);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"v\":1,\"at\":\"20")).unwrap();
        let mut journal = Journal::open(&path, &reserve).unwrap();
        journal.append(&line()).unwrap();
        drop(journal);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{whole}{whole}"));
        assert!(!reserve.exists());
    }

    #[test]
    fn a_journal_has_one_writer() {
        let place = tempfile::tempdir().unwrap();
        let (path, reserve) = (place.path().join("records.jsonl"), place.path().join(".reserve"));
        let first = Journal::open(&path, &reserve).unwrap();
        let refused = Journal::open(&path, &reserve).unwrap_err();
        assert!(refused.to_string().contains("another railgauge is writing"), "{refused}");
        assert!(reserve.exists(), "the reserve of the writer is taken away");
        drop(first);
        Journal::open(&path, &reserve).unwrap();
    }
}
