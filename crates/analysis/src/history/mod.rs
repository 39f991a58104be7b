//! Several runs together, as input of comparisons and trends.
//!
//! The identity of a run is from the head of the journal. Values are from the needed columns of `records.parquet`, if the sums in
//! `verdicts.json` show that both are unchanged and belong together. Otherwise the values are computed from the journal.

mod causes;
mod head;
mod names;
mod places;
mod read_all;
mod run;
mod slots;
mod stays;
mod subject;
mod swaps;

use std::path::{Path, PathBuf};

use railgauge_model::{
    directory::{FRAME, JOURNAL, VERDICTS},
    files,
};
use railgauge_wire::Metric;

use super::{
    case::CaseResult,
    frames::FrameFile,
    imported,
    journal::{self, Journal},
    results::results,
    row::Reading,
    rows::rows_without_ceilings,
    sums::Sums,
};

pub use causes::{Cause, EVERY, Labels, common};
pub use names::{numbers, shape};
pub use places::{NoRuns, each_once, real, run_directories, without_repeats};
pub use read_all::read_all;
pub use run::{Run, RunError};
pub use slots::{By, Fitted, PartKind, Slot, fitted};
pub use stays::{Seated, Stay, Stays};
pub use subject::{Subject, cell_words};
pub use swaps::Swap;

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

/// # Errors
/// The journal or the frame cannot be read, or the run never planned a case.
pub fn read(directory: &Path, metrics: &[Metric], frames: &dyn FrameFile) -> Result<Run, RunError> {
    let journal = directory.join(JOURNAL);
    if let Some(imported) = imported::read(&journal)? {
        let (tools, run) = (imported.tools(), Box::new(Run::of_import(&imported, directory, metrics)));
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
