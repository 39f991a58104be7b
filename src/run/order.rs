//! The order of tests, repeats and rounds, and how many of them fit the time of the plan.

use std::{collections::BTreeMap, time::Duration};

use railgauge_model::{
    journal::event::Case,
    plan::{
        Plan,
        model::{Interleave, Test},
    },
    schedule::{Cell, Cost, PerByte, Schedule, turns},
};
use railgauge_stats::compare::{Variant, block_orders};
use railgauge_wire::GigabitsPerSecond;

use super::work::Work;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub test: usize,
    pub round: u32,
    /// From 0.
    pub repeat: u32,
    /// Index of the only value of the test that is measured; all cases of the round if `None`.
    pub value: Option<usize>,
}

/// All rounds of a plan in order of execution; `rounds` are the numbers of each test's rounds.
///
/// Tests follow one another in the plan's order, repeat by repeat. Two interleaved tests are at the place of the first of them: in every
/// block, round after round is run in the block's order. A test with values runs all of its rounds at one value, then at the next, in every
/// repeat.
pub(super) fn steps(plan: &Plan, rounds: &[Vec<u32>]) -> Vec<Step> {
    let mut steps = Vec::new();
    let position = |name: &str| plan.tests.iter().position(|test| test.name == name);
    for (test, of_test) in plan.tests.iter().enumerate().zip(rounds) {
        let (index, test) = test;
        let pair = plan.interleave.iter().zip(0_u64..).find(|(pair, _)| pair.a == test.name || pair.b == test.name);
        let Some((pair, number)) = pair else {
            for repeat in 0..test.repeats {
                let all = |value| of_test.iter().map(move |&round| Step { test: index, round, repeat, value });
                match test.values().len() {
                    0 => steps.extend(all(None)),
                    n => steps.extend(turns(n, repeat, plan.seed).into_iter().flat_map(|value| all(Some(value)))),
                }
            }
            continue;
        };
        if let (Some(a), Some(b)) = (position(&pair.a), position(&pair.b))
            && index == a.min(b)
        {
            steps.extend(in_turn(pair, [a, b], of_test, plan.seed.wrapping_add(number)));
        }
    }
    steps
}

fn in_turn(pair: &Interleave, tests: [usize; 2], rounds: &[u32], seed: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    for (order, block) in block_orders(pair.blocks as usize, seed).into_iter().zip(0..) {
        for &round in rounds {
            let mut repeats = [2 * block; 2];
            for variant in order {
                let side = usize::from(variant == Variant::B);
                steps.push(Step { test: tests[side], round, repeat: repeats[side], value: None });
                repeats[side] += 1;
            }
        }
    }
    steps
}

type Rounds<'c> = [BTreeMap<u32, Vec<&'c Case>>];

pub(super) fn open<'c>(work: &Work, rounds: &Rounds<'c>, step: &Step) -> Vec<&'c Case> {
    let test = &work.plan.tests[step.test];
    let mut open = work.open(test, rounds[step.test].get(&step.round).map_or(&[], Vec::as_slice), step.repeat);
    if let Some(value) = step.value {
        open.retain(|case| case.cell.applied.as_deref() == test.values().get(value).map(String::as_str));
    }
    open
}

/// The cost of all steps of each test.
pub(super) fn costs(work: &Work, rounds: &Rounds<'_>, steps: &[Step]) -> Vec<Cost> {
    let mut costs = vec![Cost::default(); work.plan.tests.len()];
    steps.iter().for_each(|step| costs[step.test] += work.cost(step.test, &open(work, rounds, step)));
    costs
}

/// How many measurements of each test do not fit the time of the plan, on links of this rate.
pub(crate) fn left_out(plan: &Plan, schedule: &Schedule, rate: Option<GigabitsPerSecond>) -> Vec<u64> {
    let mut left_out = vec![0; plan.tests.len()];
    if plan.at_most.is_none() {
        return left_out;
    }
    let mut flows: Vec<BTreeMap<u32, usize>> = vec![BTreeMap::new(); plan.tests.len()];
    schedule.rounds.iter().for_each(|round| _ = flows[round.test].insert(round.number, round.flows.len()));
    let rounds: Vec<Vec<u32>> = flows.iter().map(|of_test| of_test.keys().copied().collect()).collect();
    let (mut budget, mut spent) = (Budget::of(plan), Duration::ZERO);
    for step in steps(plan, &rounds) {
        let test = &plan.tests[step.test];
        let value = step.value.map(|value| test.values()[value].as_str());
        let cells: Vec<&Cell> =
            schedule.cells[step.test].iter().filter(|cell| cell.applied.as_deref() == value).collect();
        let pace = PerByte::of(plan, test, rate);
        let fit = budget.fitting(test, &cells, pace, spent);
        spent += Cost::of(test, cells[..fit].iter().copied()).at(pace).longest();
        left_out[step.test] += ((cells.len() - fit) * flows[step.test][&step.round]) as u64;
    }
    left_out
}

pub(super) struct Budget {
    limit: Option<Duration>,
    is_over: bool,
}

impl Budget {
    pub(super) fn of(plan: &Plan) -> Self {
        Self { limit: plan.until_suspects(), is_over: false }
    }

    /// How many of the cells of a step fit after this much of the run; none once one did not: later parts of the plan are less important.
    pub(super) fn fitting(
        &mut self,
        test: &Test,
        cells: &[&Cell],
        pace: Option<PerByte>,
        mut spent: Duration,
    ) -> usize {
        let Some(limit) = self.limit else { return cells.len() };
        let fits = |cell: &&&Cell| {
            spent = spent.saturating_add(Cost::of(test, [**cell]).at(pace).longest());
            spent <= limit
        };
        let fit = if self.is_over { 0 } else { cells.iter().take_while(fits).count() };
        self.is_over |= fit < cells.len();
        fit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railgauge_model::{
        plan,
        schedule::{Inventory, schedule},
    };

    const PLAN: &str = r#"
name = "order"
launch = { via = "local" }
hosts = { names = ["a", "b", "c"] }
[defaults]
transport = "tcp"
metric = "bandwidth"
[[test]]
name = "before"
op = "write"
[[test]]
name = "plain"
op = "write"
repeats = 2
[[test]]
name = "after"
op = "send"
[[interleave]]
a = "before"
b = "after"
blocks = 6
"#;

    #[test]
    fn blocks_take_turns_and_everything_else_keeps_its_place() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("plan.toml");
        std::fs::write(&path, PLAN).unwrap();
        let plan = plan::load(&path).unwrap().plan;
        let steps = steps(&plan, &[vec![0, 1], vec![0, 1], vec![0, 1]]);
        let (turns, plain) = steps.split_at(6 * 2 * 4);
        for (at, four) in turns.chunks(4).enumerate() {
            let block = at as u32 / 2;
            let tests: Vec<usize> = four.iter().map(|step| step.test).collect();
            assert!(tests == [0, 2, 2, 0] || tests == [2, 0, 0, 2], "{tests:?}");
            assert!(four.iter().all(|step| step.round == at as u32 % 2));
            let repeats: Vec<u32> = four.iter().map(|step| step.repeat - 2 * block).collect();
            assert_eq!(repeats, [0, 0, 1, 1]);
        }
        let first: Vec<usize> = turns.chunks(8).map(|block| block[0].test).collect();
        assert!(first.contains(&0) && first.contains(&2), "the coin fell the same way six times: {first:?}");
        let step = |round, repeat| Step { test: 1, round, repeat, value: None };
        assert_eq!(plain, [step(0, 0), step(1, 0), step(0, 1), step(1, 1)]);
    }

    #[test]
    fn what_does_not_fit_is_the_end_of_the_plan() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("plan.toml");
        let timed =
            PLAN.replace("name = \"order\"", "name = \"order\"\nat_most = \"12s\"\nlocalise = { confirm = false }");
        std::fs::write(&path, timed).unwrap();
        let plan = plan::load(&path).unwrap().plan;
        let test = &plan.tests[1];
        let schedule = schedule(&plan, &Inventory::of_plan(&plan)).unwrap();
        let cells: Vec<&Cell> = schedule.cells[1].iter().cycle().take(3).collect();
        let each = Cost::of(test, [cells[0]]).at(Some(PerByte::default())).longest();
        let at = |n: u32| Duration::from_secs(12) - n * each;
        let mut budget = Budget::of(&plan);
        assert_eq!(budget.fitting(test, &cells, None, at(3)), 3);
        let slow = PerByte::of(&plan, test, Some(GigabitsPerSecond(8e-9 * cells[0].size.0 as f64))).unwrap();
        assert_eq!(Budget::of(&plan).fitting(test, &cells, Some(slow), at(3)), 0);
        assert_eq!(budget.fitting(test, &cells, None, at(2)), 2);
        assert_eq!(budget.fitting(test, &cells, None, Duration::ZERO), 0, "what comes behind is less important");
    }
}
