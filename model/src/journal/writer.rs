//! The append-only record of a run: one [`line`](super::line) per event, written before anything is shown.
//!
//! Opening has two steps. [`Claim`] locks the file against other writers and changes nothing; its content is then read and judged. Only
//! [`Claim::go_on`] changes it.
//!
//! A reserve file is allocated next to the journal. When the disk is full, its space is freed so that running measurements still get their
//! lines; then the run ends. A line is written completely or not at all.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Seek, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use railgauge_wire::Bytes;

use super::{
    event::{Event, Line, LinkRecord},
    line::{self, Tail},
    links::Links,
};
use crate::files;

/// Space kept for the last lines. A line with a latency distribution takes about 4 KiB: enough for two thousand flows that end at once.
const RESERVE: Bytes = Bytes::from_mib(8);

#[derive(Debug)]
pub struct Claim {
    file: File,
}

impl Claim {
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::locked(files::open_with(path, OpenOptions::new().create(true).read(true).append(true))?)
    }

    pub fn open(path: &Path) -> io::Result<Self> {
        Self::locked(files::open_with(path, OpenOptions::new().read(true).append(true))?)
    }

    fn locked(file: File) -> io::Result<Self> {
        // File systems without locks (some parallel ones) return another error, and are used regardless.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let cause = "another railgauge is writing to it: wait for that run, or end it";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, cause));
        }
        Ok(Self { file })
    }

    /// Whether it has more than a torn first line. A file system that crashed may leave zeros, and empty lines are no lines either.
    pub fn is_written(&self) -> io::Result<bool> {
        let mut from = BufReader::new(&self.file);
        from.rewind()?;
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line)? > 0 {
            if line.iter().any(|byte| !matches!(byte, 0 | b'\n' | b'\r')) {
                return Ok(!line::is_torn_start(&line));
            }
            line.clear();
        }
        Ok(false)
    }

    /// Opens the journal for appending after `tail` and allocates its reserve. The reserve comes first: without space nothing is changed.
    pub fn go_on(self, tail: Tail, reserve: &Path) -> io::Result<Journal> {
        files::must_have_one_name(&self.file)?;
        // Written, not only sized: a sparse file would reserve nothing.
        let allocated = files::write(reserve, vec![0x55; RESERVE.as_usize()]).map_err(|error| {
            let room = RESERVE / Bytes::from_mib(1);
            let cause = format!("{error}; a run starts only with {room} MiB to spare next to its journal");
            io::Error::new(error.kind(), cause)
        });
        let begun = allocated.and_then(|()| {
            let mut file = self.file;
            file.set_len(tail.length.0)?;
            let mut length = tail.length;
            if tail.unended {
                file.write_all(b"\n")?;
                length += Bytes(1);
            }
            Ok(Journal {
                file,
                run: tail.run,
                length,
                next: tail.next,
                links: Links::default(),
                reserve: reserve.to_owned(),
                full: false,
            })
        });
        if begun.is_err() {
            let _ = fs::remove_file(reserve);
        }
        begun
    }
}

#[derive(Debug)]
pub struct Journal {
    file: File,
    run: String,
    length: Bytes,
    next: u64,
    links: Links,
    reserve: PathBuf,
    full: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    fn of(file: &fs::Metadata) -> Self {
        Self { device: file.dev(), number: file.ino() }
    }

    pub fn is_at(self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|file| Self::of(&file) == self)
    }
}

/// The disk is full. The line was still written, into the reserved space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl Journal {
    pub fn identity(&self) -> io::Result<Identity> {
        Ok(Identity::of(&self.file.metadata()?))
    }

    /// Appends one line, and before an outcome the line of its link if needed. `Ok(Some(Full))`: the line is safe but the run should end.
    ///
    /// # Errors
    /// The line did not fit even into the reserved space; the journal still ends with a complete line.
    pub fn append(&mut self, line: &Line) -> io::Result<Option<Full>> {
        match &line.event {
            Event::Outcome(outcome) => {
                let mut outcome = outcome.clone();
                let link = outcome.link.take();
                outcome.link_line = link.map(|link| self.link_line(&line.at, link)).transpose()?;
                self.put(&line.at, &Event::Outcome(outcome))?;
            }
            event => self.put(&line.at, event)?,
        }
        Ok(self.full.then_some(Full))
    }

    fn link_line(&mut self, at: &str, link: LinkRecord) -> io::Result<u64> {
        let key = Links::key(&link)?;
        if let Some(told) = self.links.line(&key) {
            return Ok(told);
        }
        let told = self.next;
        self.put(at, &Event::Link(Box::new(link)))?;
        self.links.told(key, told);
        Ok(told)
    }

    fn put(&mut self, at: &str, event: &Event) -> io::Result<()> {
        let bytes = line::encode(&self.run, self.next, at, event)?;
        if let Err(error) = self.write(&bytes) {
            if error.kind() != io::ErrorKind::StorageFull && error.kind() != io::ErrorKind::QuotaExceeded {
                return Err(error);
            }
            if self.full {
                return Err(error);
            }
            fs::remove_file(&self.reserve)?;
            self.full = true;
            self.write(&bytes)?;
        }
        self.next += 1;
        Ok(())
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.length += Bytes::of(bytes.len());
                Ok(())
            }
            Err(error) => {
                self.file.set_len(self.length.0)?;
                Err(error)
            }
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Only this process uses the reserve; if it is missing there is nothing to do.
        let _ = fs::remove_file(&self.reserve);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use railgauge_wire::{Carrier, GpuPath, LinkLayer};

    use super::*;
    use crate::journal::event::{Outcome, Sample};

    fn line() -> Line {
        Line { at: "2026-11-21T00:00:00.000Z".into(), event: Event::Finished }
    }

    #[test]
    fn a_claim_changes_nothing_and_going_on_cuts_what_was_torn() {
        let place = tempfile::tempdir().unwrap();
        let (path, reserve) = (place.path().join("records.jsonl"), place.path().join(".reserve"));
        let mut journal = Claim::create(&path).unwrap().go_on(Tail::before("r".into()), &reserve).unwrap();
        assert_eq!(journal.append(&line()).unwrap(), None);
        drop(journal);
        let whole = fs::read_to_string(&path).unwrap();
        let torn = format!("{whole}{{\"v\":6,\"n\":2,\"at\":\"2");
        fs::write(&path, &torn).unwrap();
        let claim = Claim::open(&path).unwrap();
        assert!(claim.is_written().unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), torn);
        let tail = Tail { run: "r".into(), length: Bytes::of(whole.len()), unended: false, next: 2 };
        let mut journal = claim.go_on(tail, &reserve).unwrap();
        journal.append(&line()).unwrap();
        drop(journal);
        let second = String::from_utf8(line::encode("r", 2, &line().at, &Event::Finished).unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), whole + &second);
        assert!(!reserve.exists());
    }

    /// As in backups by `cp -al` or rsync's `--link-dest`.
    #[test]
    fn nothing_is_appended_to_a_journal_with_two_names() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("records.jsonl"), "mine").unwrap();
        fs::hard_link(at("records.jsonl"), at("backup")).unwrap();
        let go_on = || Claim::open(&at("records.jsonl")).unwrap().go_on(Tail::before("r".into()), &at("reserve"));
        assert_eq!(go_on().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(fs::read_to_string(at("backup")).unwrap(), "mine");
        fs::remove_file(at("backup")).unwrap();
        assert!(go_on().is_ok());
    }

    #[test]
    fn a_file_of_zeros_or_of_empty_lines_is_not_written() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("records.jsonl");
        let first = line::encode("r", 1, &line().at, &Event::Finished).unwrap();
        for (bytes, written) in [
            (vec![0; 8192], false),
            (b"\n\n\r\n".to_vec(), false),
            ([&[0; 100], &b"\n"[..]].concat(), false),
            (first[..30].to_vec(), false),
            (first.clone(), true),
            // Its first lines are lost, and there are others.
            ([&[0; 100], &b"\n"[..], &first].concat(), true),
        ] {
            fs::write(&path, &bytes).unwrap();
            assert_eq!(Claim::open(&path).unwrap().is_written().unwrap(), written, "{bytes:?}");
        }
    }

    #[test]
    fn a_last_line_without_its_newline_gets_it() {
        let place = tempfile::tempdir().unwrap();
        let (path, reserve) = (place.path().join("records.jsonl"), place.path().join(".reserve"));
        let first = line::encode("r", 1, "x", &Event::Finished).unwrap();
        let cut = &first[..first.len() - 1];
        fs::write(&path, cut).unwrap();
        let tail = Tail { run: "r".into(), length: Bytes::of(cut.len()), unended: true, next: 2 };
        drop(Claim::open(&path).unwrap().go_on(tail, &reserve).unwrap());
        assert_eq!(fs::read(&path).unwrap(), first);
    }

    #[test]
    fn a_journal_has_one_writer() {
        let place = tempfile::tempdir().unwrap();
        let (path, reserve) = (place.path().join("records.jsonl"), place.path().join(".reserve"));
        let first = Claim::create(&path).unwrap().go_on(Tail::before("r".into()), &reserve).unwrap();
        assert!(Claim::open(&path).is_err());
        let refused = Claim::create(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
        assert!(reserve.exists(), "the reserve of the writer is taken away");
        drop(first);
        Claim::open(&path).unwrap();
    }

    #[test]
    fn a_link_stands_in_the_journal_of_a_process_once() {
        let place = tempfile::tempdir().unwrap();
        let (path, reserve) = (place.path().join("records.jsonl"), place.path().join(".reserve"));
        let outcome = |case, link: &LinkRecord| Line {
            at: "2026-11-21T00:00:00.000Z".into(),
            event: Event::Outcome(Box::new(Outcome {
                case,
                repeat: 0,
                started_at: "2026-11-21T00:00:00.000Z".into(),
                link: Some(link.clone()),
                link_line: None,
                result: Ok(Sample::default()),
            })),
        };
        let link = |mtu| LinkRecord { mtu, ..made() };
        let mut length = 0;
        for next in [1, 6] {
            let tail = Tail { run: "r".into(), length: Bytes(length), unended: false, next };
            let mut journal = Claim::create(&path).unwrap().go_on(tail, &reserve).unwrap();
            for (case, mtu) in [(0, 1024), (1, 4096), (2, 1024)] {
                journal.append(&outcome(case, &link(mtu))).unwrap();
            }
            drop(journal);
            length = fs::metadata(&path).unwrap().len();
        }
        let text = fs::read_to_string(&path).unwrap();
        let told: Vec<(u64, Option<u32>, Option<u64>)> = text
            .lines()
            .map(|text| {
                let read = line::decode(text.as_bytes(), Some("r")).unwrap();
                match read.line.event {
                    Event::Link(link) => (read.n, Some(link.mtu), None),
                    Event::Outcome(outcome) if outcome.link.is_none() => (read.n, None, outcome.link_line),
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        let of = |first: u64| {
            [(0, Some(1024), None), (1, None, Some(0)), (2, Some(4096), None), (3, None, Some(2)), (4, None, Some(0))]
                .map(|(n, mtu, told): (u64, Option<u32>, Option<u64>)| (first + n, mtu, told.map(|told| first + told)))
        };
        assert_eq!(told, [of(1), of(6)].concat());
    }

    fn made() -> LinkRecord {
        LinkRecord {
            transport: Carrier::VerbsRc,
            link_layer: LinkLayer::RoceV2,
            gpu_path: GpuPath::None,
            software: false,
            from_device: "mlx5_0".into(),
            to_device: "mlx5_1".into(),
            rate_gbps: None,
            mtu: 4096,
            write_order: None,
            settings: BTreeMap::new(),
        }
    }

    #[test]
    fn a_link_in_the_place_of_the_reserve_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("victim"), "mine").unwrap();
        std::os::unix::fs::symlink(at("victim"), at(".reserve")).unwrap();
        let journal =
            Claim::create(&at("records.jsonl")).unwrap().go_on(Tail::before("r".into()), &at(".reserve")).unwrap();
        assert_eq!(fs::symlink_metadata(at(".reserve")).unwrap().len(), RESERVE.0);
        drop(journal);
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "mine");
        std::os::unix::fs::symlink(at("victim"), at("link.jsonl")).unwrap();
        assert!(Claim::create(&at("link.jsonl")).is_err() && Claim::open(&at("link.jsonl")).is_err());
    }

    #[test]
    fn without_room_for_the_reserve_nothing_is_changed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("records.jsonl");
        fs::write(&path, "torn").unwrap();
        let claim = Claim::open(&path).unwrap();
        let reserve = place.path().join(".reserve");
        fs::create_dir(&reserve).unwrap();
        assert!(claim.go_on(Tail::before("r".into()), &reserve).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "torn");
    }
}
