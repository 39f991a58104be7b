//! The beginning of a journal, up to the planned cases: it says what the run is, and the outcomes need not be read.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use jiff::Timestamp;

use super::{Run, RunError};
use crate::{
    analysis::journal::JournalError,
    run::event::{Event, Line, VERSION},
};

/// Everything of a run but its readings.
pub(super) fn read(directory: &Path, path: &Path) -> Result<Run, RunError> {
    let unreadable = |cause| JournalError::Unreadable { path: path.to_owned(), cause };
    let mut file = BufReader::with_capacity(1 << 18, File::open(path).map_err(unreadable)?);
    let mut run: Option<Run> = None;
    let (mut text, mut number) = (Vec::new(), 0);
    loop {
        text.clear();
        number += 1;
        if file.read_until(b'\n', &mut text).map_err(unreadable)? == 0 {
            break;
        }
        let foreign = |cause: String| JournalError::Foreign { path: path.to_owned(), line: number, cause };
        let line: Line = match serde_json::from_slice(&text) {
            Ok(line) => line,
            // A line that a crash tore ends what can be known of the run without reading all of it.
            Err(_) if !text.ends_with(b"\n") => break,
            Err(error) => return Err(foreign(error.to_string()).into()),
        };
        if line.v > VERSION {
            return Err(JournalError::Newer { path: path.to_owned(), line: number, found: line.v }.into());
        }
        let Some(known) = &mut run else {
            let Event::Started { run_id, plan_hash, resolved, version, .. } = line.event else {
                return Err(foreign("the first event of a journal is `Started`".to_owned()).into());
            };
            let started: Timestamp =
                line.at.parse().map_err(|_| foreign(format!("`{}` is no time of day", line.at)))?;
            run = Some(Run {
                path: directory.to_owned(),
                run_id,
                plan: *resolved,
                plan_hash,
                version,
                started,
                hosts: BTreeMap::new(),
                cases: Vec::new(),
                readings: Vec::new(),
            });
            continue;
        };
        match line.event {
            Event::HostUp { host, facts, .. } => _ = known.hosts.insert(host, *facts),
            Event::Planned { cases } => {
                known.cases = cases;
                break;
            }
            _ => {}
        }
    }
    match run {
        Some(run) if run.cases.is_empty() => Err(RunError::Unplanned { path: path.to_owned(), run: Box::new(run) }),
        Some(run) => Ok(run),
        None => Err(JournalError::Empty { path: path.to_owned() }.into()),
    }
}
