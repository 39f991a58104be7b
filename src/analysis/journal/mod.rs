//! The journal of a run, read back: `records.jsonl`, one line of [`railgauge_model::journal::line`] per event.
//!
//! Lines that were damaged after they were written, or that are missing, are read around: [`Journal::damage`] says which,
//! and the run is inconclusive as long as nothing that was read later made good for them. A line that a crash cut off at
//! the end was never whole and is only noted. A whole line that says something unknown is an error that names the file
//! and the line, because a report over a file nobody understands would be a guess.

mod losses;
mod plan_hash;
pub(super) mod planned;
mod reader;
mod soaked;
mod structure;
pub(super) mod times;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::TryLockError,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use railgauge_model::{
    border::text::{path_quoted, path_text},
    files,
    journal::{
        event::{Case, Change, FlowRoute, LinkRecord, OLDEST, Sample, Soaked, Started, VERSION},
        line::Tail,
        stages::Stages,
    },
    plan::Plan,
};

pub use plan_hash::plan_hash;
use railgauge_wire::{
    copies::Copies,
    facts::HostFacts,
    failure::Failure,
    remedy::Remedy,
    unit::{Nanoseconds, NanosecondsI64},
    watch::Watched,
};
use reader::Reader;

#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    pub run_id: String,
    pub plan: Plan,
    /// SHA-256 of the plan file, and of what was chosen of it, hexadecimal: [`plan_hash`].
    pub plan_hash: String,
    pub version: String,
    pub controller: String,
    pub launcher: String,
    /// When the run started and when its last line was written (UTC, RFC 3339).
    pub time: (String, String),
    /// Hosts that answered, by name: the last facts of each.
    pub hosts: BTreeMap<String, HostUp>,
    /// Hosts that were lost and did not come back, by name.
    pub lost: BTreeMap<String, Failure>,
    /// Every time that a host was lost, also one that came back, in the order of the journal.
    pub losses: Vec<Loss>,
    /// Copies of GPUs that pairs used, by host and CUDA device; the last of each.
    pub copies: BTreeMap<(String, u32), Copies>,
    /// Every planned case, in the order of the plan.
    pub cases: Vec<Case>,
    /// The ways that forwarding tables gave to the planned flows of pairs.
    pub routes: Vec<FlowRoute>,
    /// Cases that settle what the tests left open, numbered behind the planned ones. They are no part of the tests.
    pub further: Vec<Case>,
    /// Numbers of those that settle which cable or switch is bad.
    pub for_links: BTreeSet<u64>,
    /// Every try of every case, in the order of the journal.
    pub tries: Vec<Try>,
    /// What agents saw of their ports while traffic ran, in the order of the journal.
    pub watched: Vec<Seen>,
    /// The parts of the soak, in the order of time.
    pub soaked: Vec<Soaked>,
    /// What was last made of the cluster, as long as that was not taken back.
    pub configured: Option<Change>,
    /// Why taking it back failed, where that was tried last.
    pub unconfigured: Option<Failure>,
    /// What a reader should know: host (empty: the run) and text. What the reader of the journal noted is last.
    pub notes: Vec<(String, String)>,
    /// Where the wall time of all its processes went; those that were killed have not told.
    pub stages: Stages,
    pub resumed: u32,
    pub end: JournalEnd,
    /// Lines that could not be read, in the order of the file.
    pub damage: Vec<Damage>,
    /// Whole lines that no run writes so, in the order of the file: as long as there is one, nothing passes.
    pub contradictions: Vec<Contradiction>,
    pub tail: Tail,
}

impl Journal {
    /// The journal of a run of this plan that says nothing yet.
    pub fn of(plan: Plan) -> Self {
        Self {
            run_id: String::new(),
            plan,
            plan_hash: String::new(),
            version: String::new(),
            controller: String::new(),
            launcher: String::new(),
            time: Default::default(),
            hosts: BTreeMap::new(),
            lost: BTreeMap::new(),
            losses: Vec::new(),
            copies: BTreeMap::new(),
            cases: Vec::new(),
            routes: Vec::new(),
            further: Vec::new(),
            for_links: BTreeSet::new(),
            tries: Vec::new(),
            watched: Vec::new(),
            soaked: Vec::new(),
            notes: Vec::new(),
            stages: Stages::default(),
            configured: None,
            unconfigured: None,
            resumed: 0,
            end: JournalEnd::Broken,
            damage: Vec::new(),
            contradictions: Vec::new(),
            tail: Tail::before(String::new()),
        }
    }

    pub fn came_back(&self) -> impl Iterator<Item = &Loss> {
        self.losses.iter().filter(|loss| !self.lost.contains_key(&loss.host))
    }

    pub fn unhealed(&self) -> impl Iterator<Item = &Damage> {
        self.damage.iter().filter(|damage| !damage.healed)
    }
}

/// Lines of a journal that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The line of the file, counted from 1, at which it was seen.
    pub line: usize,
    pub what: String,
    /// Numbers of the lines that are missing because of it, first and last; none where lines are there twice.
    pub numbers: Option<(u64, u64)>,
    /// Whether the run was taken up after it by a process that knew of it and measured again what was missing.
    pub healed: bool,
}

/// A whole line that does not go with the plan or with the lines before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The line of the file, counted from 1.
    pub line: usize,
    pub what: String,
    /// Whether it is only this machine's clock that it does not go with.
    pub by_clock: bool,
}

impl Journal {
    /// The first line that goes with no others, whatever this machine's clock says.
    pub fn contradicted(&self) -> Option<&Contradiction> {
        self.contradictions.iter().find(|found| !found.by_clock)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub host: String,
    pub error: Nanoseconds,
    /// What was added to the times of its agent's clock, where the journal tells.
    pub clock: Option<NanosecondsI64>,
    pub soak: bool,
    /// What it saw, in nanoseconds since 1970.
    pub seen: Watched,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    pub host: String,
    /// When that was, since 1970, or when it was surely lost; `None` where that is not known.
    pub at: Option<Nanoseconds>,
    pub failure: Failure,
    /// When the host answered again; `None` where it did not, or where that is not known.
    pub back: Option<Nanoseconds>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HostUp {
    pub facts: HostFacts,
    /// Its monotonic clock minus the controller's, and half the round trip.
    pub clock: Option<(NanosecondsI64, Nanoseconds)>,
    pub wall: Option<NanosecondsI64>,
}

/// One try of one case. Links are shared: a link lives through many cases.
#[derive(Debug, Clone, PartialEq)]
pub struct Try {
    pub case: u64,
    /// Repeat, counted from 0.
    pub repeat: u32,
    /// Start in UTC.
    pub started_at: Started,
    pub link: Option<Arc<LinkRecord>>,
    /// The measurement, or why there is none.
    pub result: Result<Sample, Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalEnd {
    Finished,
    /// Somebody interrupted it.
    Interrupted,
    /// The cluster or the disk did not let it go on.
    Prevented {
        why: String,
        /// What to do before the plan is run again; `None` where `--resume` goes on with it.
        remedy: Option<Remedy>,
    },
    /// It stops without saying so: the controller was killed, or the machine went down.
    Broken,
    Running,
}

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {cause}", path_text(path))]
    Unreadable { path: PathBuf, cause: io::Error },
    /// A line is not one of ours.
    #[error("{}:{line}: not a line of a railgauge journal: {cause}", path_text(path))]
    Foreign {
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        cause: String,
    },
    /// A line was written in another version of the format.
    #[error(
        "{}:{line}: written in journal version {found}, and this railgauge reads versions {OLDEST} to {VERSION}; use the railgauge that measured",
        path_text(path)
    )]
    Version {
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        found: u32,
    },
    /// The line with the plan is damaged: without it nothing else means anything.
    #[error(
        "{}:1: the first line, which holds the plan, is damaged: {cause}; {}: run the plan again",
        path_text(path),
        beside_the_first(*others)
    )]
    Headless { path: PathBuf, cause: String, others: usize },
    /// Another tool measured, and its outputs were imported.
    #[error(
        "{}: imported from the output of {tools}, not measured by railgauge: it is neither judged nor verified and never passes; \
         `compare` and `report` read it",
        path_text(path)
    )]
    Imported { path: PathBuf, tools: String },
    #[error("{}: holds no events: the run ended before it began; `railgauge run PLAN -o {}` starts it there", path_text(path), path_quoted(path.parent().unwrap_or(path)))]
    Empty { path: PathBuf },
}

/// What is to be said of the lines behind a first one that is damaged.
fn beside_the_first(others: usize) -> String {
    match others {
        0 => "there is no other line".to_owned(),
        1 => "the other line cannot be judged without it".to_owned(),
        _ => format!("the other {others} lines cannot be judged without it"),
    }
}

/// Reads a journal.
///
/// # Errors
/// The file cannot be read, is empty, lost its first line, holds a whole line that is not ours, or was written in another
/// version.
pub fn read(path: &Path) -> Result<Journal, JournalError> {
    let unreadable = |cause| JournalError::Unreadable { path: path.to_owned(), cause };
    let file = files::open(path).map_err(unreadable)?;
    // Who writes holds the lock (see run::journal). File systems without locks answer with another error.
    let written = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let mut journal = parse(BufReader::with_capacity(1 << 20, file), path)?;
    if written && journal.end == JournalEnd::Broken {
        journal.end = JournalEnd::Running;
    }
    // Which times can be depends on the day: what is parsed is judged without a clock.
    let now = Timestamp::now();
    let last = usize::try_from(journal.tail.next.saturating_sub(1)).unwrap_or(usize::MAX);
    let times = [(1, &journal.time.0), (last, &journal.time.1)];
    let wrong = |(line, at): (usize, &String)| {
        Some(Contradiction { line, what: times::wrong(at.parse().ok()?, now)?, by_clock: true })
    };
    let first = times.into_iter().find_map(wrong);
    journal.contradictions.extend(first);
    Ok(journal)
}

/// Reads a journal from anything that has lines; `path` is what errors name.
///
/// # Errors
/// Those of [`read`].
pub fn parse(mut from: impl BufRead, path: &Path) -> Result<Journal, JournalError> {
    let mut reader = Reader::new(path);
    let (mut lines, mut ends) = (Vec::new(), Vec::new());
    let mut is_over = false;
    // Where the file ended once it is over: what somebody writes behind that is for the next reader.
    while !is_over {
        lines.clear();
        ends.clear();
        while !is_over && lines.len() < BYTES_AT_ONCE && ends.len() < LINES_AT_ONCE {
            let got = from
                .read_until(b'\n', &mut lines)
                .map_err(|cause| JournalError::Unreadable { path: path.to_owned(), cause })?;
            is_over = got == 0;
            if !is_over {
                ends.push(lines.len());
            }
        }
        let mut begin = 0;
        let lines = ends.iter().map(|&end| &lines[std::mem::replace(&mut begin, end)..end]);
        reader.lines(&lines.collect::<Vec<_>>())?;
    }
    reader.finish()
}

/// Bytes of lines that are read before they are decoded, by several threads.
const BYTES_AT_ONCE: usize = 1 << 23;
/// Lines of them: however short, each takes memory of its own until it is taken in.
const LINES_AT_ONCE: usize = 1 << 14;
