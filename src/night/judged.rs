//! A run, read and judged from its records only. An earlier report is ignored: it may be outdated.

use std::{fmt::Display, path::Path};

use jiff::Timestamp;
use railgauge_analysis::{
    compare::interleaved,
    history::NoRuns,
    journal::{self, Journal, JournalError},
    results::results,
    row::Row,
    rows::rows,
    verdict::{Verdicts, verdicts},
};
use railgauge_model::{border::text::path_text, directory::JOURNAL};

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
    Unjudged { path: String, cause: String },
}

#[derive(Debug, Clone)]
pub struct Judged {
    pub(super) journal: Journal,
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
        let unjudged = |cause: &dyn Display| NightError::Unjudged { path: path.to_owned(), cause: cause.to_string() };
        let results = results(&journal).map_err(|cause| unjudged(&cause))?;
        let rows = rows(&journal, &results);
        let turns = interleaved(&journal, &results).map_err(|cause| unjudged(&cause))?;
        let verdicts = verdicts(&journal, &results, &rows, turns);
        drop(results);
        let time = |text: &str| text.parse::<Timestamp>().map_err(|cause| unjudged(&cause));
        let (began, ended) = (time(&journal.time.0)?, time(&journal.time.1)?);
        Ok(Self { journal, rows, verdicts, began, ended })
    }

    pub(super) fn is_whole(&self) -> bool {
        self.journal.unhealed().next().is_none() && self.journal.contradictions.is_empty()
    }
}
