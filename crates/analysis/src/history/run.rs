//! A run as comparisons and trends take it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use railgauge_model::{border::text::path_text, journal::event::Case, plan::Plan};
use railgauge_stats::robust::median;
use railgauge_wire::{HostFacts, Metric};

use crate::{
    frames::FrameError,
    imported::{ImportedRun, Measured},
    journal::{Contradiction, JournalError},
    results::Mismatch,
    row::Reading,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub path: PathBuf,
    pub run_id: String,
    pub plan: Plan,
    /// SHA-256, hexadecimal.
    pub plan_hash: String,
    pub version: String,
    pub imported: bool,
    pub started: Timestamp,
    pub hosts: BTreeMap<String, HostFacts>,
    pub cases: Vec<Case>,
    pub readings: Vec<Reading>,
}

impl Run {
    /// From the measurements of another tool.
    pub fn of_import(from: &ImportedRun, directory: &Path, metrics: &[Metric]) -> Self {
        let reading = |(&(case, metric), found): (&(u64, Metric), &Measured<'_>)| Reading {
            case,
            metric,
            value: Reading::trusted(median(&found.values).ok(), found.error.as_deref()),
            wrong: found.wrong,
            transport: found.first.transport.as_str().into(),
            devices: [found.first.device.as_str().into(), "".into()],
        };
        let all = from.measured();
        Self {
            path: PathBuf::from(directory),
            run_id: from.said.run_id.clone(),
            plan: (*from.said.plan).clone(),
            plan_hash: from.said.files.iter().map(|file| file.sha256.as_str()).collect::<Vec<_>>().join(" "),
            version: format!("{} (imported)", from.tools()),
            imported: true,
            started: from.at,
            hosts: BTreeMap::new(),
            cases: from.said.cases.clone(),
            readings: all.iter().filter(|((_, metric), _)| metrics.contains(metric)).map(reading).collect(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("{}: {cause}", path_text(path))]
    Mismatch {
        path: PathBuf,
        /// What does not belong together.
        cause: Mismatch,
    },
    #[error("{}: line {} cannot be right: {}; leave the run out", path_text(path), first.line, first.what)]
    Contradiction {
        path: PathBuf,
        /// The first impossible line.
        first: Contradiction,
    },
    #[error(
        "{}: line {line} is damaged, missing, there twice or not in its place: `railgauge report` lists the cases that this cost; \
         {}",
        path_text(path),
        if *resumable {
            "`railgauge run --resume DIR` measures them again; leave the run out meanwhile"
        } else {
            "`--resume` does not repair it: take an undamaged copy of the file, or leave the run out"
        }
    )]
    Damaged {
        path: PathBuf,
        /// The first such line.
        line: usize,
        resumable: bool,
    },
    #[error("{}: no case was planned: the run ended before it measured", path_text(path))]
    Unplanned {
        path: PathBuf,
        /// Known about the run: its plan was to be measured, and nothing was.
        run: Box<Run>,
    },
    #[error("{}: imported from the output of {tools}: only `compare` takes it", path_text(path))]
    Imported { path: PathBuf, tools: String, run: Box<Run> },
    #[error(
        "{}: a copy of the run in {}{sign}: its values would count twice; leave it out",
        path_text(path),
        path_text(original)
    )]
    Copy {
        path: PathBuf,
        /// The directory read first.
        original: PathBuf,
        /// Evidence, unless it is name and start.
        sign: &'static str,
    },
}
