//! The further cases that settle which link is bad.

use std::{collections::HashSet, sync::Arc};

use railgauge_model::{
    journal::event::Case,
    schedule::{Flow, Port},
    topology::fabric::Route,
};
use railgauge_stats::fabric::{Judgement, Ports, probes};

use super::{
    flows::Measured,
    suspects::{Located, SuspectLink, search},
    ways::Ways,
};
use crate::{case::CaseResult, journal::Journal, results, row::Row, rows::rows};

/// Most rounds for links per test. On a large fabric three settle a suspect; with few hosts, and thus few controls a round, it takes more.
const ROUNDS: u32 = 8;

/// The next round of cases for suspect links between switches: it distinguishes them with the help of paths known to be
/// good. None if nothing stands out, all is settled, or the limit of rounds is reached.
pub fn further(journal: &Journal, of_tests: &[CaseResult<'_>], rows_of_tests: &[Row]) -> Vec<Case> {
    let Some(ways) = Ways::of(journal) else { return Vec::new() };
    let more = results::further(journal);
    let more_rows = rows(journal, &more);
    let measured = Measured { tests: (of_tests, rows_of_tests), further: (&more, &more_rows) };
    let mut cases = Vec::new();
    for test in &journal.plan.tests {
        let Some((found, Some(located))) = search(&ways, journal, test, &measured) else { continue };
        let is_open = |(suspect, judged): (&SuspectLink, &Judgement)| {
            suspect.between_switches && matches!(judged, Judgement::Open { .. })
        };
        if located.rounds < ROUNDS && found.suspects.iter().zip(&located.judgements).any(is_open) {
            cases.extend(next(&ways, journal, &test.name, &located));
        }
    }
    let first = (journal.cases.len() + journal.further.len()) as u64;
    (first..).zip(&mut cases).for_each(|(id, case)| case.id = id);
    cases
}

fn next(ways: &Ways<'_>, journal: &Journal, test: &str, located: &Located) -> Vec<Case> {
    let Located { cell, parts, tests, findings, ports, rounds, .. } = located;
    let numbers: Vec<u32> = ports.keys().copied().collect();
    let end = |nic: u32| ports.get(&nic).map(|(port, device)| (port, device.as_str()));
    let routes = |from: u32, to: u32| match (end(from), end(to)) {
        (Some(from), Some(to)) if from.0.host != to.0.host => match ways.taken(cell.transport, [from, to]) {
            Route::Known(path) => vec![path],
            Route::OneOf(_) | Route::Unknown(_) => Vec::new(),
        },
        _ => Vec::new(),
    };
    // Two hops lead to a neighbour below the same leaf.
    let kind = |from: u32, to: u32| u32::from(routes(from, to).first().is_some_and(|path| path.len() > 2));
    let ports_of = Ports { ports: &numbers, routes: &routes };
    let wanted = probes(parts, tests, findings, &ports_of, &kind, rounds + 1);
    let mut taken: HashSet<&Port> = HashSet::new();
    let round = journal
        .further
        .iter()
        .filter(|case| *case.test == *test)
        .map(|case| case.round.saturating_add(1))
        .max()
        .unwrap_or(0);
    let mut cases = Vec::new();
    for probe in wanted {
        let (Some((from, _)), Some((to, _))) = (end(probe.from), end(probe.to)) else { continue };
        // A NIC port could send and receive at once in a round of probes; ours are used once.
        if taken.contains(from) || taken.contains(to) {
            continue;
        }
        taken.extend([from, to]);
        // What is read moves against the flow.
        let flow = match cell.op.pulls() {
            true => Flow::pair(to.clone(), from.clone()),
            false => Flow::pair(from.clone(), to.clone()),
        };
        cases.push(Case { id: 0, test: test.into(), round, flow, cell: Arc::clone(cell) });
    }
    cases
}
