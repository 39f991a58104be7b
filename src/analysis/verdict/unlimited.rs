//! Tests of whose values nothing is demanded: a pass says nothing of them.

use super::{Kind, Verdicts};
use crate::{analysis::journal::Journal, analysis::words::count};

/// Tests that are named.
const NAMED: usize = 8;

/// In a sentence, which tests have no limit; `None` where all have one.
pub fn unlimited(journal: &Journal, verdicts: &Verdicts) -> Option<String> {
    let is_limited = |name: &str| verdicts.verdicts.iter().any(|one| one.kind == Kind::Expectation && one.test == name);
    let names: Vec<&str> =
        journal.plan.tests.iter().map(|test| test.name.as_str()).filter(|name| !is_limited(name)).collect();
    let more = names.len().saturating_sub(NAMED);
    let listed = names.get(..NAMED.min(names.len())).unwrap_or_default().join(", ");
    let listed = if more > 0 { format!("{listed} and {}", count(more, "more test")) } else { listed };
    let whose = if names.len() == 1 { "its" } else { "their" };
    (!names.is_empty())
        .then(|| format!("The plan sets no limit for {listed}: {whose} values are measured and not judged."))
}
