use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use railgauge_model::{
    journal::event::Case,
    plan::{
        Plan,
        model::{Rails, Test},
    },
    schedule::{Cell, Cost},
};
use railgauge_wire::TestMetric;

pub(super) struct Work {
    pub plan: Arc<Plan>,
    pub cases: Vec<Case>,
    pub done: HashSet<(u64, u32)>,
}

impl Work {
    /// The cost of these cases of a round: flows run in parallel, their cells in sequence.
    pub(super) fn cost(&self, index: usize, open: &[&Case]) -> Cost {
        Cost::of(&self.plan.tests[index], cells(open))
    }

    pub(super) fn outstanding(&self) -> u64 {
        let of_test = |test: &Test| {
            let rounds = self.rounds(test);
            let open = |repeat| rounds.values().map(|cases| self.open(test, cases, repeat).len() as u64).sum::<u64>();
            (0..test.repeats).map(open).sum::<u64>()
        };
        self.plan.tests.iter().map(of_test).sum()
    }

    pub(super) fn test(&self, case: &Case) -> Option<(usize, &Test)> {
        self.plan.tests.iter().enumerate().find(|(_, test)| *test.name == *case.test)
    }

    pub(super) fn rounds(&self, test: &Test) -> BTreeMap<u32, Vec<&Case>> {
        let mut rounds: BTreeMap<u32, Vec<&Case>> = BTreeMap::new();
        for case in self.cases.iter().filter(|case| *case.test == *test.name) {
            rounds.entry(case.round).or_default().push(case);
        }
        rounds
    }

    /// Whether the flows of a round are judged together: on shared NIC ports, on shared links between switches that the plan knows, or on
    /// paths that switches choose, where several numbers of queue pairs are compared.
    fn judged_together(&self, test: &Test) -> bool {
        let switches =
            self.plan.topology.is_some() && test.metric == TestMetric::Bandwidth && !test.transport.is_within_host();
        let together = test.transport.is_within_host() && test.rails != Rails::Each;
        test.timed_together() || switches || together || test.compares_paths()
    }

    /// The open cases of a round. If flows are judged together, all of a cell are open if one is: a bandwidth with other flows means
    /// nothing without them, and a loss nothing without the flow alone shortly before.
    pub(super) fn open<'c>(&self, test: &Test, cases: &[&'c Case], repeat: u32) -> Vec<&'c Case> {
        let cell = |case: &Case| (case.cell.size, case.cell.qps, case.cell.applied.clone());
        let missing = |case: &Case| !self.done.contains(&(case.id, repeat));
        let again: HashSet<_> = match self.judged_together(test) {
            true => cases.iter().filter(|case| missing(case)).map(|case| cell(case)).collect(),
            false => HashSet::new(),
        };
        cases.iter().filter(|case| missing(case) || again.contains(&cell(case))).copied().collect()
    }
}

pub(super) fn cells<'c>(cases: &[&'c Case]) -> Vec<&'c Cell> {
    let mut seen = HashSet::new();
    cases.iter().map(|case| &*case.cell).filter(|cell| seen.insert(*cell)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use railgauge_model::{
        plan,
        schedule::{Inventory, schedule},
    };

    use super::*;

    fn open(test: &str, topology: &str) -> (usize, usize) {
        let text = format!(
            "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"h[0-3]\"] }}\n{topology}\n[[test]]\n\
             op = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = [\"64KiB\", \"1MiB\"]\n{test}\n"
        );
        let plan = plan::parse("t.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
        let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
        let done = cases.iter().skip(1).map(|case| (case.id, 0)).collect();
        let work = Work { plan: Arc::new(plan), cases, done };
        let test = &work.plan.tests[0];
        let rounds = work.rounds(test);
        let cell = |case: &Case| (case.cell.size, case.cell.qps);
        let of_cell = rounds[&0].iter().filter(|case| cell(case) == cell(rounds[&0][0])).count();
        (work.open(test, &rounds[&0], 0).len(), of_cell)
    }

    #[test]
    fn a_round_whose_flows_are_judged_together_is_measured_whole() {
        let cables =
            "[topology]\ncables = [[\"h0 eth0\", \"leaf1\"], [\"h1 eth0\", \"leaf2\"], [\"leaf1:1\", \"leaf2:1\"]]";
        assert_eq!(open("pattern = \"neighbours\"", ""), (1, 2));
        for (test, topology) in [
            ("pattern = \"neighbours\"\nqps = [1, 4]", ""),
            ("pattern = \"neighbours\"", cables),
            ("pattern = \"incast\"", ""),
        ] {
            let (open, of_cell) = open(test, topology);
            assert!(open == of_cell && open > 1, "{test}: {open} of {of_cell}");
        }
    }
}
