//! A run in one sentence, from counts: what was measured, what was judged, and the first cause of a problem.

use crate::{
    case::State,
    reason::Id,
    status::Status,
    verdict::{Cases, Kind, Trouble, Untested, Verdict, not_tested},
    words::count,
};

/// Never says that nothing failed if cases did, and names the first cause of anything but a pass.
pub(super) fn sentence(
    status: Status,
    verdicts: &[Verdict],
    troubles: &[Trouble],
    cases: Cases,
    untested: &[Untested],
) -> String {
    // A waived verdict is reported by itself and is not part of the run's result.
    let verdicts: Vec<&Verdict> = verdicts.iter().filter(|verdict| !verdict.waived).collect();
    let of = |status| verdicts.iter().filter(move |verdict| verdict.status == status);
    let first = |status| match of(status).next() {
        Some(first) => {
            let by_link = of(status).find(|verdict| first.kind == Kind::Parts && explains(verdict, &first.test));
            let of = by_link.unwrap_or(first);
            format!("{}: {}: {}.", of.test, of.demanded(), of.reason)
        }
        None => String::new(),
    };
    let all = count(verdicts.len(), "verdict");
    let measured = unmeasured(troubles, cases);
    let said: Vec<String> = match status {
        Status::Pass => {
            let passed = match verdicts.len() {
                1 => "The only verdict".to_owned(),
                2 => "Both verdicts".to_owned(),
                _ => format!("All {all}"),
            };
            let untested = not_tested(untested.iter().filter(|one| one.may_hide_a_fault()));
            let untested = untested.map_or_else(String::new, |what| format!("; {what}"));
            vec![format!("{passed} passed; {} measured{untested}.", count(cases.planned, "case"))]
        }
        // A fast wrong answer is worse than a slow right one, so it comes first.
        Status::Fail => {
            // Includes the troubles of further cases.
            let wrong = match troubles.iter().filter(|trouble| trouble.state == State::Wrong).count() {
                0 => String::new(),
                n => format!("Wrong bytes arrived in {}.", count(n, "case")),
            };
            let failed = format!("{} of {all} failed.", of(Status::Fail).count());
            // If nothing at all was measured, that is the cause, and not a demand that failed because of it.
            let cause = if cases.measured_any() { first(Status::Fail) } else { String::new() };
            vec![wrong, failed, cause, measured]
        }
        Status::Inconclusive if !measured.is_empty() && !cases.measured_any() => vec![measured],
        Status::Inconclusive => {
            let unclear = of(Status::Inconclusive).count() + of(Status::NotRun).count();
            let given = format!("{unclear} of {all} cannot be given, none failed.");
            let cause = if measured.is_empty() { first(Status::Inconclusive) } else { String::new() };
            vec![measured, given, cause]
        }
        Status::NotRun => vec!["Nothing was run.".to_owned(), first(Status::NotRun)],
    };
    said.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whether a verdict names a link between switches that explains every low flow of a test, and thus boundaries and paths behind it.
fn explains(verdict: &Verdict, test: &str) -> bool {
    let has = |id| verdict.reason.iter().any(|reason| reason.id == id);
    verdict.kind == Kind::Links && verdict.test == test && has(Id::LinkStandsOut) && !has(Id::LinksUnexplained)
}

/// `No case was measured: 6 of 6 failed. The first: gpu01: connect: …`; empty where no case failed.
fn unmeasured(troubles: &[Trouble], cases: Cases) -> String {
    if cases.failed == 0 {
        return String::new();
    }
    let not_run = if cases.not_run > 0 { format!(", {} not run", cases.not_run) } else { String::new() };
    let none = if cases.measured_any() { "" } else { "No case was measured: " };
    let failed = format!("{none}{} of {} failed{not_run}.", cases.failed, count(cases.planned, "case"));
    let cause = troubles.iter().find(|trouble| trouble.state == State::Failed);
    match cause {
        Some(Trouble { against, .. }) => format!("{failed} The first: {against}."),
        None => failed,
    }
}

impl Cases {
    pub const fn measured_any(&self) -> bool {
        self.measured + self.short + self.unverified + self.contaminated + self.impossible + self.wrong > 0
    }
}

#[cfg(test)]
mod tests {
    use crate::verdict::banner::*;
    use crate::{
        case::{Objection, Objections},
        reason::Reasons,
    };
    use railgauge_wire::{
        failure::{Failure, Kind, Stage},
        unit::Bytes,
    };

    fn failure(cause: &str) -> Failure {
        Failure::new(Stage::Open, Kind::Configuration, cause).at("gpu1")
    }

    fn verdict(status: Status) -> Verdict {
        Verdict {
            kind: crate::verdict::Kind::EveryCase,
            waived: false,
            key: None,
            wanted: None,
            holdings: Vec::new(),
            place: std::collections::BTreeMap::new(),
            remedy: None,
            parts: Vec::new(),
            test: "t".into(),
            demand: "every case is measured".into(),
            scope: String::new(),
            narrowed: None,
            view: None,
            line: None,
            metric: None,
            unit: None,
            status,
            reason: Reasons::default(),
            worst: None,
            offenders: Vec::new(),
            broken: None,
            breaking: Vec::new(),
            tally: crate::verdict::Tally::default(),
        }
    }

    fn trouble(failure: Failure) -> Trouble {
        Trouble {
            case: 0,
            test: "t".into(),
            link: String::new(),
            variant: String::new(),
            op: String::new(),
            size_bytes: Bytes(8),
            qps: 1,
            src_host: String::new(),
            src_rail: 0,
            dst_host: String::new(),
            dst_rail: 0,
            state: State::Failed,
            failure: None,
            against: Objections(vec![Objection::Failed { failure: Box::new(failure), ends: String::new() }]),
            remedy: None,
            counters: Vec::new(),
            hosts: Vec::new(),
        }
    }

    #[test]
    fn when_every_case_failed_that_is_said_with_its_first_cause() {
        let cases = Cases { planned: 6, failed: 6, ..Cases::default() };
        let verdicts = [verdict(Status::Inconclusive)];
        let text = sentence(Status::Inconclusive, &verdicts, &[trouble(failure("no device"))], cases, &[]);
        assert_eq!(text, "No case was measured: 6 of 6 cases failed. The first: gpu1: open: no device.");
    }

    #[test]
    fn two_verdicts_that_passed_are_both() {
        let cases = Cases { planned: 6, measured: 6, ..Cases::default() };
        let verdicts = [verdict(Status::Pass), verdict(Status::Pass)];
        assert_eq!(sentence(Status::Pass, &verdicts, &[], cases, &[]), "Both verdicts passed; 6 cases measured.");
    }

    #[test]
    fn some_failed_cases_are_said_beside_verdicts() {
        let cases = Cases { planned: 6, failed: 2, measured: 4, ..Cases::default() };
        let verdicts = [verdict(Status::Inconclusive), verdict(Status::Pass)];
        let text = sentence(Status::Inconclusive, &verdicts, &[trouble(failure("gone"))], cases, &[]);
        assert_eq!(
            text,
            "2 of 6 cases failed. The first: gpu1: open: gone. 1 of 2 verdicts cannot be given, none failed."
        );
    }
}
