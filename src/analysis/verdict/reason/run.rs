//! Grounds of the verdicts on the run as a whole.

use std::fmt;

use railgauge_model::{journal::event::Change, plan::hostlist};
use railgauge_wire::{failure::Failure, remedy::Remedy};
use serde::Serialize;

use crate::analysis::words::{count, was};

/// What stands against a run as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum OfRun {
    /// It was interrupted.
    Interrupted,
    /// It could not go on.
    Prevented {
        /// Why, in words.
        cause: String,
        /// What to do before the plan is run again, where `--resume` would end in the same way.
        #[serde(skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
    /// Its records stop without an end.
    BrokeOff,
    /// It is still going on.
    StillRunning,
    /// Lines of its records cannot be read, or are missing.
    Unreadable {
        /// In how many places.
        places: usize,
        /// Line of the first, counted from 1.
        line: usize,
        /// What is wrong with the first, in words.
        cause: String,
        /// Whether `--resume` measures again what is missing.
        resumable: bool,
    },
    /// Lines of its records contradict each other or the plan.
    Contradictory {
        /// How many.
        lines: usize,
        /// The first, counted from 1.
        line: usize,
        /// What is wrong with the first, in words.
        cause: String,
    },
    /// Hosts were lost.
    Lost {
        /// Their names.
        hosts: Vec<String>,
        /// Why the first of them was.
        failure: Box<Failure>,
    },
    /// Hosts that were lost in the tests and came back: what was missing was measured again.
    CameBack {
        /// Their names.
        hosts: Vec<String>,
        /// Why the first of them was lost.
        failure: Box<Failure>,
    },
    /// Hosts that were lost in the soak and came back: what they missed of it is not measured again.
    MissedSoak {
        /// Their names.
        hosts: Vec<String>,
        /// Why the first of them was lost.
        failure: Box<Failure>,
    },
    /// Hosts of which the records say neither that they answered nor why they did not.
    Silent {
        /// Their names.
        hosts: Vec<String>,
    },
    /// Hosts that answered and that no case measures.
    Unused {
        /// Their names.
        hosts: Vec<String>,
    },
    /// What a test configured could not be taken back.
    UndoFailed {
        /// Name of the test, and which of its values.
        #[serde(flatten)]
        change: Change,
        /// Why.
        failure: Box<Failure>,
    },
    /// The run ended before it took back what a test configured.
    UndoNotReached {
        /// Name of the test, and which of its values.
        #[serde(flatten)]
        change: Change,
    },
}

/// Hosts in short: `gpu[001-004]`.
fn folded(hosts: &[String]) -> String {
    hostlist::fold(hosts.iter().map(String::as_str))
}

/// `gpu001 was`, `gpu[001-004] were`.
fn were(hosts: &[String]) -> String {
    format!("{} {}", folded(hosts), was(hosts.len()))
}

/// The first of several in words: `the first: `.
fn first(hosts: &[String]) -> &'static str {
    if hosts.len() == 1 { "" } else { "the first: " }
}

impl fmt::Display for OfRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("it was interrupted; `railgauge run --resume DIR` goes on with it"),
            Self::Prevented { cause, remedy: None } => {
                write!(f, "it could not go on: {cause}; `railgauge run --resume DIR` goes on with it")
            }
            Self::Prevented { cause, remedy: Some(remedy) } => {
                write!(f, "it could not go on: {cause}; {remedy}, and run the plan anew")
            }
            Self::BrokeOff => f.write_str(
                "its records stop without an end: it broke off; `railgauge run --resume DIR` goes on with it",
            ),
            Self::StillRunning => f.write_str("it is still running; wait for its end and draw the report again"),
            Self::Unreadable { places, line, cause, resumable } => {
                let remedy = if *resumable {
                    "`railgauge run --resume DIR` measures again what is missing"
                } else {
                    "lines are there twice or in another order, and `--resume` does not mend that: take an undamaged copy \
                     of the file, or run the plan again"
                };
                let places = count(*places, "place");
                write!(f, "{places} of records.jsonl cannot be read, first at line {line}: {cause}; {remedy}")
            }
            Self::Contradictory { lines, line, cause } => {
                let lines = count(*lines, "line");
                write!(f, "{lines} of records.jsonl cannot be right, first line {line}: {cause}; run the plan again")
            }
            Self::Lost { hosts, failure } => match hosts.len() {
                0 | 1 => failure.fmt(f),
                n => write!(f, "{}: {}; the first: {failure}", count(n, "host"), folded(hosts)),
            },
            Self::CameBack { hosts, failure } => {
                write!(f, "{} lost and came back; {}{failure}", were(hosts), first(hosts))
            }
            Self::MissedSoak { hosts, failure } => {
                let (were, first) = (were(hosts), first(hosts));
                write!(
                    f,
                    "{were} lost in the soak and came back, and what was missed is not measured again; {first}{failure}"
                )
            }
            Self::Silent { hosts } => {
                let hosts = folded(hosts);
                write!(f, "{hosts}: the records say neither that it answered nor why it did not")
            }
            Self::Unused { hosts } => write!(f, "no case measures {}", folded(hosts)),
            Self::UndoFailed { change, failure } => write!(f, "`{}`: {failure}", change.test),
            Self::UndoNotReached { change } => {
                write!(f, "`undo` of {change} was not reached; `railgauge run --resume DIR` runs it, or run it by hand")
            }
        }
    }
}
