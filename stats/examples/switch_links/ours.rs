//! Our method on a world: the screen, up to three rounds of probes, the judgement.

use railgauge_stats::fabric::{Findings, Judgement, Part, Ports, Setting, Test, confirm, locate, probes};

use crate::world::World;

pub const SCREEN: usize = 6;
pub const ROUNDS: u32 = 3;

pub struct Said {
    /// Confirmed parts, each with what could be meant instead.
    pub named: Vec<(Part, Vec<Part>)>,
    pub suspected: bool,
}

pub fn screen(world: &mut World<'_>, rounds: usize) -> Vec<Test> {
    let tree = world.tree;
    let rounds = tree.screen(rounds, |below| world.below(below));
    let mut tests = Vec::new();
    for (number, round) in rounds.iter().enumerate() {
        for &(from, to) in round {
            let (routes, flow) = (tree.routes(from, to), number as u32);
            let value = world.test(from, to, flow, &routes);
            tests.push(Test { from, to, flow, routes, kind: 0, round: 0, value });
        }
    }
    tests
}

/// The whole procedure on the results of a screen.
pub fn run(world: &mut World<'_>, tests: &mut Vec<Test>) -> Said {
    let (tree, setting) = (world.tree, Setting::default());
    let ports: Vec<u32> = (0..tree.ports).collect();
    let routes = |from: u32, to: u32| tree.routes(from, to);
    let ports = Ports { ports: &ports, routes: &routes };
    #[expect(clippy::expect_used, reason = "results of the generator are finite and many")]
    let look = |tests: &[Test]| locate(&tree.fabric, tests, &setting).expect("findings");
    let mut findings: Findings = look(tests);
    let suspected = !findings.suspects.is_empty();
    for round in 1..=ROUNDS {
        let next = probes(&tree.fabric, tests, &findings, &ports, &|_, _| 0, round);
        if next.is_empty() {
            break;
        }
        for probe in next {
            let value = world.test(probe.from, probe.to, probe.flow, &probe.routes);
            let (from, to, flow, routes, kind) = (probe.from, probe.to, probe.flow, probe.routes, probe.kind);
            tests.push(Test { from, to, flow, routes, kind, round, value });
        }
        findings = look(tests);
    }
    let judgements = confirm(&tree.fabric, tests, &findings, &setting);
    let confirmed = findings.suspects.iter().zip(judgements);
    let confirmed = confirmed.filter(|(_, judgement)| matches!(judgement, Judgement::Confirmed { .. }));
    Said { named: confirmed.map(|(of, _)| (of.part, of.alternatives.clone())).collect(), suspected }
}
