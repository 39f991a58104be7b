//! Tests of whose values nothing is demanded: a pass says nothing of them.

use super::{Kind, Verdicts};
use crate::analysis::{journal::Journal, words::count};

/// Tests that are named.
const NAMED: usize = 8;

/// In a sentence, which tests have no limit; `None` where all have one.
pub fn unlimited(journal: &Journal, verdicts: &Verdicts) -> Option<String> {
    let is_limited = |name: &str| verdicts.verdicts.iter().any(|one| one.kind == Kind::Expectation && one.test == name);
    let tests = journal.plan.tests.iter().map(|test| test.name.as_str());
    let names: Vec<&str> = tests.filter(|name| !is_limited(name)).collect();
    let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let (listed, whose) = match names.len() {
        0 => return None,
        1 => (shown, "its"),
        all if all <= NAMED => (shown, "their"),
        all => (format!("{shown} and {}", count(all - NAMED, "more test")), "their"),
    };
    // Whether they have any is said elsewhere.
    Some(format!("The plan sets no limit for {listed}: {whose} values are not judged."))
}
