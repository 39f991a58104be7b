//! The verdicts of a run in the steps of documents for other programs: the whole run, `[preflight]`, each test, the soak.

use railgauge_analysis::{
    journal::Journal,
    verdict::{Kind, PREFLIGHT, RUN, SOAK, Verdict, Verdicts},
};

pub(super) struct Step<'v> {
    pub(super) name: &'v str,
    /// Otherwise a test may have the same name.
    pub(super) is_test: bool,
    pub(super) verdicts: Vec<&'v Verdict>,
}

/// A step that is not a test may be empty, and so may a test that was not selected.
pub(super) fn steps<'v>(journal: &'v Journal, verdicts: &'v Verdicts) -> Vec<Step<'v>> {
    // `None` for verdicts of tests.
    let other = |verdict: &Verdict| match verdict.kind {
        Kind::Run | Kind::Records | Kind::Hosts | Kind::Configure => Some(RUN),
        Kind::Preflight => Some(PREFLIGHT),
        Kind::Soak => Some(SOAK),
        Kind::Expectation | Kind::EveryCase | Kind::Parts | Kind::Links => None,
    };
    let step = |name: &'v str, is_test: bool| {
        let of_step = |verdict: &&Verdict| match other(verdict) {
            Some(other) => !is_test && other == name,
            None => is_test && verdict.test == name,
        };
        Step { name, is_test, verdicts: verdicts.verdicts.iter().filter(of_step).collect() }
    };
    let tests: Vec<&'v String> = match &journal.plan.subset {
        Some(part) => part.of_tests.iter().collect(),
        None => journal.plan.tests.iter().map(|test| &test.name).collect(),
    };
    let tests = tests.into_iter().map(|test| step(test, true));
    [step(RUN, false), step(PREFLIGHT, false)].into_iter().chain(tests).chain([step(SOAK, false)]).collect()
}
