//! In which order tests, repeats and rounds are run.

use railgauge_model::{
    plan::{Plan, model::Interleave},
    schedule::turns,
};
use railgauge_stats::compare::{Variant, block_orders};

/// One round, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Position of the test in the plan.
    pub test: usize,
    /// Number of the round in its test.
    pub round: u32,
    /// Repeat, counted from 0.
    pub repeat: u32,
    /// Place of the only value of the test that is measured; all cases of the round if `None`.
    pub value: Option<usize>,
}

/// All rounds of a plan in the order in which they are run; `rounds` are the numbers of each test's rounds.
///
/// Tests follow one another in the plan's order, repeat by repeat. Two interleaved tests stand at the place of the first
/// of them: in every block, round after round is run in the block's order. A test with values runs all of its rounds at one value, then
/// at the next, in every repeat.
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

#[cfg(test)]
mod tests {
    use super::*;
    use railgauge_model::plan;

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
}
