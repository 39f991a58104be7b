//! The start of a journal, up to the planned cases: it identifies the run without reading the outcomes.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::Path,
};

use railgauge_model::{
    files,
    journal::{
        event::Event,
        line::{self, LineError},
    },
    plan::limits,
};

use super::{Run, RunError};
use crate::journal::JournalError;

pub(super) fn read(directory: &Path, path: &Path) -> Result<Run, RunError> {
    let unreadable = |cause| JournalError::Unreadable { path: path.to_owned(), cause };
    let mut file = BufReader::with_capacity(1 << 18, files::open(path).map_err(unreadable)?);
    let mut run: Option<Run> = None;
    let (mut text, mut number, mut damaged, mut of) = (Vec::new(), 0, None, None);
    loop {
        text.clear();
        number += 1;
        if file.read_until(b'\n', &mut text).map_err(unreadable)? == 0 {
            break;
        }
        let foreign = |cause: String| JournalError::Foreign { path: path.to_owned(), line: number, cause };
        let line = match line::decode(&text, of.as_deref()) {
            Ok(read) => {
                of.get_or_insert(read.run);
                read.line
            }
            // The plan is in the first line: without it the run cannot be compared.
            Err(LineError::Damaged(why)) if number == 1 => return Err(foreign(why.to_owned()).into()),
            // Unless it is the line with the cases, reading the values decides whether it matters. A last line without
            // a newline was cut off.
            Err(LineError::Damaged(_)) => {
                damaged = damaged.or(text.ends_with(b"\n").then_some(number));
                continue;
            }
            Err(LineError::Unknown(why)) => return Err(foreign(why).into()),
            Err(LineError::Version(found)) => {
                return Err(JournalError::Version { path: path.to_owned(), line: number, found }.into());
            }
        };
        let Some(known) = &mut run else {
            run = Some(begun(directory, line.event, &line.at, foreign)?);
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
    let path = path.to_owned();
    match run {
        Some(run) if run.cases.is_empty() => Err(match damaged {
            Some(line) => RunError::Damaged { path, line, resumable: true },
            None => RunError::Unplanned { path, run: Box::new(run) },
        }),
        Some(run) => Ok(run),
        None => Err(JournalError::Empty { path }.into()),
    }
}

/// From the first line of a journal.
fn begun(
    directory: &Path,
    event: Event,
    at: &str,
    foreign: impl Fn(String) -> JournalError,
) -> Result<Run, JournalError> {
    let Event::Started { run_id, plan_hash, resolved, version, .. } = event else {
        return Err(foreign("the first event of a journal is `Started`".to_owned()));
    };
    if let Some(what) = limits::beyond(&resolved) {
        return Err(foreign(what));
    }
    Ok(Run {
        path: directory.to_owned(),
        run_id,
        plan: *resolved,
        plan_hash,
        version,
        imported: false,
        started: at.parse().map_err(|_| foreign(format!("`{at}` is not a time of day")))?,
        hosts: BTreeMap::new(),
        cases: Vec::new(),
        readings: Vec::new(),
    })
}
