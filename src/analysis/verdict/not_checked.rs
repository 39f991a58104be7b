//! What could not be checked of a test's measurements. It is decided here for the document, JUnit, the terminal and the page.

use std::{collections::BTreeMap, fmt};

use serde::Serialize;

use crate::analysis::{
    results::{CaseResult, Uncounted},
    words::count,
};

/// An end whose bytes on the wire were not compared with the payload, and in how many cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotChecked {
    /// The whole in words.
    pub words: String,
    /// Cases of the test.
    pub cases: usize,
    /// The end, and why.
    #[serde(flatten)]
    pub end: Uncounted,
}

impl fmt::Display for NotChecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.words, count(self.cases, "case"))
    }
}

/// What was not checked of these cases, each end and reason once, by host.
pub fn not_checked<'r>(results: impl Iterator<Item = &'r CaseResult<'r>>) -> Vec<NotChecked> {
    let mut ends: BTreeMap<&Uncounted, usize> = BTreeMap::new();
    for end in results.flat_map(|result| &result.uncounted) {
        *ends.entry(end).or_default() += 1;
    }
    ends.into_iter().map(|(end, cases)| NotChecked { words: end.to_string(), cases, end: end.clone() }).collect()
}
