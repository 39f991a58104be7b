//! The sign-off: what it says was covered.

use std::path::Path;

use railgauge_analysis::journal::{self, Journal};
use railgauge_report::{draw, signoff};

use crate::support::Scenario;

/// What a sign-off says of each test, and of all cases.
fn covered(journal: &Journal) -> (Vec<String>, String) {
    let drawn = draw(journal, Path::new("records.jsonl")).unwrap();
    let view = signoff::view(journal, &drawn.verdicts, &drawn.view.carriers, Vec::new());
    let of = |wanted: &str| {
        let rows = view.coverage.rows.iter().filter(|row| row[0].starts_with(wanted));
        rows.map(|row| row[1].clone()).collect::<Vec<_>>()
    };
    (of("test "), of("cases ").remove(0))
}

fn journal(scenario: &Scenario) -> Journal {
    journal::parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap()
}

/// What was planned and not measured is not covered: neither a case without a result that may be trusted, nor a host that has no other.
#[test]
fn a_test_covers_what_was_measured_of_what_was_planned() {
    let scenario = Scenario { sizes: vec![1 << 20], ..Scenario::healthy(4, 1) };
    let tests = journal(&scenario).plan.tests.len();
    let (all, _) = covered(&journal(&scenario));
    assert_eq!(all.len(), tests);
    assert!(all[0].starts_with("6 of 6 cases, 4 of 4 hosts; "), "{all:?}");
    let down = journal(&Scenario { down: Some(3), ..scenario.clone() });
    let (some, _) = covered(&down);
    assert!(some[0].starts_with("3 of 6 cases, 3 of 4 hosts; "), "{some:?}");
    // A case of which a repeat is missing does not count, as it does not in the row of all cases.
    let mut short = journal(&scenario);
    let first = short.cases[0].id;
    let at = short.tries.iter().position(|one| one.case == first).unwrap();
    short.tries.remove(at);
    let (less, cases) = covered(&short);
    assert!(less[0].starts_with("5 of 6 cases, 4 of 4 hosts; "), "{less:?}");
    assert_eq!(cases, format!("{} of {}", short.cases.len() - 1, short.cases.len()));
}
