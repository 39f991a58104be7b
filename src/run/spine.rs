use std::{
    collections::HashMap,
    fs::OpenOptions,
    io::Write,
    path::Path,
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
use railgauge_model::files;
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
        let file = files::open_with(log, OpenOptions::new().create(true).append(true));
        let file = file.and_then(|file| files::must_have_one_name(&file).map(|()| file)).map_err(|cause| {
            let name = log.file_name().unwrap_or_default().to_string_lossy();
            std::io::Error::new(cause.kind(), format!("{name}: {cause}"))
        })?;
        let record = Record { journal: Some(journal), log: file, logged: HashMap::new() };
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

    /// Records and shows one event.
    pub fn emit(&self, event: Event) {
        let line = Line { at: now(), event };
        let mut inner = self.inner.lock();
        if let Some(journal) = inner.record.as_mut().and_then(|record| record.journal.as_mut()) {
            match journal.append(&line) {
                Ok(None) => {}
                Ok(Some(_)) => self.halt(Halt::Prevented("no space left for results".into())),
                Err(error) => self.halt(Halt::Prevented(format!("results cannot be written: {error}"))),
            }
        }
        inner.progress.event(&line.event);
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

    /// Makes everything recorded so far safe against a power failure.
    pub fn sync(&self) {
        let inner = self.inner.lock();
        let journal = inner.record.as_ref().and_then(|record| record.journal.as_ref());
        if let Some(Err(error)) = journal.map(Journal::sync) {
            self.halt(Halt::Prevented(format!("results cannot be written: {error}")));
        }
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
