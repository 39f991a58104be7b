//! A run, read and judged from its records alone. What an earlier report left beside them is not looked at: it may be of another
//! time.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use railgauge_model::directory::JOURNAL;

use super::newest::named;

use crate::analysis::{
    compare::interleaved,
    history::NoRuns,
    journal::{self, Journal, JournalEnd, JournalError},
    results::{Mismatch, results},
    row::Row,
    rows::rows,
    soak::span::moment,
    verdict::{Verdicts, verdicts},
};
use crate::report::{self, view::Banner};

/// Why nothing can be said of a run.
#[derive(Debug, thiserror::Error)]
pub enum NightError {
    /// There is no run.
    #[error("{0}")]
    NoRuns(NoRuns),
    /// Runs of several plans, and none is named.
    #[error("`{word}` holds runs of several plans ({}): say which with --plan", plans.join(", "))]
    SeveralPlans {
        /// What was asked for.
        word: String,
        /// Their names.
        plans: Vec<String>,
    },
    /// No run of the plan that is named.
    #[error("`{word}` holds no run of plan `{plan}`; it has runs of {}: say which with --plan", plans.join(", "))]
    NoPlan {
        /// What was asked for.
        word: String,
        /// The plan that was named.
        plan: String,
        /// The plans of the runs that are there.
        plans: Vec<String>,
    },
    /// All runs are of a part of their plan.
    #[error("`{word}` holds no run of a whole plan, only runs of a part of it")]
    OnlyParts {
        /// What was asked for.
        word: String,
    },
    /// The records cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The records do not belong together.
    #[error("{path}: {cause}")]
    Mismatch {
        /// The file.
        path: String,
        /// What does not belong together.
        cause: Mismatch,
    },
    /// The run's tests in turn cannot be compared; in words.
    #[error("{path}: {cause}")]
    Turns {
        /// The file.
        path: String,
        /// The words.
        cause: String,
    },
    /// The records have a time that is none.
    #[error("{path}: `{time}` is no time")]
    Time {
        /// The file.
        path: String,
        /// What stands there.
        time: String,
    },
}

/// A run and what it came to.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Its directory; empty where it was not read from one.
    pub directory: PathBuf,
    /// Its records.
    journal: Journal,
    /// The values of its tests.
    pub rows: Vec<Row>,
    /// Its verdicts.
    pub verdicts: Verdicts,
    /// When it began.
    pub began: Timestamp,
    /// When its last record was written.
    pub ended: Timestamp,
}

impl Judged {
    /// Reads and judges a run directory.
    ///
    /// # Errors
    /// Its records cannot be read, or contradict themselves.
    pub fn read(run: &Path) -> Result<Self, NightError> {
        let path = run.join(JOURNAL);
        Ok(Self { directory: run.to_owned(), ..Self::of(journal::read(&path)?, &named(run))? })
    }

    /// Judges a journal; `path` is what errors name.
    ///
    /// # Errors
    /// The records contradict themselves.
    pub fn of(journal: Journal, path: &str) -> Result<Self, NightError> {
        let path = || path.to_owned();
        let results = results(&journal).map_err(|cause| NightError::Mismatch { path: path(), cause })?;
        let rows = rows(&journal, &results);
        let turns = interleaved(&journal, &results)
            .map_err(|cause| NightError::Turns { path: path(), cause: cause.to_string() })?;
        let verdicts = verdicts(&journal, &results, &rows, turns);
        let time = |text: &str| {
            text.parse::<Timestamp>().map_err(|_| NightError::Time { path: path(), time: text.to_owned() })
        };
        let (began, ended) = (time(&journal.time.0)?, time(&journal.time.1)?);
        drop(results);
        Ok(Self { directory: PathBuf::new(), journal, rows, verdicts, began, ended })
    }

    /// What the report's banner says: which part is bad, and the first thing to do; `None` where no report can be drawn.
    pub fn banner(&self) -> Option<Banner> {
        Some(report::draw(&self.journal, Path::new(JOURNAL)).ok()?.view.banner)
    }

    /// How it ended.
    pub fn end(&self) -> &JournalEnd {
        &self.journal.end
    }

    /// Whether its records are as they were written. Where they are not, nothing is certain.
    pub fn is_whole(&self) -> bool {
        self.journal.unhealed().next().is_none() && self.journal.contradictions.is_empty()
    }

    /// Names of the hosts of its plan.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.journal.plan.hosts.iter().map(|host| host.name.as_str())
    }

    /// How many hosts answered and stayed, and how many were lost.
    pub fn answered(&self) -> (usize, usize) {
        let Journal { hosts, lost, .. } = &self.journal;
        (hosts.keys().filter(|host| !lost.contains_key(*host)).count(), lost.len())
    }

    /// Whether this run says whether a host is bad: it came to its end, its records are whole, the host was not lost, and a case with it
    /// has a value that may be trusted.
    pub fn has_judged(&self, host: &str) -> bool {
        let measured = |row: &Row| {
            row.value.is_some() && row.error.is_none() && (*row.src_host == *host || *row.dst_host == *host)
        };
        self.end() == &JournalEnd::Finished
            && self.is_whole()
            && !self.journal.lost.contains_key(host)
            && self.rows.iter().any(measured)
    }

    /// When and why a host was lost, in words; `None` where it was not, or came back.
    pub fn lost(&self, host: &str) -> Option<String> {
        let failure = self.journal.lost.get(host)?.clone().unnamed();
        if !self.journal.hosts.contains_key(host) {
            return Some(format!("it did not answer: {failure}"));
        }
        let at = self.journal.losses.iter().rev().find(|loss| loss.host == host).and_then(|loss| loss.at);
        let at = at.map_or_else(String::new, |at| format!(" at {}", moment(at)));
        Some(format!("its agent was lost{at}: {failure}"))
    }

    /// The version of railgauge that measured.
    pub fn version(&self) -> &str {
        &self.journal.version
    }
}
