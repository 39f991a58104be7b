//! Several runs side by side: what comparisons and trends are made of.
//!
//! | file | does |
//! | --- | --- |
//! | `places` | a word of the command line becomes run directories |
//! | `names` | the order of the numbers in the names of directories |
//! | `head` | the beginning of a journal: what the run is, its hosts and its cases |
//! | `subject` | what a case measures: equal subjects of two runs are compared |
//! | `read_all` | many runs read at the same time |
//! | `slots` | which part is in which slot of a host |
//! | `stays` | how long it was there |
//! | `swaps` | what was replaced, and ids by which nothing can be followed |
//! | `originals` | copies of a run are told from other runs |
//! | `causes` | changes at the same time become one line: what they have in common |
//!
//! Identity comes from the head of the journal, values from `records.parquet`, of which only the needed columns are
//! read, if the sums in `verdicts.json` say that both are as they were written and belong together. Otherwise the values are
//! computed from the journal again.

mod causes;
mod frames;
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
    frame::{self, FrameError},
    imported,
    journal::{self, Contradiction, Journal, JournalError},
    results::{CaseResult, Mismatch, results},
    row::Reading,
    rows::rows_without_ceilings,
    verdict::Sums,
};

pub use causes::{Cause, EVERY, Labels, Moved, common};
pub use frames::{RunFrame, frame_of};
pub use names::{numbers, shape};
use originals::Originals;
pub use places::{NoRuns, each_once, real, run_directories, without_repeats};
pub use read_all::read_all;
pub use slots::{By, Fitted, PartKind, Slot, fitted, has_serials};
pub use stays::{Seated, Stay, Stays};
pub use subject::{Subject, cell_words};
pub use swaps::{Shared, Swap};

/// Metrics that are judged unless others are asked for. The rest either repeats these (message rate, bus and algorithm
/// bandwidth differ by a factor) or is a single extreme value of a window.
pub const METRICS: [Metric; 7] = [
    Metric::Bandwidth,
    Metric::MemoryBandwidth,
    Metric::MemoryLatency,
    Metric::Compute,
    Metric::Busbw,
    Metric::LatencyP50,
    Metric::LatencyP99,
];

/// One run, as far as it is compared with others.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub path: PathBuf,
    pub run_id: String,
    pub plan: Plan,
    /// SHA-256 of the plan file, hexadecimal.
    pub plan_hash: String,
    /// Version of railgauge that measured, or the tool whose outputs were imported.
    pub version: String,
    pub imported: bool,
    pub started: Timestamp,
    pub hosts: BTreeMap<String, HostFacts>,
    /// Every planned case, in the order of the plan.
    pub cases: Vec<Case>,
    /// The values of the metrics that were asked for, and what stands in their place.
    pub readings: Vec<Reading>,
}

/// Why a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Its frame cannot be read.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The journal is not of its own plan.
    #[error("{}: {cause}", path_text(path))]
    Mismatch {
        path: PathBuf,
        /// What does not belong together.
        cause: Mismatch,
    },
    #[error("{}: line {} cannot be right: {}; leave the run out", path_text(path), first.line, first.what)]
    Contradiction {
        path: PathBuf,
        /// The first line that cannot be right.
        first: Contradiction,
    },
    /// Lines of the journal are damaged or missing, so that what they said is unknown.
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
        /// What is known of the run: its plan was to be measured, and nothing was.
        run: Box<Run>,
    },
    /// Another tool measured: it is compared, and nothing else.
    #[error("{}: imported from the output of {tools}: only `compare` takes it", path_text(path))]
    Imported { path: PathBuf, tools: String, run: Box<Run> },
    /// The same run lies in another directory too.
    #[error(
        "{}: a copy of the run in {}{sign}: its values would count twice; leave it out",
        path_text(path),
        path_text(original)
    )]
    Copy {
        path: PathBuf,
        /// The directory that was read first.
        original: PathBuf,
        /// What shows it, where it is not the name and the start.
        sign: &'static str,
    },
}

/// Reads the run in a directory, with the values of these metrics.
///
/// # Errors
/// The journal or the frame cannot be read, or the run never came to plan a case.
pub fn read(directory: &Path, metrics: &[Metric]) -> Result<Run, RunError> {
    let journal = directory.join(JOURNAL);
    if let Some(imported) = imported::read(&journal)? {
        let (tools, run) = (imported.tools(), Box::new(imported.run(directory, metrics)));
        return Err(RunError::Imported { path: journal, tools, run });
    }
    let mut run = head::read(directory, &journal)?;
    run.readings = match stored(directory, &journal) {
        Some(frame) => frame::readings(&frame, metrics)?,
        None => recompute(&journal, metrics)?,
    };
    // Cases that were added later confirm suspects; they are no part of the matrix that runs have in common.
    let planned = run.cases.len() as u64;
    run.readings.retain(|reading| reading.case < planned);
    Ok(run)
}

/// The frame of a run, if it was made of the journal as it is, is as it was written, and lacks nothing.
fn stored(directory: &Path, journal: &Path) -> Option<PathBuf> {
    /// The part of `verdicts.json` that is wanted.
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

fn recompute(path: &Path, metrics: &[Metric]) -> Result<Vec<Reading>, RunError> {
    computed(path, |journal, results| {
        let rows = rows_without_ceilings(journal, results);
        rows.iter().filter(|row| metrics.contains(&row.metric)).map(Reading::from).collect()
    })
}

/// What is made of a journal that is whole and does not contradict itself.
fn computed<T>(path: &Path, make: impl FnOnce(&Journal, &[CaseResult<'_>]) -> T) -> Result<T, RunError> {
    let journal = journal::read(path)?;
    if let Some(damage) = journal.unhealed().next() {
        let resumable = journal.unhealed().all(|damage| damage.numbers.is_some());
        return Err(RunError::Damaged { path: path.to_owned(), line: damage.line, resumable });
    }
    // Whose dates cannot be right is left out, and said, where runs are put in order.
    if let Some(first) = journal.contradicted() {
        return Err(RunError::Contradiction { path: path.to_owned(), first: first.clone() });
    }
    let results = results(&journal).map_err(|cause| RunError::Mismatch { path: path.to_owned(), cause })?;
    Ok(make(&journal, &results))
}
