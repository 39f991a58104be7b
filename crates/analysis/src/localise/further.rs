use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use railgauge_model::{
    journal::event::Case,
    schedule::{Cell, Flow, Port},
};

use super::{
    Localisation,
    groups::{self, is_explained},
    lanes, node,
    search::localise,
};
use crate::{case::CaseResult, journal::Journal, results, row::Row, rows::rows_without_ceilings};

/// The further cases that settle the suspects and are not yet in the journal, round by round: a round uses no NIC
/// twice, and the worst suspects come first.
pub fn further(journal: &Journal, results: &[CaseResult<'_>], rows: &[Row]) -> Vec<Case> {
    let mut cases = Vec::new();
    let first = (journal.cases.len() + journal.further.len()) as u64;
    let all = localise(journal, results, rows);
    for found in &all {
        if found.counted == node::COUNTED {
            cases.extend(node::further(journal, found, (results, rows)));
            continue;
        }
        let Some(cell) = found.cell.as_ref().filter(|_| found.counted == "pair") else { continue };
        // Two views of one cell may need the same case.
        let known: Vec<&Case> = journal.further.iter().chain(&cases).filter(|case| *case.test == *found.test).collect();
        let mut held: HashMap<&Flow, usize> = HashMap::new();
        let of_cell = known.iter().filter(|case| *case.cell == *cell);
        of_cell.for_each(|case| *held.entry(&case.flow).or_default() += 1);
        let mut missing = Vec::new();
        for probe in &found.probes {
            match held.get_mut(&probe.flow) {
                Some(left @ 1..) => *left -= 1,
                _ => missing.push(&probe.flow),
            }
        }
        let start = known.iter().map(|case| case.round.saturating_add(1)).max().unwrap_or(0);
        for (round, flows) in (start..).zip(rounds(&missing)) {
            cases.extend(flows.into_iter().map(|flow| Case {
                id: 0,
                test: found.test.as_str().into(),
                round,
                flow: flow.clone(),
                cell: Arc::new(cell.clone()),
            }));
        }
    }
    if cases.is_empty() {
        cases.extend(alone(journal, &all));
    }
    // Pairs are cheaper, and a bad one explains a slow collective.
    if cases.is_empty() {
        cases.extend(next_group(journal, &all, (results, rows)));
    }
    (first..).zip(&mut cases).for_each(|(id, case)| case.id = id);
    cases
}

/// The cases, not yet in the journal, that measure the lanes of confirmed paths one by one. A round takes every lane of
/// its flows in turn, so that drift affects all, and there are as many rounds as repeats.
fn alone(journal: &Journal, all: &[Localisation]) -> Vec<Case> {
    let mut cases = Vec::new();
    for found in all {
        let of_test = || journal.further.iter().filter(|case| *case.test == *found.test);
        let wanted = found.lanes_wanted(journal.plan.localise.ports);
        let held = |flow: &Flow| of_test().any(|case| case.cell.only.is_some() && case.flow == *flow);
        let missing: Vec<&(Flow, Vec<Cell>)> = wanted.iter().filter(|(flow, _)| !held(flow)).collect();
        let flows: Vec<&Flow> = missing.iter().map(|(flow, _)| flow).collect();
        let all: Vec<Vec<&Flow>> = rounds(&flows).into_iter().flat_map(|round| vec![round; lanes::REPEATS]).collect();
        let start = of_test().map(|case| case.round.saturating_add(1)).max().unwrap_or(0);
        for (round, flows) in (start..).zip(all) {
            let of_round = missing.iter().filter(|(flow, _)| flows.contains(&flow));
            cases.extend(of_round.flat_map(|(flow, cells)| cells.iter().map(move |cell| (flow, cell))).map(
                |(flow, cell)| {
                    let (test, flow, cell) = (found.test.as_str().into(), flow.clone(), Arc::new(cell.clone()));
                    Case { id: 0, test, round, flow, cell }
                },
            ));
        }
    }
    cases
}

/// For the first collective that no known bad part explains.
fn next_group(journal: &Journal, all: &[Localisation], (results, rows): (&[CaseResult<'_>], &[Row])) -> Option<Case> {
    let more = results::further(journal);
    let more_rows = rows_without_ceilings(journal, &more);
    let mut tests = journal.plan.tests.iter().filter(|test| !is_explained(journal, all, test));
    tests.find_map(|test| groups::next(journal, test, (results, rows), (&more, &more_rows)))
}

/// Each flow is in the first round in which both its ports are free.
fn rounds<'f>(flows: &[&'f Flow]) -> Vec<Vec<&'f Flow>> {
    let mut rounds: Vec<(HashSet<&Port>, Vec<&Flow>)> = Vec::new();
    for &flow in flows {
        let ports = [&flow.from, &flow.to];
        let at = rounds.iter().position(|(busy, _)| ports.iter().all(|port| !busy.contains(port)));
        let at = at.unwrap_or_else(|| {
            rounds.push(Default::default());
            rounds.len() - 1
        });
        rounds[at].0.extend(ports);
        rounds[at].1.push(flow);
    }
    rounds.into_iter().map(|(_, flows)| flows).collect()
}
