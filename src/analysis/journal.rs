//! The journal of a run, read back: `records.jsonl`, one [`Line`] per line.
//!
//! A crash may tear the line that was being written. Such a line at the end, or right before the line with which a
//! later process resumed the run, is left out and noted; anything else that is not a line of a journal is an error
//! that names the file and the line, because a report over a file nobody understands would be a guess.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    sync::Arc,
};

use railgauge_wire::{copies::Copies, facts::HostFacts, failure::Failure};
use serde::Deserialize;

use crate::{
    plan::Plan,
    run::event::{Case, Event, Line, LinkRecord, Sample, VERSION},
};

/// Everything a journal says.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// Identity of the run.
    pub run_id: String,
    /// The plan with everything resolved.
    pub plan: Plan,
    /// SHA-256 of the plan file, hexadecimal.
    pub plan_hash: String,
    /// Version of railgauge that measured.
    pub version: String,
    /// What the controller ran on, in words.
    pub controller: String,
    /// How agents were started, in words.
    pub launcher: String,
    /// When the run started and when its last line was written (UTC, RFC 3339).
    pub time: (String, String),
    /// Hosts that answered, by name: the last facts of each.
    pub hosts: BTreeMap<String, HostUp>,
    /// Hosts that were lost and did not come back, by name.
    pub lost: BTreeMap<String, Failure>,
    /// Copies of GPUs that pairs used, by host and CUDA device; the last of each.
    pub copies: BTreeMap<(String, u32), Copies>,
    /// Every planned case, in the order of the plan.
    pub cases: Vec<Case>,
    /// Cases that settle what the tests left open, numbered behind the planned ones. They are no part of the tests.
    pub further: Vec<Case>,
    /// Every try of every case, in the order of the journal.
    pub tries: Vec<Try>,
    /// The test for which the cluster was last configured, as long as that was not taken back.
    pub configured: Option<String>,
    /// What a reader should know: host (empty: the run) and text. What the reader of the journal noted is last.
    pub notes: Vec<(String, String)>,
    /// How often the run was taken up again.
    pub resumed: u32,
    /// How it ended.
    pub end: End,
}

/// A host that answered.
#[derive(Debug, Clone, PartialEq)]
pub struct HostUp {
    /// What it is.
    pub facts: HostFacts,
    /// Its monotonic clock minus the controller's, and half the round trip, in nanoseconds.
    pub clock: Option<(i64, u64)>,
    /// Its wall clock minus the controller's, in nanoseconds.
    pub wall: Option<i64>,
}

/// One try of one case. Links are shared: a link lives through many cases.
#[derive(Debug, Clone, PartialEq)]
pub struct Try {
    /// Number of the case.
    pub case: u64,
    /// Repeat, counted from 0.
    pub repeat: u32,
    /// Start in UTC.
    pub started_at: String,
    /// What was used.
    pub link: Option<Arc<LinkRecord>>,
    /// The measurement, or why there is none.
    pub result: Result<Sample, Failure>,
}

/// How the journal ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The run came to its end.
    Finished,
    /// Somebody interrupted it.
    Interrupted,
    /// The cluster or the disk did not let it go on; in words.
    Prevented(String),
    /// It stops without saying so: the controller was killed, or is still running.
    Broken,
}

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        cause: io::Error,
    },
    /// A line is not one of ours.
    #[error("{}:{line}: not a line of a railgauge journal: {cause}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        cause: String,
    },
    /// A line was written by a later version.
    #[error(
        "{}:{line}: written in journal version {found}, this railgauge reads up to {VERSION}; use the railgauge that measured, or a newer one",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// Its version.
        found: u32,
    },
    /// Nothing was recorded.
    #[error("{}: holds no events: the run ended before it began", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads a journal.
///
/// # Errors
/// The file cannot be read, is empty, holds a line that is not ours, or was written by a later version.
pub fn read(path: &Path) -> Result<Journal, JournalError> {
    let unreadable = |cause| JournalError::Unreadable { path: path.to_owned(), cause };
    parse(BufReader::with_capacity(1 << 20, File::open(path).map_err(unreadable)?), path)
}

/// Reads a journal from anything that has lines; `path` is what errors name.
///
/// # Errors
/// Those of [`read`].
pub fn parse(mut from: impl BufRead, path: &Path) -> Result<Journal, JournalError> {
    let mut reader = Reader::new(path);
    let mut line = Vec::new();
    loop {
        line.clear();
        let got = from
            .read_until(b'\n', &mut line)
            .map_err(|cause| JournalError::Unreadable { path: path.to_owned(), cause })?;
        if got == 0 {
            break;
        }
        reader.line(&line)?;
    }
    reader.finish()
}

/// Takes lines one by one.
struct Reader<'p> {
    path: &'p Path,
    number: usize,
    journal: Option<Journal>,
    /// A line that is no event: forgiven if the file ends with it unfinished or the next one is `Resumed`.
    doubtful: Option<(JournalError, bool)>,
    links: HashMap<String, Arc<LinkRecord>>,
    torn: Vec<usize>,
}

impl<'p> Reader<'p> {
    fn new(path: &'p Path) -> Self {
        Self { path, number: 0, journal: None, doubtful: None, links: HashMap::new(), torn: Vec::new() }
    }

    fn foreign(&self, cause: impl Into<String>) -> JournalError {
        JournalError::Foreign { path: self.path.to_owned(), line: self.number, cause: cause.into() }
    }

    fn line(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        self.number += 1;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let parsed = serde_json::from_slice::<Line>(bytes);
        if let Some((error, _)) = self.doubtful.take() {
            if !matches!(&parsed, Ok(Line { event: Event::Resumed, .. })) {
                return Err(error);
            }
            self.torn.push(self.number - 1);
        }
        match parsed {
            Ok(line) if line.v > VERSION => {
                Err(JournalError::Newer { path: self.path.to_owned(), line: self.number, found: line.v })
            }
            Ok(line) => self.event(line),
            Err(error) => {
                if let Some(found) = version(bytes).filter(|found| *found > VERSION) {
                    return Err(JournalError::Newer { path: self.path.to_owned(), line: self.number, found });
                }
                self.doubtful = Some((self.foreign(error.to_string()), !bytes.ends_with(b"\n")));
                Ok(())
            }
        }
    }

    fn event(&mut self, line: Line) -> Result<(), JournalError> {
        let Some(journal) = &mut self.journal else {
            let Event::Started { run_id, plan_hash, resolved, version, controller, launcher, .. } = line.event else {
                return Err(self.foreign("the first event of a journal is `Started`"));
            };
            self.journal = Some(Journal {
                run_id,
                plan: *resolved,
                plan_hash,
                version,
                controller,
                launcher,
                time: (line.at.clone(), line.at),
                hosts: BTreeMap::new(),
                lost: BTreeMap::new(),
                copies: BTreeMap::new(),
                cases: Vec::new(),
                further: Vec::new(),
                tries: Vec::new(),
                notes: Vec::new(),
                configured: None,
                resumed: 0,
                end: End::Broken,
            });
            return Ok(());
        };
        journal.time.1 = line.at;
        match line.event {
            Event::Started { .. } => return Err(self.foreign("a second `Started`: two runs in one file")),
            Event::HostUp { host, facts, clock, wall } => {
                if let Some(failure) = journal.lost.remove(&host) {
                    journal.notes.push((host.clone(), format!("was lost ({failure}) and came back")));
                }
                journal.hosts.insert(host, HostUp { facts: *facts, clock, wall });
            }
            Event::HostLost { host, failure } => {
                journal.lost.insert(host, failure);
            }
            Event::Planned { cases } => {
                // A resumed run plans again: what it knows already must be the same, what it finds new is added.
                let known = journal.cases.len();
                let differs = cases.iter().zip(&journal.cases).any(|(new, old)| new != old);
                if let Some(case) = cases.iter().enumerate().find(|(index, case)| case.id != *index as u64) {
                    return Err(self.foreign(format!("case {} stands at place {} of the plan", case.1.id, case.0)));
                } else if differs {
                    return Err(self.foreign("a second list of planned cases that contradicts the first"));
                }
                if cases.len() > known && !journal.further.is_empty() {
                    return Err(self.foreign("cases are planned whose numbers further cases have"));
                }
                journal.cases.extend(cases.into_iter().skip(known));
            }
            Event::Confirming { cases } => {
                let first = journal.cases.len() + journal.further.len();
                if let Some((place, case)) = (first..).zip(&cases).find(|(place, case)| case.id != *place as u64) {
                    return Err(self.foreign(format!("further case {} stands at place {place}", case.id)));
                }
                let planned = |case: &&Case| journal.plan.tests.iter().any(|test| test.name == case.test);
                if let Some(case) = cases.iter().find(|case| !planned(case)) {
                    let test = &case.test;
                    return Err(self.foreign(format!("a further case of test `{test}`, which the plan does not have")));
                }
                journal.further.extend(cases);
            }
            Event::Outcome(outcome) => {
                let link = outcome.link.map(|link| shared(&mut self.links, link));
                let (case, repeat) = (outcome.case, outcome.repeat);
                let result = outcome.result;
                journal.tries.push(Try { case, repeat, started_at: outcome.started_at, link, result });
            }
            Event::Copies { host, copies } => {
                journal.copies.insert((host, copies.gpu), copies);
            }
            Event::Configuring { test, undo: false } => journal.configured = Some(test),
            Event::Configured { undo: true, failure: None, .. } => journal.configured = None,
            Event::Configuring { .. } | Event::Configured { .. } => {}
            Event::Note { host, text } => journal.notes.push((host, text)),
            Event::Resumed => {
                journal.resumed += 1;
                journal.end = End::Broken;
            }
            Event::Interrupted => journal.end = End::Interrupted,
            Event::Prevented { why } => journal.end = End::Prevented(why),
            Event::Finished => journal.end = End::Finished,
            Event::Round { .. } => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Journal, JournalError> {
        match self.doubtful.take() {
            Some((_, true)) => self.torn.push(self.number),
            Some((error, false)) => return Err(error),
            None => {}
        }
        let mut journal = self.journal.ok_or_else(|| JournalError::Empty { path: self.path.to_owned() })?;
        if let Some(test) = &journal.configured {
            let text = format!(
                "the cluster is still configured for `{test}`: its `undo` failed or was not reached; run it by hand, or \
                 resume the run"
            );
            journal.notes.push((String::new(), text));
        }
        for line in self.torn {
            let text = format!("line {line} of the journal was cut off by a crash; what it held is not in this report");
            journal.notes.push((String::new(), text));
        }
        Ok(journal)
    }
}

/// The version a line claims, where it is JSON at all.
fn version(bytes: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Versioned {
        v: u32,
    }
    serde_json::from_slice::<Versioned>(bytes).ok().map(|line| line.v)
}

/// One copy of equal links.
fn shared(known: &mut HashMap<String, Arc<LinkRecord>>, link: LinkRecord) -> Arc<LinkRecord> {
    match serde_json::to_string(&link) {
        Ok(key) => known.entry(key).or_insert_with(|| Arc::new(link)).clone(),
        Err(_) => Arc::new(link),
    }
}
