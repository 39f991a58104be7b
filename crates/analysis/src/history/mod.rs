//! Several runs together, as input of comparisons and trends.
//!
//! The identity of a run is from the head of the journal. Values are from the needed columns of `records.parquet`, if the sums in
//! `verdicts.json` show that both are unchanged and belong together. Otherwise the values are computed from the journal.

mod causes;
mod head;
mod names;
mod originals;
mod places;
mod read_all;
mod slots;
mod stays;
mod subject;
mod swaps;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use railgauge_model::directory::{FRAME, JOURNAL, VERDICTS};
use railgauge_model::{border::text::path_text, files, journal::event::Case, plan::Plan};
use railgauge_wire::{facts::HostFacts, terms::Metric};

use super::{
    frames::{FrameError, FrameFile},
    imported,
    journal::{self, Contradiction, Journal, JournalError},
    results::{CaseResult, Mismatch, results},
    row::Reading,
    rows::rows_without_ceilings,
    verdict::Sums,
};

pub use causes::{Cause, EVERY, Labels, Moved, common};
pub use names::{numbers, shape};
use originals::Originals;
pub use places::{NoRuns, each_once, real, run_directories, without_repeats};
pub use read_all::read_all;
pub use slots::{By, Fitted, PartKind, Slot, fitted, has_serials};
pub use stays::{Seated, Stay, Stays};
pub use subject::{Subject, cell_words};
pub use swaps::{Shared, Swap};

/// Metrics judged by default. The rest either repeats these (message rate, bus and algorithm bandwidth differ by a
/// factor) or is a single extreme value of a window.
pub const METRICS: [Metric; 7] = [
    Metric::Bandwidth,
    Metric::MemoryBandwidth,
    Metric::MemoryLatency,
    Metric::Compute,
    Metric::Busbw,
    Metric::LatencyP50,
    Metric::LatencyP99,
];

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
        "{}: line {line} is damaged, missing, there twice or not in its place: `railgauge report` tells which cases that cost; \
         {}",
        path_text(path),
        if *resumable {
            "`railgauge run --resume DIR` measures them again; leave the run out meanwhile"
        } else {
            "`--resume` does not mend it: take an undamaged copy of the file, or leave the run out"
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

/// # Errors
/// The journal or the frame cannot be read, or the run never planned a case.
pub fn read(directory: &Path, metrics: &[Metric], frames: &dyn FrameFile) -> Result<Run, RunError> {
    let journal = directory.join(JOURNAL);
    if let Some(imported) = imported::read(&journal)? {
        let (tools, run) = (imported.tools(), Box::new(imported.run(directory, metrics)));
        return Err(RunError::Imported { path: journal, tools, run });
    }
    let mut run = head::read(directory, &journal)?;
    run.readings = match stored(directory, &journal) {
        Some(frame) => frames.readings(&frame, metrics)?,
        None => recompute(&journal, metrics)?,
    };
    // Cases added later confirm suspects and are not part of the matrix that runs share.
    let planned = run.cases.len() as u64;
    run.readings.retain(|reading| reading.case < planned);
    Ok(run)
}

/// The frame file of a run, if it was made from the unchanged journal, is unchanged itself, and is complete.
pub fn stored(directory: &Path, journal: &Path) -> Option<PathBuf> {
    #[derive(serde::Deserialize)]
    struct Document {
        sums: Sums,
    }
    let document = files::read(&directory.join(VERDICTS)).ok()?;
    let Document { sums } = serde_json::from_slice(&document).ok()?;
    let frame = directory.join(FRAME);
    let is = |path: &Path, sum: &str| Sums::of_file(path).is_ok_and(|found| found == sum);
    (sums.whole && is(&frame, &sums.frame) && is(journal, &sums.journal)).then_some(frame)
}

/// As from the frame of the journal at `path`.
///
/// # Errors
/// The journal cannot be read, is damaged or contradicts itself.
pub fn recompute(path: &Path, metrics: &[Metric]) -> Result<Vec<Reading>, RunError> {
    computed(path, |journal, results| {
        let rows = rows_without_ceilings(journal, results);
        rows.iter().filter(|row| metrics.contains(&row.metric)).map(Reading::from).collect()
    })
}

/// What `make` computes from the journal at `path`.
///
/// # Errors
/// The journal cannot be read, is damaged or contradicts itself.
pub fn computed<T>(path: &Path, make: impl FnOnce(&Journal, &[CaseResult<'_>]) -> T) -> Result<T, RunError> {
    let journal = journal::read(path)?;
    if let Some(damage) = journal.unhealed().next() {
        let resumable = journal.unhealed().all(|damage| damage.numbers.is_some());
        return Err(RunError::Damaged { path: path.to_owned(), line: damage.line, resumable });
    }
    // Runs with impossible dates are left out, with a note, where the order of runs matters.
    if let Some(first) = journal.contradicted() {
        return Err(RunError::Contradiction { path: path.to_owned(), first: first.clone() });
    }
    let results = results(&journal).map_err(|cause| RunError::Mismatch { path: path.to_owned(), cause })?;
    Ok(make(&journal, &results))
}
