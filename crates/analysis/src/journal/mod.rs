//! The journal of a run: `records.jsonl`, one line of [`railgauge_model::journal::line`] per event.
//!
//! Damaged or missing lines are skipped: [`Journal::damage`] lists them, and the run is inconclusive until a later line
//! makes up for them. A last line cut off by a crash is only noted. A whole line with unknown content is an error with
//! file and line, because a report on it would be a guess.

mod losses;
mod measures;
mod plan_hash;
mod planned;
mod reader;
mod soaked;
mod structure;
pub(super) mod times;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
    sync::Arc,
};

use railgauge_model::{
    border::text::{path_quoted, path_text},
    journal::{
        event::{Case, Change, FlowRoute, Imported, LinkRecord, Sample, Soaked, Started, VERSION},
        line::Tail,
        stages::Stages,
    },
    plan::Plan,
};

pub(crate) use measures::{measures, measures_on_any};
pub use plan_hash::plan_hash;
use railgauge_wire::{Failure, HostFacts, Nanoseconds, NanosecondsI64, Watched, remedy::Remedy};
pub use reader::{parse, read};

/// Programs that wrote the files of an imported run, by name.
pub(crate) fn tools(said: &Imported) -> String {
    let mut tools: Vec<&str> = said.files.iter().map(|file| file.tool.as_str()).collect();
    tools.sort_unstable();
    tools.dedup();
    tools.join(", ")
}

#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    pub run_id: String,
    pub plan: Plan,
    /// SHA-256 of the plan file and of the selection from it, hexadecimal: [`plan_hash`].
    pub plan_hash: String,
    pub version: String,
    pub controller: String,
    pub launcher: String,
    /// Start of the run and time of its last line (UTC, RFC 3339).
    pub time: (String, String),
    pub hosts: BTreeMap<String, HostUp>,
    pub lost: BTreeMap<String, Failure>,
    /// Includes hosts that came back; in the order of the journal.
    pub losses: Vec<Loss>,
    pub cases: Vec<Case>,
    pub routes: Vec<FlowRoute>,
    /// Cases that settle what the tests left open, numbered after the planned ones and not part of the tests.
    pub further: Vec<Case>,
    pub for_links: BTreeSet<u64>,
    pub tries: Vec<Try>,
    /// Observations of ports by agents under traffic, in the order of the journal.
    pub watched: Vec<Seen>,
    pub soaked: Vec<Soaked>,
    /// The last change of the cluster, until it is undone.
    pub configured: Option<Change>,
    pub unconfigured: Option<Failure>,
    /// Host (empty: the run) and text; the notes of this reader are last.
    pub notes: Vec<(String, String)>,
    pub stages: Stages,
    pub resumed: u32,
    pub end: JournalEnd,
    /// In the order of the file.
    pub damage: Vec<Damage>,
    /// Whole lines that no run writes, in the order of the file: while there is one, nothing passes.
    pub contradictions: Vec<Contradiction>,
    pub tail: Tail,
}

impl Journal {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Line of the file, from 1.
    pub line: usize,
    pub what: String,
    /// First and last number of the missing lines; `None` where lines are duplicates.
    pub numbers: Option<(u64, u64)>,
    pub healed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// Line of the file, from 1.
    pub line: usize,
    pub what: String,
    /// Whether it only contradicts this machine's clock.
    pub by_clock: bool,
}

impl Journal {
    pub fn contradicted(&self) -> Option<&Contradiction> {
        self.contradictions.iter().find(|found| !found.by_clock)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub host: String,
    pub error: Nanoseconds,
    /// In nanoseconds since 1970.
    pub seen: Watched,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    pub host: String,
    /// Since 1970; the time by which it was surely lost. `None` if unknown.
    pub at: Option<Nanoseconds>,
    pub failure: Failure,
    /// `None` if it did not answer again, or if that is unknown.
    pub back: Option<Nanoseconds>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HostUp {
    pub facts: HostFacts,
    pub clock: Option<(NanosecondsI64, Nanoseconds)>,
    pub wall: Option<NanosecondsI64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Try {
    pub case: u64,
    /// From 0.
    pub repeat: u32,
    /// UTC.
    pub started_at: Started,
    pub link: Option<Arc<LinkRecord>>,
    pub result: Result<Sample, Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalEnd {
    Finished,
    Interrupted,
    Prevented {
        why: String,
        /// Needed before the plan runs again; `None` if `--resume` is enough.
        remedy: Option<Remedy>,
    },
    Broken,
    Running,
}

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{}: cannot be read: {cause}", path_text(path))]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("{}:{line}: not a line of a railgauge journal: {cause}", path_text(path))]
    Foreign {
        path: PathBuf,
        /// From 1.
        line: usize,
        cause: String,
    },
    #[error(
        "{}:{line}: written in journal version {found}, and this railgauge reads version {VERSION}; use the railgauge that measured",
        path_text(path)
    )]
    Version {
        path: PathBuf,
        /// From 1.
        line: usize,
        found: u32,
    },
    /// The line with the plan is damaged; nothing else has a meaning without it.
    #[error(
        "{}:1: the first line, which holds the plan, is damaged: {cause}; {}: run the plan again",
        path_text(path),
        beside_the_first(*others)
    )]
    Headless { path: PathBuf, cause: String, others: usize },
    #[error(
        "{}: imported from the output of {tools}, not measured by railgauge: it is neither judged nor verified and never passes; \
         `compare` and `report` read it",
        path_text(path)
    )]
    Imported { path: PathBuf, tools: String },
    #[error("{}: holds no events: the run ended before it began; `railgauge run PLAN -o {}` starts it there", path_text(path), path_quoted(path.parent().unwrap_or(path)))]
    Empty { path: PathBuf },
}

fn beside_the_first(others: usize) -> String {
    match others {
        0 => "it has no other line".to_owned(),
        1 => "the other line cannot be judged without it".to_owned(),
        _ => format!("the other {others} lines cannot be judged without it"),
    }
}
