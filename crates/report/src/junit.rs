//! The verdicts as JUnit XML: one test case per verdict, and one per case that was not simply measured.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use railgauge_analysis::{
    case::State,
    journal::{Journal, Try},
    localise::{Localisation, Named},
    reason::Placed,
    status::Status,
    verdict::{RUN, Trouble, Verdict, Verdicts},
    words::size,
};
use railgauge_model::plan::{count::capital, model::Limit, subset::Subset};

use super::{error::JunitError, steps::steps, view::View};

/// Times are from the journal, so that the same records give the same bytes.
///
/// # Errors
/// The XML cannot be written.
pub(super) fn document(verdicts: &Verdicts, view: &View, journal: &Journal) -> Result<String, JunitError> {
    let mut report = Report::new(format!("railgauge {}", verdicts.plan));
    if let Some(duration) = duration(journal) {
        report.set_time(duration);
    }
    for step in steps(journal, verdicts) {
        let mut suite = TestSuite::new(step.name.to_owned());
        if let Some(subset) = &verdicts.subset {
            suite.add_property(("subset", subset.words().as_str()));
        }
        // A pass of a test does not cover these.
        for untested in verdicts.untested.iter().filter(|untested| untested.is_in(step.name)) {
            suite.add_property(("not tested", untested.to_string().as_str()));
        }
        let mut names = Names::default();
        for verdict in &step.verdicts {
            suite.add_test_case(of_verdict(verdicts, verdict, names.next(self::name(verdict))));
        }
        if step.is_test {
            of_test(&mut suite, verdicts, view, journal);
        } else if let Some(subset) = verdicts.subset.as_ref().filter(|_| step.name == RUN) {
            suite.add_test_case(of_the_rest(verdicts, subset));
        }
        if !suite.test_cases.is_empty() {
            report.add_test_suite(suite);
        }
    }
    report.to_string().map_err(|error| JunitError(error.to_string()))
}

/// Cases of a test that were not simply measured, its time, and what stands out.
fn of_test(suite: &mut TestSuite, verdicts: &Verdicts, view: &View, journal: &Journal) {
    let test = suite.name.to_string();
    for trouble in verdicts.troubles.iter().filter(|trouble| trouble.test == test) {
        suite.add_test_case(of_trouble(verdicts, trouble));
    }
    if let Some(time) = lasted(journal, &test) {
        suite.set_time(time);
    }
    let found: Vec<&Localisation> = verdicts.localisation.iter().filter(|found| found.test == test).collect();
    if !found.is_empty() {
        suite.set_system_out(parts(&found, view));
    }
}

/// What was left out of the plan: JUnit readers show skipped cases next to passed ones.
fn of_the_rest(verdicts: &Verdicts, subset: &Subset) -> TestCase {
    let mut status = TestCaseStatus::skipped();
    let left_out = subset.left_out().map(|text| format!("{}.", capital(&text)));
    status.set_message([subset.sentence()].into_iter().chain(left_out).collect::<Vec<_>>().join(" "));
    let mut case = TestCase::new("the whole plan", status);
    case.set_classname(format!("{}.{RUN}", verdicts.plan));
    case
}

fn of_verdict(verdicts: &Verdicts, verdict: &Verdict, name: String) -> TestCase {
    let mut status = match verdict.waived && verdict.status != Status::Pass {
        true => TestCaseStatus::skipped(),
        false => status(verdict.status),
    };
    let scope = if verdict.scope.is_empty() { String::new() } else { format!(" [{}]", verdict.scope) };
    status.set_message(format!("{}{scope}: {}", verdict.demand, verdict.reason));
    let mut case = TestCase::new(name, status);
    case.set_classname(format!("{}.{}", verdicts.plan, verdict.test));
    for (key, value) in [("demand", &verdict.demand), ("scope", &verdict.scope)] {
        case.add_property((key, value.as_str()));
    }
    for (host, place) in verdict.place.iter().take(PLACES) {
        let placed = Placed { host: host.clone(), place: place.clone() };
        case.add_property(("place", placed.to_string().as_str()));
    }
    if let Some(remedy) = &verdict.remedy {
        case.add_property(("remedy", remedy.id.as_ref()));
        case.add_property(("help", remedy.text().as_str()));
    }
    case
}

/// Properties `place` of one test case.
const PLACES: usize = 16;

#[derive(Default)]
struct Names(HashMap<String, usize>);

impl Names {
    fn next(&mut self, name: String) -> String {
        let times = self.0.entry(name.clone()).or_default();
        *times += 1;
        if *times == 1 { name } else { format!("{name} #{times}") }
    }
}

/// The name of a verdict: demand, metric and scope without the limit, so that a CI's history continues when a limit
/// changes. The demand with its limit is a property of the case, and part of its message.
fn name(verdict: &Verdict) -> String {
    if let Some(key) = &verdict.key {
        return key.clone();
    }
    let Some(wanted) = &verdict.expectation else {
        // For implicit verdicts only the demand: the number of their cases changes with the hosts.
        return verdict.demanded();
    };
    let kind = match wanted.limit {
        Limit::AtLeast(_) => "at least",
        Limit::AtMost(_) => "at most",
        Limit::PercentOfCeiling(_) => "percent of ceiling",
        Limit::WithinPercentOfPeers(_) => "within percent of peers",
        Limit::WithinPercentOfBaseline(_) => "within percent of baseline",
    };
    format!("{} {kind} [{}]", wanted.metric, verdict.scope)
}

/// What stands out, in the page's own sentence, and a line for each part that this test names.
fn parts(found: &[&Localisation], view: &View) -> String {
    let waived = |part: &Named| if part.waived { ", waived" } else { "" };
    let line = |part: &Named| format!("{}{}: {}: {}", part.standing.words(), waived(part), part.name, part.reason);
    let whole = view.parts.iter().map(|parts| match parts.lines().collect::<Vec<_>>() {
        none if none.is_empty() => parts.tests.join("\n"),
        lines => lines.join("\n"),
    });
    whole.chain(found.iter().flat_map(|found| &found.suspects).map(line)).collect::<Vec<_>>().join("\n")
}

fn status(status: Status) -> TestCaseStatus {
    match status {
        Status::Pass => TestCaseStatus::success(),
        Status::Fail => kind(NonSuccessKind::Failure, "fail"),
        // Neither may look green: JUnit readers show an error as loudly as a failure.
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
    let wrong = trouble.state == State::Wrong;
    let mut status = kind(if wrong { NonSuccessKind::Failure } else { NonSuccessKind::Error }, trouble.state.word());
    status.set_message(trouble.against.to_string());
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
    if let Some(remedy) = &trouble.remedy {
        case.add_property(("remedy", remedy.id.as_ref()));
        case.add_property(("help", remedy.text().as_str()));
    }
    case
}

/// From the first start of a case of a test to the last end: the time of all its verdicts together. A single verdict
/// has no time, because all are about the same cases.
fn lasted(journal: &Journal, test: &str) -> Option<Duration> {
    // Case n is at index n.
    let case = |attempt: &&Try| usize::try_from(attempt.case).ok().and_then(|at| journal.cases.get(at));
    let of_test = |attempt: &&Try| case(attempt).is_some_and(|case| *case.test == *test);
    let times = journal.tries.iter().filter(of_test).filter_map(|attempt| {
        let start = attempt.started_at.time()?;
        // A failed try only has a start.
        let lasted = attempt.result.as_ref().map_or(0, |sample| sample.initiator.elapsed.0);
        Some((start, start.checked_add(Duration::from_nanos(lasted)).ok()?))
    });
    let (start, end) = times.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))?;
    Duration::try_from(end.duration_since(start)).ok()
}

fn duration(journal: &Journal) -> Option<Duration> {
    let (start, end) = (journal.time.0.parse::<Timestamp>().ok()?, journal.time.1.parse::<Timestamp>().ok()?);
    Duration::try_from(end.duration_since(start)).ok()
}
