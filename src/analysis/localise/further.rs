//! Suspects and the further cases that settle them.

use std::collections::{HashMap, HashSet};

use super::{Further, Localisation, localise, pick::trusted};
use crate::{
    analysis::{
        journal::Journal,
        results::{self, CaseResult},
        row::Row,
        rows::rows,
    },
    run::event::Case,
    schedule::{Flow, Port},
};

/// The further cases that settle the suspects and that the journal does not hold yet, round by round: in a round no NIC is
/// used twice, and the worst suspects come first.
pub fn further(journal: &Journal, results: &[CaseResult<'_>], rows: &[Row]) -> Vec<Case> {
    let mut cases = Vec::new();
    let first = (journal.cases.len() + journal.further.len()) as u64;
    for found in localise(journal, results, rows) {
        let Some(cell) = &found.cell else { continue };
        let known = || journal.further.iter().filter(|case| case.test == found.test && case.cell == *cell);
        let mut held: HashMap<&Flow, usize> = HashMap::new();
        known().for_each(|case| *held.entry(&case.flow).or_default() += 1);
        let mut missing = Vec::new();
        for probe in &found.probes {
            match held.get_mut(&probe.flow) {
                Some(left @ 1..) => *left -= 1,
                _ => missing.push(&probe.flow),
            }
        }
        let start = known().map(|case| case.round + 1).max().unwrap_or(0);
        for (round, flows) in (start..).zip(rounds(&missing)) {
            cases.extend(flows.into_iter().map(|flow| Case {
                id: 0,
                test: found.test.clone(),
                round,
                flow: flow.clone(),
                cell: cell.clone(),
            }));
        }
    }
    (first..).zip(&mut cases).for_each(|(id, case)| case.id = id);
    cases
}

/// Flows spread over rounds, each into the first in which both its ports are free.
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

/// Gives every suspect of `all` its standing from the further cases of the journal.
pub(super) fn settle(journal: &Journal, all: &mut [Localisation]) {
    let further = results::further(journal);
    let values = rows(journal, &further, &|_, _| None);
    for found in all {
        // Each further case answers for one probe, since some probes measure the same flow several times.
        let own =
            |result: &&CaseResult<'_>| result.case.test == found.test && found.cell.as_ref() == Some(&result.case.cell);
        let mut open: Vec<&CaseResult<'_>> = further.iter().filter(own).collect();
        if open.is_empty() {
            continue;
        }
        let mut answers = Vec::new();
        for (place, probe) in found.probes.iter().enumerate() {
            let Some(at) = open.iter().position(|result| result.case.flow == probe.flow) else { continue };
            let result = open.remove(at);
            let row = values.iter().find(|row| row.case == result.case.id && row.metric == found.metric);
            let value = row.and_then(|row| row.value).filter(|_| trusted(result));
            answers.extend(value.map(|value| (place, value)));
            let (link, error) = (result.link_name(), result.error());
            found.suspects[probe.suspect].further.push(Further { case: result.case.id, link, value, error });
        }
        found.confirm(&answers);
    }
}
