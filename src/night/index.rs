//! An index over a directory of runs: what each came to, the newest first.
//!
//! Where `verdicts.json` of a run belongs to its records (their CRC-32 stands in it), it is believed. Where it does not, or is not
//! there, the run is judged from its records. A run that cannot be read has a row that says why.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use railgauge_model::{
    border::text::path_text,
    directory::{JOURNAL, PAGE, VERDICTS},
    files,
};
use serde_json::Value;

use super::{
    judged::{Judged, NightError},
    newest::{changed, first_of, none_of},
};
use crate::{
    analysis::{history, journal::JournalEnd},
    report::index::{Index, Outcome, Row, link},
};

/// Runs that are read at the same time.
const AT_ONCE: usize = 8;
/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;
/// Longest line that is kept, in bytes: the first holds the whole plan.
const LONGEST: usize = 64 << 20;

/// The index over the runs that `word` stands for, of one plan where it is named; `page` is the directory of the page that links to them.
///
/// # Errors
/// There is no run.
pub fn index(word: &str, plan: Option<&str>, page: Option<&Path>, now: Timestamp) -> Result<Index, NightError> {
    let directories = history::run_directories(word).map_err(NightError::NoRuns)?;
    let mut found = rows(&directories, page);
    let plans = found.iter().map(|(_, row)| row.plan.clone()).filter(|plan| !plan.is_empty()).collect();
    // One whose plan cannot be read may be of any.
    found.retain(|(_, row)| plan.is_none_or(|plan| row.plan.is_empty() || row.plan == plan));
    if found.is_empty() {
        return Err(none_of(word, plan, plans));
    }
    found.sort_by(|a, b| (b.0, &b.1.directory).cmp(&(a.0, &a.1.directory)));
    let made = now.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    Ok(Index::of(word, made, found.into_iter().map(|(_, row)| row).collect()))
}

/// The rows of these directories, in no order, several read at a time.
fn rows(directories: &[PathBuf], page: Option<&Path>) -> Vec<(Timestamp, Row)> {
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(directories.len())));
    let workers = thread::available_parallelism().map_or(1, |n| n.get().min(AT_ONCE)).min(directories.len().max(1));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(directory) = directories.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let row = row(directory, page);
                    rows.lock().push(row);
                }
            });
        }
    });
    rows.into_inner()
}

/// The row of one run directory.
pub(super) fn row(directory: &Path, page: Option<&Path>) -> (Timestamp, Row) {
    let skim = Skim::of(&directory.join(JOURNAL));
    let first = skim.as_ref().ok().and_then(|skim| first_of(&skim.first));
    let began = first.as_ref().and_then(|first| first.began);
    let is_imported = first.as_ref().is_some_and(|first| first.is_imported);
    let mut row = Row {
        directory: path_text(directory).to_string(),
        page: page.and_then(|page| link(directory, page)).unwrap_or_default(),
        run_id: first.as_ref().map(|first| first.run_id.clone()).unwrap_or_default(),
        plan: first.and_then(|first| first.plan).unwrap_or_default(),
        began: String::new(),
        began_is_known: began.is_some(),
        seconds: None,
        outcome: Outcome::Unreadable,
        sentence: String::new(),
        first_bad: String::new(),
        cases: None,
        failures: 0,
        is_part: false,
        remarks: Vec::new(),
    };
    let began = began.unwrap_or_else(|| changed(directory));
    row.began = began.to_string();
    match skim {
        Err(error) => row.sentence = format!("{JOURNAL} cannot be read: {error}"),
        Ok(_) if is_imported => {
            row.outcome = Outcome::Imported;
            row.sentence = "Another tool measured it, and nothing is judged.".to_owned();
        }
        Ok(skim) => {
            let last = first_of(&skim.last).and_then(|last| last.began);
            row.seconds = last.map(|last| last.duration_since(began).as_secs().max(0));
            match believed(directory, &skim.sum) {
                Some(verdicts) => judged(&mut row, &verdicts),
                None => from_records(&mut row, directory),
            }
        }
    }
    (began, row)
}

/// `verdicts.json`, where it was made of these records.
fn believed(directory: &Path, sum: &str) -> Option<Value> {
    let verdicts: Value = serde_json::from_slice(&files::read(&directory.join(VERDICTS)).ok()?).ok()?;
    (verdicts["version"] == 1 && verdicts["sums"]["journal"] == sum).then_some(verdicts)
}

/// Judges a run anew: its report is of other records, or missing.
fn from_records(row: &mut Row, directory: &Path) {
    let judged_now = Judged::read(directory).map_err(|error| error.to_string());
    let verdicts = judged_now.and_then(|run| {
        let value = serde_json::to_value(&run.verdicts).map_err(|error| error.to_string())?;
        Ok((value, run))
    });
    match verdicts {
        Err(why) => row.sentence = why,
        Ok((value, run)) => {
            judged(row, &value);
            let has_page = directory.join(PAGE).symlink_metadata().is_ok();
            match run.end() {
                JournalEnd::Running => row.outcome = Outcome::Running,
                _ if has_page => {
                    let text = "The report is not of these records: `railgauge report` draws it again.";
                    row.remarks.push(text.to_owned());
                }
                _ => row.remarks.push("There is no report: `railgauge report` draws it.".to_owned()),
            }
            if run.end() != &JournalEnd::Running && !run.is_whole() {
                row.outcome = Outcome::Damaged;
            }
        }
    }
}

/// Takes what verdicts say into a row.
fn judged(row: &mut Row, verdicts: &Value) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let status = verdicts["status"].as_str().unwrap_or_default();
    row.outcome = match status {
        "pass" => Outcome::Pass,
        "fail" => Outcome::Fail,
        "not-run" => Outcome::NotRun,
        _ => Outcome::Inconclusive,
    };
    // 130 where it was interrupted, 4 where it could not go on, none where the process was killed.
    if !matches!(verdicts["run_exit_code"].as_u64(), Some(0 | 1 | 3)) {
        row.outcome = Outcome::Unfinished;
    }
    if verdicts["sums"]["whole"] == false {
        row.outcome = Outcome::Damaged;
    }
    row.plan = text(&verdicts["plan"]).unwrap_or_default();
    row.run_id = text(&verdicts["run_id"]).unwrap_or_default();
    row.sentence = text(&verdicts["sentence"]).unwrap_or_default();
    row.cases = Some((number(&verdicts["cases"]["measured"]), number(&verdicts["cases"]["planned"])));
    let none = Vec::new();
    let all = verdicts["verdicts"].as_array().unwrap_or(&none);
    let failed: Vec<&Value> = all.iter().filter(|one| one["status"] == "fail" && one["waived"] != true).collect();
    row.failures = failed.len() as u64;
    row.first_bad = first_bad(&failed).unwrap_or_default();
    row.is_part = verdicts["subset"].is_object();
}

/// The first part that a failed verdict names; else what the first failed verdict is about, and why.
fn first_bad(failed: &[&Value]) -> Option<String> {
    let parts = failed.iter().filter_map(|verdict| verdict["parts"].as_array()).flatten();
    let part = parts.into_iter().find(|part| part["status"] == "fail" && part["waived"] != true);
    if let Some(name) = part.and_then(|part| part["name"].as_str()) {
        let place = part.and_then(|part| part["place"].as_str()).map(|place| format!(" ({place})"));
        return Some(format!("{name}{}", place.unwrap_or_default()));
    }
    let first = failed.first()?;
    let words = [&first["test"], &first["reason"]].map(|value| value.as_str().unwrap_or_default());
    Some(format!("{}: {}", words[0], words[1]))
}

/// What a journal says without being understood.
struct Skim {
    /// Its CRC-32, as [`crate::analysis::verdict::Sums`] has it.
    sum: String,
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Skim {
    fn of(path: &Path) -> io::Result<Self> {
        let about = fs::symlink_metadata(path)?;
        if !about.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        let mut file = files::open(path)?;
        let mut sum = crc32fast::Hasher::new();
        let (mut first, mut line, mut last): (Option<Vec<u8>>, Vec<u8>, Vec<u8>) = (None, Vec::new(), Vec::new());
        let mut chunk = vec![0; CHUNK];
        loop {
            let got = match file.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                got => got?,
            };
            if got == 0 {
                break;
            }
            let mut rest = &chunk[..got];
            sum.update(rest);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                keep(&mut line, &rest[..=end]);
                last.clone_from(&line);
                first.get_or_insert_with(|| line.clone());
                line.clear();
                rest = &rest[end + 1..];
            }
            keep(&mut line, rest);
        }
        let sum = format!("{:08x}", sum.finalize());
        Ok(Self { sum, first: first.unwrap_or(line), last })
    }
}

/// A line that is longer than any of ours is not kept whole, and so will not be understood.
fn keep(line: &mut Vec<u8>, more: &[u8]) {
    if line.len() + more.len() <= LONGEST {
        line.extend_from_slice(more);
    }
}
