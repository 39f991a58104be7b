//! The verdicts as JUnit XML: one test case per verdict, and one per case that was not simply measured.

use std::time::Duration;

use jiff::Timestamp;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::analysis::{
    journal::Journal,
    localise::{Localisation, Named},
    verdict::{Kind, PREFLIGHT, Status, Trouble, Verdict, Verdicts},
    words::size,
};

/// The document. Times come from the journal, so that the same records give the same bytes.
///
/// # Errors
/// The XML cannot be written, in words.
pub(super) fn document(verdicts: &Verdicts, journal: &Journal) -> Result<String, String> {
    let mut report = Report::new(format!("railgauge {}", verdicts.plan));
    if let Some(duration) = duration(journal) {
        report.set_time(duration);
    }
    let of = |kind: &dyn Fn(&Verdict) -> bool, suite: &mut TestSuite| {
        for verdict in verdicts.verdicts.iter().filter(|verdict| kind(verdict)) {
            suite.add_test_case(of_verdict(verdicts, verdict));
        }
    };
    let mut wanted = TestSuite::new(PREFLIGHT);
    of(&|verdict| verdict.kind == Kind::Preflight, &mut wanted);
    if !wanted.test_cases.is_empty() {
        report.add_test_suite(wanted);
    }
    for test in &journal.plan.tests {
        let mut suite = TestSuite::new(test.name.clone());
        of(&|verdict| verdict.kind != Kind::Preflight && verdict.test == test.name, &mut suite);
        for trouble in verdicts.troubles.iter().filter(|trouble| trouble.test == test.name) {
            suite.add_test_case(of_trouble(verdicts, trouble));
        }
        if let Some(found) = verdicts.localisation.iter().find(|found| found.test == test.name) {
            suite.set_system_out(parts(found));
        }
        report.add_test_suite(suite);
    }
    report.to_string().map_err(|error| error.to_string())
}

fn of_verdict(verdicts: &Verdicts, verdict: &Verdict) -> TestCase {
    let name = format!("{} [{}]", verdict.demand, verdict.scope);
    let mut status = match verdict.waived && verdict.status != Status::Pass {
        true => TestCaseStatus::skipped(),
        false => status(verdict.status),
    };
    status.set_message(verdict.reason.clone());
    let mut case = TestCase::new(name, status);
    case.set_classname(format!("{}.{}", verdicts.plan, verdict.test));
    case
}

/// What stands out, a line for each part: it explains a failure and is none by itself.
fn parts(found: &Localisation) -> String {
    match found.suspects.as_slice() {
        [] if found.good.is_empty() => found.remarks.join("; "),
        [] => "no part stands out".to_owned(),
        parts => {
            let line = |part: &Named| format!("{}: {}: {}", part.standing.word(), part.name, part.reason);
            parts.iter().map(line).collect::<Vec<_>>().join("\n")
        }
    }
}

fn status(status: Status) -> TestCaseStatus {
    match status {
        Status::Pass => TestCaseStatus::success(),
        Status::Fail => kind(NonSuccessKind::Failure, "fail"),
        // Neither may look green: JUnit's readers show an error as loudly as a failure.
        Status::Inconclusive => kind(NonSuccessKind::Error, "inconclusive"),
        Status::NotRun => kind(NonSuccessKind::Error, "not-run"),
    }
}

fn kind(kind: NonSuccessKind, word: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(word);
    status
}

fn of_trouble(verdicts: &Verdicts, trouble: &Trouble) -> TestCase {
    let wrong = trouble.state == "wrong bytes";
    let mut status = kind(if wrong { NonSuccessKind::Failure } else { NonSuccessKind::Error }, &trouble.state);
    status.set_message(trouble.error.clone());
    let mut name = format!(
        "case {}: {} {} {}: {}",
        trouble.case,
        trouble.test,
        trouble.op,
        size(trouble.size_bytes),
        trouble.link
    );
    if !trouble.variant.is_empty() {
        name = format!("{name}, {}", trouble.variant);
    }
    let mut case = TestCase::new(name, status);
    case.set_classname(format!("{}.{}", verdicts.plan, trouble.test));
    case
}

fn duration(journal: &Journal) -> Option<Duration> {
    let (start, end) = (journal.time.0.parse::<Timestamp>().ok()?, journal.time.1.parse::<Timestamp>().ok()?);
    Duration::try_from(end.duration_since(start)).ok()
}
