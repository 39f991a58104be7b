//! The frame of a run, for callers that need rows without a comparison.

use std::{
    io::{BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use railgauge_analysis::{
    case::CaseResult,
    frames::FrameError,
    history::{RunError, computed, stored},
    imported,
    journal::{Journal, JournalEnd},
    rows::rows,
};
use railgauge_model::{
    directory::JOURNAL,
    files,
    journal::{event::Event, line},
};

use super::{Frame, frame, read_parquet, select};

/// Upper bound in bytes of the last line of a finished run.
const LAST: u64 = 4096;

#[derive(Debug, Clone, PartialEq)]
pub struct RunFrame {
    pub frame: Frame,
    pub imported: Option<String>,
    /// Whether the run finished; otherwise cases may be missing.
    pub is_whole: bool,
}

/// From `records.parquet` if the journal makes the same, otherwise from the journal.
///
/// # Errors
/// The journal or the frame cannot be read, or the journal is damaged or contradicts itself.
pub fn frame_of(directory: &Path, columns: &[&str]) -> Result<RunFrame, RunError> {
    let journal = directory.join(JOURNAL);
    if let Some(found) = imported::read(&journal)? {
        let frame = select(&frame(&found.rows())?, columns)?;
        return Ok(RunFrame { frame, imported: Some(found.tools()), is_whole: true });
    }
    if let Some(path) = stored(directory, &journal) {
        let frame = read_parquet(&path, columns)?;
        return Ok(RunFrame { frame, imported: None, is_whole: is_finished(&journal) });
    }
    let made = |journal: &Journal, results: &[CaseResult<'_>]| {
        Ok::<_, FrameError>((frame(&rows(journal, results))?, journal.end == JournalEnd::Finished))
    };
    let (made, is_whole) = computed(&journal, made)??;
    Ok(RunFrame { frame: select(&made, columns)?, imported: None, is_whole })
}

/// By the last line of a journal, which was read before: an unreadable end is not a finished one.
fn is_finished(journal: &Path) -> bool {
    let ends = || {
        let mut file = BufReader::new(files::open(journal)?);
        let mut first = Vec::new();
        file.read_until(b'\n', &mut first)?;
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(LAST)))?;
        let mut end = Vec::new();
        file.take(LAST).read_to_end(&mut end)?;
        Ok::<_, std::io::Error>((first, end))
    };
    let Ok((first, end)) = ends() else { return false };
    let line = end.strip_suffix(b"\n").unwrap_or(&end).rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    line::decode(line, line::run_of(&first).as_deref()).is_ok_and(|read| read.line.event == Event::Finished)
}
