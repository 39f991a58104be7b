//! Two tests of two hosts with four rails, computed by hand.

use railgauge_wire::unit::Bytes;

use super::*;
use crate::{journal::Journal, made, results::results, rows::rows, verdict::verdicts};

/// Single rails move 10 Gb/s, and together this share of it; `more` are keys of the second test.
fn journal(share: f64, more: &str) -> Journal {
    let test = "[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = [\"64KiB\"]\nverify = false\nwarm_up = \"0s\"\n\
                pattern = \"neighbours\"\n";
    let text = format!(
        "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"h[0-3]\"], tcp = [\"a\", \"b\", \"c\", \"d\"] }}\n\
         {test}name = \"all\"\n{test}name = \"each\"\nrails = \"each\"\n{more}\n"
    );
    let journal = made::journal(&text, 4, |case| {
        made::sample(Bytes((125e6 * if &*case.test == "all" { share } else { 1.0 }) as u64))
    });
    assert_eq!(journal.cases.len(), 16);
    journal
}

fn found(journal: &Journal) -> Vec<AllNics> {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let found = nics(&journal.plan.tests, &results, &rows);
    assert_eq!(verdicts(journal, &results, &rows, Vec::new()).nics, found);
    found
}

#[test]
fn all_nics_are_held_against_the_sum_of_single_ones() {
    let journal = journal(0.8, "");
    // One rail after the other: a round for each.
    let rounds =
        journal.cases.iter().filter(|case| &*case.test == "each").map(|case| (case.round, case.flow.from.rail));
    assert!(rounds.clone().all(|(round, rail)| round == rail) && rounds.count() == 8);
    let [all] = &found(&journal)[..] else { panic!() };
    assert_eq!((all.pairs, all.missing, all.rails), (2, 0, (4, 4)));
    assert!((all.percent.unwrap() - 80.0).abs() < 0.1, "{all:?}");
    assert!(all.words().contains("All 4 NICs together reach 80.0 % of the sum of single ones"), "{}", all.words());
}

#[test]
fn a_missing_rail_is_no_smaller_sum() {
    let mut journal = journal(0.8, "");
    let gone = journal.cases.iter().find(|case| &*case.test == "each" && &*case.flow.from.host == "h0").unwrap().id;
    journal.tries.retain(|attempt| attempt.case != gone);
    let all = found(&journal).remove(0);
    assert_eq!((all.pairs, all.missing), (1, 1), "{all:?}");
    journal.tries.clear();
    let none = found(&journal).remove(0);
    assert_eq!((none.pairs, none.missing, none.percent), (0, 2, None));
    assert!(none.words().contains("not known"), "{}", none.words());
}

#[test]
fn tests_that_differ_otherwise_are_no_pair() {
    assert!(found(&journal(0.8, "measure = \"3s\"")).is_empty());
    assert!(!found(&journal(0.8, "[[test.expect]]\nmetric = \"bandwidth\"\nat_least = \"1 Gb/s\"")).is_empty());
}
