//! A run, read and judged from its records only. An earlier report is ignored: it may be outdated.

use std::path::Path;

use jiff::Timestamp;
use railgauge_analysis::{
    compare::interleaved,
    history::NoRuns,
    journal::{self, Journal, JournalEnd, JournalError},
    results::{Mismatch, results},
    row::Row,
    rows::rows,
    verdict::{Verdicts, verdicts},
};
use railgauge_model::{border::text::path_text, directory::JOURNAL};
use railgauge_report::{self as report, view::Banner};

#[derive(Debug, thiserror::Error)]
pub enum NightError {
    #[error("{0}")]
    NoRuns(NoRuns),
    #[error("`{word}` holds runs of several plans ({}): say which with --plan", plans.join(", "))]
    SeveralPlans { word: String, plans: Vec<String> },
    #[error("`{word}` holds no run of plan `{plan}`; it has runs of {}: say which with --plan", plans.join(", "))]
    NoPlan {
        word: String,
        plan: String,
        /// Plans of the existing runs.
        plans: Vec<String>,
    },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("{path}: {cause}")]
    Mismatch {
        path: String,
        /// Which records contradict each other.
        cause: Mismatch,
    },
    #[error("{path}: {cause}")]
    Turns { path: String, cause: String },
    #[error("{path}: `{time}` is no time")]
    Time { path: String, time: String },
}

#[derive(Debug, Clone)]
pub struct Judged {
    journal: Journal,
    pub rows: Vec<Row>,
    pub verdicts: Verdicts,
    pub began: Timestamp,
    pub ended: Timestamp,
}

impl Judged {
    pub fn read(run: &Path) -> Result<Self, NightError> {
        let path = run.join(JOURNAL);
        Self::of(journal::read(&path)?, &path_text(&path).to_string())
    }

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
        Ok(Self { journal, rows, verdicts, began, ended })
    }

    /// The report's banner: which part is bad, and the first thing to do; `None` where no report can be rendered.
    pub fn banner(&self) -> Option<Banner> {
        Some(report::draw(&self.journal, Path::new(JOURNAL)).ok()?.view.banner)
    }

    pub fn end(&self) -> &JournalEnd {
        &self.journal.end
    }

    pub fn is_whole(&self) -> bool {
        self.journal.unhealed().next().is_none() && self.journal.contradictions.is_empty()
    }

    pub fn answered(&self) -> (usize, usize) {
        let Journal { hosts, lost, .. } = &self.journal;
        (hosts.keys().filter(|host| !lost.contains_key(*host)).count(), lost.len())
    }

    pub fn version(&self) -> &str {
        &self.journal.version
    }
}
