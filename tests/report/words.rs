//! Sentences about one and about many, and digits that nobody needs.

use std::path::Path;

use railgauge_analysis::{
    journal::{Journal, parse},
    localise::localise,
    results::results,
    rows::rows,
    verdict::{Kind, Verdicts, verdicts},
};
use railgauge_model::plan::model::Waiver;
use railgauge_report::draw;
use railgauge_wire::unit::Bytes;

use crate::support::Scenario;

/// The bandwidth test of a cluster, without expectations.
fn journal(scenario: &Scenario) -> Journal {
    let mut journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
    journal.plan.tests.truncate(1);
    let test = &mut journal.plan.tests[0];
    test.expect.clear();
    journal.cases.retain(|case| *case.test == *test.name);
    let last = journal.cases.len() as u64;
    journal.tries.retain(|tried| tried.case < last);
    journal
}

fn judge(journal: &Journal) -> Verdicts {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    verdicts(journal, &results, &rows, Vec::new())
}

#[test]
fn one_verdict_is_not_all_verdicts() {
    let one = Scenario { sizes: vec![1 << 20], repeats: 1, ..Scenario::healthy(2, 1) };
    let sentence = judge(&journal(&one)).sentence;
    assert!(sentence.starts_with("the only verdict passed, 1 case measured"), "{sentence}");
}

#[test]
fn cases_are_counted_by_what_they_have() {
    let mut journal = journal(&Scenario { sizes: vec![1 << 20], repeats: 1, ..Scenario::healthy(8, 1) });
    for (number, tried) in journal.tries.iter_mut().enumerate() {
        let sample = tried.result.as_mut().unwrap();
        match number {
            0 => sample.checked.wrong = Bytes(1),
            1 => sample.initiator.operations = 0,
            _ => sample.initiator.operations *= 3,
        }
    }
    let verdicts = judge(&journal);
    let every = verdicts.verdicts.iter().find(|verdict| verdict.kind == Kind::EveryCase).unwrap();
    let words = "28 of 28 cases incomplete: 1 with wrong bytes, 1 without a value, 26 with an impossible value; ";
    assert!(every.reason.to_string().starts_with(words), "{}", every.reason);
    assert!(every.reason.to_string().contains("verify: 1 byte is not what was sent"), "{}", every.reason);
    let remarks = &verdicts.localisation[0].remarks;
    assert_eq!(remarks[0], "a fault cannot be located: no pair has a value that may be trusted");
}

#[test]
fn standard_errors_have_two_digits() {
    let journal = journal(&Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(8, 1) });
    let results = results(&journal).unwrap();
    let found = localise(&journal, &results, &rows(&journal, &results));
    let reason = &found[0].suspects[0].reason;
    let (front, end) = reason.split_once("; it differs by ").unwrap();
    assert!(front.starts_with("7 of 7 pairs with 7 hosts are bad, typically "), "{reason}");
    assert!(front.contains(" % lower (good pairs reach "), "{reason}");
    let (seen, needed) = end.split_once(" standard errors, ").unwrap();
    for number in [seen, needed.trim_end_matches(" are needed")] {
        let significant = number.trim_end_matches('0').chars().filter(char::is_ascii_digit).count();
        assert!(significant <= 2, "{reason}");
    }
}

#[test]
fn a_waived_part_is_told_as_waived_and_not_as_unsettled() {
    let mut journal = journal(&Scenario { slow: Some(4), sizes: vec![1 << 20], ..Scenario::healthy(8, 1) });
    journal.plan.localise.waive = vec![Waiver::Host("gpu005".into()), Waiver::Rail(9)];
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    assert_eq!(drawn.verdicts.exit_code, 0, "{}", drawn.verdicts.sentence);
    let parts = drawn.view.parts.unwrap();
    assert_eq!((parts.named[0].name.as_str(), parts.named[0].standing.as_str()), ("host gpu005", "suspect, waived"));
    assert_eq!(parts.named[0].standing, "suspect, waived");
    assert!(parts.tests[0].contains("the plan waives rail 9, which no case has"), "{:?}", parts.tests);
}
