use std::sync::Arc;

use railgauge_model::journal::event::Case;
use railgauge_wire::{Bytes, Failure, Kind as FailureKind, Stage};

use super::*;
use crate::{
    case::State,
    history::{Subject, cell_words},
    journal::{Journal, Try},
    made_test as made,
    results::results,
    row::Row,
    rows::rows,
    status::Status,
    verdict::{Verdicts, verdicts},
};

/// Share of 10 Gb/s left by each value: no loss, a little that noise hides, half.
const LEFT: [(&str, f64); 3] = [("0%", 1.0), ("0.01%", 0.999), ("1%", 0.5)];
const NOISE: [f64; 4] = [1.0, 0.98, 1.02, 0.99];

/// A run of two links at three values in four repeats. `slower`: share left for a link from `h2`. `change` may spoil tries.
fn journal(more: &str, slower: f64, change: impl Fn(&Case, u32, &mut Try)) -> Journal {
    let text = format!(
        "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"h[0-3]\"] }}\n[[test]]\nop = \"write\"\n\
         metric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = [\"64KiB\"]\nverify = false\nwarm_up = \"0s\"\nrepeats = 4\n\
         pattern = \"neighbours\"\n{more}\n[test.configure]\napply = \"tc {{value}}\"\nundo = \"tc del\"\n\
         values = [\"0%\", \"0.01%\", \"1%\"]\n"
    );
    let mut journal = made::journal(&text, 4, |_| made::sample(Bytes(125_000_000)));
    let link = journal.tries[0].link.clone();
    journal.tries.clear();
    for (repeat, noise) in (0..).zip(NOISE) {
        for (case, at) in journal.cases.iter().zip(0_u64..) {
            let value = case.cell.applied.as_deref().unwrap();
            let left = LEFT.iter().find(|(name, _)| *name == value).unwrap().1;
            // Each try differs a little.
            let own = 1.0 + 0.002 * ((at + u64::from(repeat) * 3) % 5) as f64;
            let slower = if &*case.flow.from.host == "h2" { slower } else { 1.0 };
            let sample = made::sample(Bytes((125e6 * left * noise * own * slower) as u64));
            let started_at = "2026-11-21T02:00:00.000Z".into();
            let mut attempt = Try { case: case.id, repeat, started_at, link: link.clone(), result: Ok(sample) };
            change(case, repeat, &mut attempt);
            journal.tries.push(attempt);
        }
    }
    journal
}

fn told(journal: &Journal) -> (Vec<ValueCost>, Vec<Row>, Verdicts) {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let verdicts = verdicts(journal, &results, &rows, Vec::new());
    (verdicts.costs.clone(), rows, verdicts)
}

fn bandwidth(costs: &[ValueCost]) -> [&ValueCost; 3] {
    let of: Vec<&ValueCost> = costs.iter().filter(|cost| cost.metric == Metric::Bandwidth).collect();
    of.try_into().unwrap()
}

#[test]
fn each_value_is_held_against_the_first_repeat_by_repeat() {
    let (costs, rows, _) = told(&journal("", 1.0, |_, _, _| {}));
    let [none, little, much] = bandwidth(&costs);
    assert_eq!([none, little, much].map(|one| one.value.as_str()), ["0%", "0.01%", "1%"]);
    assert_eq!(
        [none, little, much].map(|one| one.compared.answer),
        [Answer::Reference, Answer::NoDifference, Answer::Costs]
    );
    assert_eq!((much.links, much.of, none.compared.cost_percent), (2, 2, None));
    assert!((much.compared.cost_percent.unwrap() - 50.0).abs() < 0.5, "{much:?}");
    let (low, high) = little.compared.interval_percent.unwrap();
    assert!(low < 0.0 && high > 0.0 && high < 2.0, "{little:?}");
    assert!(
        (much.median.unwrap() - 5.0).abs() < 0.1 && (much.reference_median.unwrap() - 10.0).abs() < 0.2,
        "{much:?}"
    );
    assert!(much.words().contains("1% costs 50") && much.words().contains("2 links"), "{}", much.words());
    // Each link by itself, against its own case.
    let cases: Vec<(u64, Option<u64>)> = much.flows.iter().map(|flow| (flow.case, flow.reference_case)).collect();
    assert_eq!(cases, [(4, Some(0)), (5, Some(1))]);
    assert!(much.flows.iter().all(|flow| flow.compared.answer == Answer::Costs), "{much:?}");
    // Every row has its value.
    let envs: Vec<&str> = rows.iter().filter(|row| row.metric == Metric::Bandwidth).map(|row| &*row.env).collect();
    assert_eq!(envs, ["value=0%", "value=0%", "value=0.01%", "value=0.01%", "value=1%", "value=1%"]);
}

#[test]
fn what_gets_better_is_no_cost() {
    let better = |case: &Case, _: u32, attempt: &mut Try| {
        if case.cell.applied.as_deref() == Some("0%") {
            attempt.result = Ok(made::sample(Bytes(60_000_000 + 100_000 * (case.id + u64::from(attempt.repeat)))));
        }
    };
    let (costs, ..) = told(&journal("", 1.0, better));
    let [_, little, _] = bandwidth(&costs);
    assert_eq!(little.compared.answer, Answer::Gains, "{little:?}");
}

#[test]
fn what_could_not_be_applied_or_has_too_few_repeats_is_not_known() {
    let refused = |case: &Case, repeat: u32, attempt: &mut Try| {
        let is_refused = match case.cell.applied.as_deref() {
            Some("1%") => true,
            Some("0.01%") => repeat > 1,
            _ => false,
        };
        if is_refused {
            let cause = "`apply` of the test failed at `1%`: no such qdisc";
            attempt.result = Err(Failure::new(Stage::Configure, FailureKind::Configuration, cause));
        }
    };
    let (costs, rows, verdicts) = told(&journal("", 1.0, refused));
    let [none, little, much] = bandwidth(&costs);
    assert_eq!(
        (none.compared.answer, little.compared.answer, much.compared.answer),
        (Answer::Reference, Answer::Unknown, Answer::Unknown)
    );
    assert_eq!((much.median, much.links, much.compared.cost_percent), (None, 0, None));
    assert!(much.words().contains("no such qdisc"), "{}", much.words());
    assert!(little.words().contains("three are needed"), "{}", little.words());
    assert!(rows.iter().filter(|row| &*row.env == "value=1%").all(|row| row.value.is_none() && row.error.is_some()));
    assert_ne!(verdicts.status, Status::Pass);
}

#[test]
fn an_expectation_is_judged_at_each_value_and_names_it() {
    let limit = "[[test.expect]]\nmetric = \"bandwidth\"\nat_least = \"8 Gb/s\"";
    let (_, _, verdicts) = told(&journal(limit, 1.0, |_, _, _| {}));
    let judged = verdicts.verdicts.iter().find(|one| one.metric == Some(Metric::Bandwidth)).unwrap();
    assert_eq!(judged.status, Status::Fail);
    assert!(judged.reason.to_string().contains("at 1%"), "{}", judged.reason);
    // Peers are links at the same value: a link that is lower at all of them stands out at each.
    assert!(verdicts.localisation.iter().all(|found| found.suspects.is_empty()), "{:?}", verdicts.localisation);
}

#[test]
fn parts_are_looked_for_at_the_first_value() {
    let (_, _, verdicts) = told(&journal("", 1.0, |_, _, _| {}));
    let found = &verdicts.localisation[0];
    assert_eq!((found.pairs, found.cell.as_ref().unwrap().applied.as_deref()), (2, Some("0%")));
}

#[test]
fn a_case_of_a_value_the_plan_does_not_have_is_a_contradiction() {
    let mut journal = journal("", 1.0, |_, _, _| {});
    Arc::make_mut(&mut journal.cases[1].cell).applied = Some("2%".into());
    assert!(results(&journal).is_err());
    Arc::make_mut(&mut journal.cases[1].cell).applied = None;
    assert!(results(&journal).is_err());
}

#[test]
fn history_never_mixes_values() {
    let journal = journal("", 1.0, |_, _, _| {});
    let cells: Vec<String> = journal.cases.iter().step_by(2).map(|case| cell_words(&case.cell)).collect();
    assert_eq!(cells, ["at 0%", "at 0.01%", "at 1%"]);
    let subject = |case: &Case| Subject {
        test: case.test.clone(),
        bidirectional: false,
        at_once: false,
        flow: case.flow.clone(),
        write_latency: None,
        cell: case.cell.clone(),
    };
    assert_eq!(journal.cases[0].flow, journal.cases[2].flow);
    assert_ne!(subject(&journal.cases[0]), subject(&journal.cases[2]));
}

#[test]
fn packets_that_a_value_loses_are_its_own_doing() {
    // Segments sent again, and their bytes on the wire.
    let lossy = |value: &'static str, resent: u64| {
        move |case: &Case, _: u32, attempt: &mut Try| {
            if let (Some(at), Ok(sample)) = (case.cell.applied.as_deref(), &mut attempt.result)
                && at == value
            {
                sample.from_counters.insert("tcp/RetransSegs".into(), resent);
                sample.from_counters.insert("netdev/tx_bytes".into(), 2 * sample.initiator.bytes.0);
            }
        }
    };
    let state = |journal: &Journal, value: &str| {
        let results = results(journal).unwrap();
        let of: Vec<_> = results.iter().filter(|one| one.case.cell.applied.as_deref() == Some(value)).collect();
        (of[0].state, of[0].excused.len())
    };
    let journal_of = |value, resent| journal("", 1.0, lossy(value, resent));
    let lost = journal_of("1%", 100_000);
    assert_eq!(state(&lost, "1%").0, State::Measured);
    let (costs, ..) = told(&lost);
    let [_, _, much] = bandwidth(&costs);
    assert_eq!(much.compared.answer, Answer::Costs);
    assert!(much.words().contains("sent again"), "{}", much.words());
    // At the first value, more bytes than the segments sent again are foreign; at any value, so are additional bytes without lost packets.
    let first = journal_of("0%", 100_000);
    assert_eq!(state(&first, "0%").0, State::Contaminated);
    // It is not a reference for the others either.
    let (costs, ..) = told(&first);
    assert_eq!(bandwidth(&costs)[2].compared.answer, Answer::Unknown);
    assert_eq!(state(&journal_of("1%", 0), "1%"), (State::Contaminated, 0));
}
