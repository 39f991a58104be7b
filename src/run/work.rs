//! What a run has to do: the plan, its cases, and what is done already.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use railgauge_model::{
    journal::event::Case,
    plan::{Plan, model::Test},
};

/// What is to be done and what an earlier process already did.
pub(super) struct Work {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Every case, in the schedule's order.
    pub cases: Vec<Case>,
    /// Cases and repeats that need no further measurement.
    pub done: HashSet<(u64, u32)>,
}

impl Work {
    /// Outcomes still to come if nothing is lost.
    pub(super) fn outstanding(&self) -> u64 {
        let of_test = |test: &Test| {
            let rounds = self.rounds(test);
            let open = |repeat| rounds.values().map(|cases| self.open(test, cases, repeat).len() as u64).sum::<u64>();
            (0..test.repeats).map(open).sum::<u64>()
        };
        self.plan.tests.iter().map(of_test).sum()
    }

    /// Whether every repeat of a case is measured.
    pub(super) fn is_done(&self, test: &Test, case: &Case) -> bool {
        (0..test.repeats).all(|repeat| self.done.contains(&(case.id, repeat)))
    }

    /// Position and test of a case.
    pub(super) fn test(&self, case: &Case) -> Option<(usize, &Test)> {
        self.plan.tests.iter().enumerate().find(|(_, test)| test.name == case.test)
    }

    /// The cases of a test, by round.
    pub(super) fn rounds(&self, test: &Test) -> BTreeMap<u32, Vec<&Case>> {
        let mut rounds: BTreeMap<u32, Vec<&Case>> = BTreeMap::new();
        for case in self.cases.iter().filter(|case| case.test == test.name) {
            rounds.entry(case.round).or_default().push(case);
        }
        rounds
    }

    /// The cases of a round that are still to be measured. Of flows at once all of a cell are, if one of them is: a
    /// bandwidth beside other flows says nothing without them.
    pub(super) fn open<'c>(&self, test: &Test, cases: &[&'c Case], repeat: u32) -> Vec<&'c Case> {
        let cell = |case: &Case| (case.cell.size, case.cell.qps);
        let missing = |case: &Case| !self.done.contains(&(case.id, repeat));
        let again: HashSet<_> = match test.at_once() {
            true => cases.iter().filter(|case| missing(case)).map(|case| cell(case)).collect(),
            false => HashSet::new(),
        };
        cases.iter().filter(|case| missing(case) || again.contains(&cell(case))).copied().collect()
    }
}
