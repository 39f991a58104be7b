//! What the report of the newest run says: a trend is no better than that.

use std::collections::BTreeMap;

use railgauge_model::border::text::path_text;
use railgauge_stats::Refusal;
use serde::Serialize;

use super::{
    assemble::Order,
    history::{History, Past},
    lines::Lines,
};
use crate::analysis::{
    compare::interleaved,
    journal::{self, JournalError},
    results::{Mismatch, results},
    rows::rows,
    verdict::{Status, verdicts},
};

/// What the report of a run says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reported {
    /// The run's directory.
    pub directory: String,
    /// Its status.
    pub status: Status,
    /// It in a sentence.
    pub sentence: String,
}

impl History {
    /// Judges the newest run of the last night as its report does; of several plans the newest run of each. To be called when
    /// all runs were added, and before the trend is made.
    pub fn report_last(&mut self) {
        self.reported = self.newest().into_iter().map(reported).collect();
    }

    /// The newest run of every plan of the last night.
    fn newest(&self) -> Vec<&Past> {
        let order = Order::new(&self.past);
        let lines = Lines::new(&self.past, &order.runs, &self.said);
        let last = (0..order.days.len()).filter(|&at| Some(&order.days[at]) == order.days.last());
        // By the plan with all its edits, and not by its name: two clusters may be watched by plans of one name.
        let newest: BTreeMap<usize, &Past> = last.map(|at| order.at(at)).map(|run| (lines.of(run.plan), run)).collect();
        newest.into_values().collect()
    }
}

/// Why a run has no verdict.
#[derive(Debug, thiserror::Error)]
enum Unjudged {
    #[error("it ended before it measured anything; run the plan again")]
    Unmeasured,
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    #[error(transparent)]
    Statistic(#[from] Refusal),
}

/// Judges a run. What cannot be judged is inconclusive, with the reason.
fn reported(run: &Past) -> Reported {
    let path = &run.path;
    let judged = || {
        if run.planned.is_none() {
            return Err(Unjudged::Unmeasured);
        }
        let journal = journal::read(&path.join("records.jsonl"))?;
        let results = results(&journal)?;
        let rows = rows(&journal, &results);
        let turns = interleaved(&journal, &results)?;
        let found = verdicts(&journal, &results, &rows, turns);
        Ok((found.status, found.sentence))
    };
    let (status, sentence) = judged().unwrap_or_else(|why| (Status::Inconclusive, why.to_string()));
    Reported { directory: path_text(path), status, sentence }
}
