//! The frame of a run, for who asks for rows and compares nothing.

use std::{
    io::{BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use railgauge_model::{
    directory::JOURNAL,
    files,
    journal::{event::Event, line},
};

use super::{RunError, computed, imported, stored};
use crate::analysis::{
    frame::{self, Frame, FrameError},
    journal::{Journal, JournalEnd},
    results::CaseResult,
    rows::rows,
};

/// More bytes than the last line of a run that came to its end has.
const LAST: u64 = 4096;

/// Columns of a run's frame.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFrame {
    /// The wanted columns.
    pub frame: Frame,
    /// What wrote the outputs, where the run was imported.
    pub imported: Option<String>,
    /// Whether the run came to its end; cases of one that did not may be missing.
    pub is_whole: bool,
}

/// Columns of the frame of a run. They are read from `records.parquet` where that is what the journal makes, else made anew.
///
/// # Errors
/// The journal or the frame cannot be read, or the journal is damaged or contradicts itself.
pub fn frame_of(directory: &Path, columns: &[&str]) -> Result<RunFrame, RunError> {
    let journal = directory.join(JOURNAL);
    if let Some(found) = imported::read(&journal)? {
        let frame = frame::select(&frame::frame(&found.rows())?, columns)?;
        return Ok(RunFrame { frame, imported: Some(found.tools()), is_whole: true });
    }
    if let Some(path) = stored(directory, &journal) {
        let frame = frame::read_parquet(&path, columns)?;
        return Ok(RunFrame { frame, imported: None, is_whole: is_finished(&journal) });
    }
    let made = |journal: &Journal, results: &[CaseResult<'_>]| {
        Ok::<_, FrameError>((frame::frame(&rows(journal, results))?, journal.end == JournalEnd::Finished))
    };
    let (made, is_whole) = computed(&journal, made)??;
    Ok(RunFrame { frame: frame::select(&made, columns)?, imported: None, is_whole })
}

/// Whether the last line of a journal says that the run came to its end. The journal was read before: what cannot be read is no end.
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
