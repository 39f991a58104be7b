use std::{
    collections::HashMap,
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use railgauge_wire::remedy::Remedy;
use tokio::sync::watch;

use super::{
    clocks::since_1970,
    progress::{Course, Progress},
};
use railgauge_model::{directory::UNRECORDED, files};
use railgauge_model::{
    journal::{
        event::{Event, Line},
        writer::Journal,
    },
    schedule::Time,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    Interrupted,
    TimeOver,
    /// The allocation has ended, and all hosts with it; why, in words.
    Revoked(String),
    /// The results can no longer be stored; why, in words.
    Prevented(String),
    /// A resumed run would end in the same way: the soak cannot send what the plan wants. Why, in words, and what to do before running the
    /// plan again.
    Unfit(String, Remedy),
}

#[derive(Clone)]
pub struct Spine {
    inner: Arc<Mutex<Inner>>,
    halt: watch::Sender<Option<Halt>>,
    pub(super) begun: Instant,
}

struct Inner {
    record: Option<Record>,
    progress: Progress,
}

struct Record {
    journal: Option<Journal>,
    log: std::fs::File,
    unrecorded: PathBuf,
    logged: HashMap<String, u64>,
}

/// Most bytes that one host may write to `log.txt`: enough for NCCL's log of many cases, and little enough that a thousand hosts do not
/// fill a disk.
const LOG_OF_HOST: u64 = 4 << 20;

impl Record {
    /// Limited per host. A full disk loses log lines, never records.
    fn log(&mut self, host: &str, text: &str) {
        let taken = self.logged.entry(host.to_owned()).or_default();
        if *taken > LOG_OF_HOST {
            return;
        }
        let line = format!("{} {host}: {text}\n", now());
        *taken += line.len() as u64;
        let _ = self.log.write_all(line.as_bytes());
        if *taken > LOG_OF_HOST {
            let limit = LOG_OF_HOST >> 20;
            let _ = writeln!(self.log, "{} {host}: it has written {limit} MiB; further output is not kept", now());
        }
    }
}

impl Spine {
    pub fn new(journal: Journal, log: &Path, progress: Progress) -> std::io::Result<Self> {
        let unrecorded = log.with_file_name(UNRECORDED);
        let file = files::open_with(log, OpenOptions::new().create(true).append(true)).map_err(|cause| {
            let name = log.file_name().unwrap_or_default().to_string_lossy();
            std::io::Error::new(cause.kind(), format!("{name}: {cause}"))
        })?;
        let record = Record { journal: Some(journal), log: file, unrecorded, logged: HashMap::new() };
        Ok(Self::over(Inner { record: Some(record), progress }))
    }

    pub fn unrecorded(quiet: bool, verbose: bool) -> Self {
        Self::over(Inner { record: None, progress: Progress::new(quiet, verbose) })
    }

    fn over(inner: Inner) -> Self {
        Self { inner: Arc::new(Mutex::new(inner)), halt: watch::channel(None).0, begun: Instant::now() }
    }

    pub fn course(&self) -> Arc<Mutex<Course>> {
        self.inner.lock().progress.course()
    }

    pub fn emit(&self, event: Event) {
        self.record(event);
    }

    /// Records and shows one event. False if it could not be written to the journal, or the journal is closed. True without a journal.
    pub fn record(&self, event: Event) -> bool {
        let line = Line { at: now(), event };
        let mut inner = self.inner.lock();
        let recorded = match inner.record.as_mut().map(|record| record.journal.as_mut()) {
            None => true,
            Some(None) => false,
            Some(Some(journal)) => match journal.append(&line) {
                Ok(None) => true,
                Ok(Some(_)) => {
                    self.halt(Halt::Prevented("no space left for results".into()));
                    true
                }
                Err(error) => {
                    self.halt(Halt::Prevented(format!("results cannot be written: {error}")));
                    false
                }
            },
        };
        inner.progress.event(&line.event);
        recorded
    }

    /// The file for what is not recorded yet, and the run's name in its lines; `None` without a journal.
    pub(super) fn beside(&self) -> Option<(PathBuf, String)> {
        let inner = self.inner.lock();
        let record = inner.record.as_ref()?;
        Some((record.unrecorded.clone(), record.journal.as_ref()?.run().to_owned()))
    }

    /// Closes the journal, so that other processes may write to it. The log still accepts the last words of agents.
    pub fn close(&self) {
        if let Some(record) = &mut self.inner.lock().record {
            record.journal = None;
        }
    }

    pub fn expect(&self, outcomes: u64) {
        self.inner.lock().progress.expect(outcomes);
    }

    pub(super) fn expect_time(&self, left: Time) {
        self.inner.lock().progress.expect_time(left);
    }

    pub fn expect_suspects(&self, outcomes: u64) {
        self.inner.lock().progress.expect_suspects(outcomes);
    }

    /// Writes one line to `log.txt`, truncated with a note beyond the host's limit.
    pub fn log(&self, host: &str, text: &str) {
        let mut inner = self.inner.lock();
        if let Some(record) = &mut inner.record {
            record.log(host, text);
        }
        inner.progress.log(host, text);
    }

    /// Makes everything recorded so far safe against a power failure. False if the disk failed; what [`Spine::record`] could not write is
    /// not counted.
    pub fn sync(&self) -> bool {
        let inner = self.inner.lock();
        let journal = inner.record.as_ref().and_then(|record| record.journal.as_ref());
        let Some(Err(error)) = journal.map(Journal::sync) else { return true };
        self.halt(Halt::Prevented(format!("results cannot be written: {error}")));
        false
    }

    /// The first reason stays.
    pub fn halt(&self, why: Halt) {
        self.halt.send_if_modified(|halt| {
            let first = halt.is_none();
            if first {
                *halt = Some(why);
            }
            first
        });
    }

    /// After the time of the run is over, lets what follows use its own time.
    pub(super) fn time_is_noted(&self) {
        self.halt.send_if_modified(|halt| halt.take_if(|halt| *halt == Halt::TimeOver).is_some());
    }

    pub fn halted(&self) -> Option<Halt> {
        self.halt.borrow().clone()
    }

    pub async fn halting(&self) -> Halt {
        let mut watcher = self.halt.subscribe();
        // The sender lives in self, so waiting ends with a reason and never with a closed channel.
        match watcher.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or(Halt::Interrupted),
            Err(_) => Halt::Interrupted,
        }
    }
}

/// UTC, RFC 3339 with milliseconds. A wall clock that is set while a run measures does not move it: times of a journal are compared.
pub fn now() -> String {
    ago(Duration::ZERO)
}

/// [`now`] this long ago; not before 1970.
pub(super) fn ago(time: Duration) -> String {
    let then = since_1970().saturating_sub(time.into());
    let then = jiff::Timestamp::from_nanosecond(then.0.into()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    then.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use railgauge_model::{directory::Directory, journal::line::Tail};

    #[test]
    fn what_the_journal_does_not_have_is_not_recorded() {
        let place = tempfile::tempdir().unwrap();
        let (directory, claim) = Directory::create(&place.path().join("run")).unwrap();
        let journal = claim.go_on(Tail::before("r".into()), &directory.reserve()).unwrap();
        let spine = Spine::new(journal, &directory.log(), Progress::new(true, false)).unwrap();
        let note = || Event::Note { host: "a".into(), text: "seen".into() };
        assert!(spine.record(note()) && spine.sync());
        spine.close();
        assert!(!spine.record(note()));
        assert!(Spine::unrecorded(true, false).record(note()));
    }

    #[test]
    fn a_host_that_says_very_much_is_cut_and_others_are_not() {
        let place = tempfile::tempdir().unwrap();
        let (directory, claim) = Directory::create(&place.path().join("run")).unwrap();
        let journal = claim.go_on(Tail::before("r".into()), &directory.reserve()).unwrap();
        let spine = Spine::new(journal, &directory.log(), Progress::new(true, false)).unwrap();
        let line = "x".repeat(4000);
        (0..2000).for_each(|_| spine.log("loud", &line));
        spine.log("quiet", "still heard");
        let text = std::fs::read_to_string(directory.log()).unwrap();
        assert!((LOG_OF_HOST..LOG_OF_HOST + 8192).contains(&(text.len() as u64)), "{}", text.len());
        assert!(text.contains("loud: it has written 4 MiB") && text.ends_with("quiet: still heard\n"));
    }
}
