//! The content of one run directory, without its values: enough for a list of runs and for the states of components.
//!
//! A `verdicts.json` that belongs to the records (it contains their CRC-32) is used. Otherwise the run is judged from its records. An
//! unreadable run says why.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use jiff::{SignedDuration, Timestamp};
use railgauge_analysis::{
    history::{numbers, shape},
    journal::JournalEnd,
    parallel::map_few,
    status::Status,
    sums::Sums,
    verdict::{Cases, Judged as Judgement, Kind, Measured, Offender, Tally, Untested, VERSION},
};
use railgauge_model::{
    border::text::path_text,
    directory::{JOURNAL, PAGE, VERDICTS},
    files,
    journal::{event::Event, line},
    plan::{Plan, model::Subset},
};
use railgauge_report::index::{Outcome, Row};
use serde::Deserialize;
use serde_json::Value;

use super::judged::Judged;

/// By how much the clock of the asking machine may be behind the one that measured.
pub(super) const AHEAD: SignedDuration = SignedDuration::from_mins(10);
const AT_ONCE: usize = 8;
const CHUNK: usize = 1 << 20;
/// Longest line that is kept, in bytes: the first holds the whole plan.
const LONGEST: usize = 64 << 20;

#[derive(Debug)]
pub struct Summary {
    pub directory: PathBuf,
    pub began: Timestamp,
    pub ended: Timestamp,
    pub row: Row,
    /// `None` where it cannot be judged.
    pub said: Option<Document>,
}

#[derive(Debug, Deserialize)]
pub struct Document {
    version: u32,
    run_id: String,
    plan: String,
    pub(super) status: Status,
    run_exit_code: Option<u8>,
    sentence: String,
    pub(super) cases: Cases,
    pub(super) verdicts: Vec<Verdict>,
    #[serde(default)]
    pub(super) subset: Option<Subset>,
    #[serde(default)]
    pub(super) places: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) untested: Vec<Untested>,
    #[serde(default)]
    pub(super) components: Vec<Measured>,
    sums: Option<Sums>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Verdict {
    pub(super) kind: Kind,
    pub(super) test: String,
    #[serde(default)]
    pub(super) key: Option<String>,
    pub(super) demand: String,
    pub(super) status: Status,
    pub(super) waived: bool,
    pub(super) reason: String,
    pub(super) offenders: Vec<Offender>,
    pub(super) tally: Tally,
}

impl Document {
    pub(super) fn with(&self, status: Status) -> impl Iterator<Item = &Verdict> {
        self.verdicts.iter().filter(move |verdict| verdict.status == status && !verdict.waived)
    }
}

/// The runs as of a time, newest first.
pub(super) fn summaries(directories: &[PathBuf], now: Timestamp) -> Vec<Summary> {
    let mut runs = map_few(directories, AT_ONCE, |directory| summary(directory, now));
    place_undated(&mut runs);
    runs.sort_by(|a, b| (b.began, &b.directory).cmp(&(a.began, &a.directory)));
    runs
}

/// Files of a run without a date may have been changed long after it: such a run is placed between its neighbours by name.
fn place_undated(runs: &mut [Summary]) {
    let names: Vec<String> = runs.iter().map(|run| path_text(&run.directory).to_string()).collect();
    let dated: Vec<usize> = (0..runs.len()).filter(|&at| runs[at].row.began_is_known).collect();
    for at in (0..runs.len()).filter(|at| !dated.contains(at)) {
        let own = numbers(&names[at]);
        let like = dated.iter().filter(|&&other| shape(&names[other]) == shape(&names[at]));
        let (before, after): (Vec<usize>, Vec<usize>) = like.partition(|&&other| numbers(&names[other]) < own);
        let earliest = before.iter().map(|&at| runs[at].began).max().unwrap_or(Timestamp::MIN);
        let latest = after.iter().map(|&at| runs[at].began).min().unwrap_or(Timestamp::MAX);
        // Names that do not follow the dates are not used.
        if earliest <= latest {
            let placed = runs[at].began.clamp(earliest, latest);
            if placed != runs[at].began {
                (runs[at].began, runs[at].ended) = (placed, placed);
            }
        }
    }
}

fn summary(directory: &Path, now: Timestamp) -> Summary {
    let skim = Skim::of(&directory.join(JOURNAL));
    let first = skim.as_ref().ok().and_then(|skim| first_of(&skim.first));
    // A run of a clock that was ahead would hide all later ones.
    let began = first.as_ref().and_then(|first| first.at).filter(|at| at.duration_since(now) <= AHEAD);
    let is_imported = first.as_ref().is_some_and(|first| first.is_imported);
    let mut row = Row {
        directory: path_text(directory).to_string(),
        run_id: first.as_ref().map(|first| first.run_id.clone()).unwrap_or_default(),
        plan: first.and_then(|first| first.plan).unwrap_or_default(),
        began_is_known: began.is_some(),
        ..Row::default()
    };
    let began = began.unwrap_or_else(|| changed(directory));
    row.began = began.to_string();
    let (mut ended, mut said) = (began, None);
    match skim {
        Err(error) => row.sentence = format!("{} cannot be read: {error}", path_text(directory.join(JOURNAL))),
        Ok(_) if is_imported => {
            row.outcome = Outcome::Imported;
            row.sentence = "Another tool measured it, and nothing is judged.".to_owned();
        }
        Ok(skim) => {
            let last = first_of(&skim.last).and_then(|last| last.at);
            row.seconds = last.filter(|_| row.began_is_known).map(|last| last.duration_since(began).as_secs().max(0));
            ended = last.unwrap_or(began);
            said = believed(directory, &skim.sum);
            match &said {
                Some(said) => judged(&mut row, said),
                None => said = from_records(&mut row, directory),
            }
        }
    }
    Summary { directory: directory.to_owned(), began, ended, row, said }
}

fn believed(directory: &Path, sum: &str) -> Option<Document> {
    let said: Document = serde_json::from_slice(&files::read(&directory.join(VERDICTS)).ok()?).ok()?;
    (said.version == VERSION && said.sums.as_ref()?.journal == sum).then_some(said)
}

/// Judges a run again: its report is of other records, or missing.
fn from_records(row: &mut Row, directory: &Path) -> Option<Document> {
    let made = Judged::read(directory).map_err(|error| error.to_string()).and_then(|run| {
        let text = run.verdicts.json().map_err(|error| error.to_string())?;
        Ok((serde_json::from_str::<Document>(&text).map_err(|error| error.to_string())?, run))
    });
    let (said, run) = match made {
        Err(why) => {
            row.sentence = why;
            return None;
        }
        Ok(made) => made,
    };
    judged(row, &said);
    match run.journal.end {
        JournalEnd::Running => row.outcome = Outcome::Running,
        _ if directory.join(PAGE).symlink_metadata().is_ok() => {
            row.remarks.push("The report is not of these records: `railgauge report` renders it again.".to_owned());
        }
        _ => row.remarks.push("The report is missing: `railgauge report` renders it.".to_owned()),
    }
    if run.journal.end != JournalEnd::Running && !run.is_whole() {
        row.outcome = Outcome::Damaged;
    }
    Some(said)
}

fn judged(row: &mut Row, said: &Document) {
    row.outcome = said.status.into();
    // 130 if interrupted, 4 if it could not continue, none if the process was killed.
    if !matches!(said.run_exit_code, Some(0 | 1 | 3)) {
        row.outcome = Outcome::Unfinished;
    }
    if said.sums.as_ref().is_some_and(|sums| !sums.whole) {
        row.outcome = Outcome::Damaged;
    }
    // From the first line, as every reader of a directory does.
    if row.plan.is_empty() {
        row.plan.clone_from(&said.plan);
    }
    row.run_id.clone_from(&said.run_id);
    row.sentence.clone_from(&said.sentence);
    row.cases = Some((said.cases.measured as u64, said.cases.planned as u64));
    row.failures = said.with(Status::Fail).count() as u64;
    let found = said.components.iter().flat_map(|of| &of.components).filter(|one| one.state == Some(Judgement::Faulty));
    row.faulty = found.map(|one| one.name.clone()).collect::<BTreeSet<_>>().into_iter().collect();
    row.is_part = said.subset.is_some();
}

#[derive(Debug)]
struct First {
    at: Option<Timestamp>,
    plan: Option<String>,
    run_id: String,
    is_imported: bool,
}

/// Reads a line without checking its sum: used only to sort runs.
fn first_of(line: &[u8]) -> Option<First> {
    #[derive(Deserialize)]
    struct Line {
        at: String,
        event: Value,
    }
    let line: Line = serde_json::from_slice(line).ok()?;
    let of = |key: &str| line.event.get("Started")?.get(key)?.as_str().map(str::to_owned);
    Some(First {
        at: line.at.parse().ok(),
        plan: of("plan"),
        run_id: of("run_id").unwrap_or_default(),
        is_imported: line.event.get("Imported").is_some(),
    })
}

pub(super) fn first_line(directory: &Path) -> Option<Vec<u8>> {
    let file = files::open(&directory.join(JOURNAL)).ok()?;
    let mut line = Vec::new();
    BufReader::new(file).take(LONGEST as u64).read_until(b'\n', &mut line).ok()?;
    Some(line)
}

fn changed(directory: &Path) -> Timestamp {
    let of = |path: &Path| fs::symlink_metadata(path).and_then(|about| about.modified()).ok();
    let time = of(&directory.join(JOURNAL)).or_else(|| of(directory));
    time.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(Timestamp::MIN)
}

struct Skim {
    /// Its CRC-32, as [`railgauge_analysis::sums::Sums`] has it.
    sum: String,
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Skim {
    fn of(path: &Path) -> io::Result<Self> {
        if !fs::symlink_metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let mut file = BufReader::with_capacity(CHUNK, files::open(path)?);
        let (mut sum, mut first, mut last, mut line) = (crc32fast::Hasher::new(), Vec::new(), Vec::new(), Vec::new());
        // A line that is longer than any of ours is read in pieces, which do not parse.
        while file.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line)? > 0 {
            sum.update(&line);
            if first.is_empty() {
                first.clone_from(&line);
            }
            if line.ends_with(b"\n") {
                std::mem::swap(&mut last, &mut line);
            }
            line.clear();
        }
        Ok(Self { sum: format!("{:08x}", sum.finalize()), first, last })
    }
}

pub(super) fn plan_of(run: &Path) -> Option<Box<Plan>> {
    match line::decode(&first_line(run)?, None).ok()?.line.event {
        Event::Started { resolved, .. } => Some(resolved),
        _ => None,
    }
}
