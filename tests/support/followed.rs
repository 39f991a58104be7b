//! Runs that measured their suspects again.

use std::path::Path;

use railgauge_analysis::{journal::parse, localise::further, results::results, rows::rows};
use railgauge_model::journal::event::Case;

use super::{Scenario, continued};

/// The journal of a run that measured its suspects again, on a cluster that may have changed meanwhile, and the further cases.
pub fn followed_up(before: &Scenario, after: &Scenario) -> (String, Vec<Case>) {
    let cases = wanted(&before.jsonl());
    (continued(&before.jsonl(), &after.further(&cases)), cases)
}

/// What is wanted beside a journal.
pub fn wanted(text: &str) -> Vec<Case> {
    let journal = parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    let results = results(&journal).unwrap();
    further(&journal, &results, &rows(&journal, &results))
}
