//! Judges suspects by their probes alone.
//!
//! As in [`localise`](mod@crate::localise) a suspect is compared by ranks with controls of the same rounds, so that neither a drift of
//! the whole cluster nor skewed noise confirms anything. The results that made it a suspect do not count again.

use std::collections::HashSet;

use super::{DEAD, Fabric, Findings, Setting, Suspect, Test, interest, locate};
use crate::{
    rank::mann_whitney,
    robust::median_in_place,
    shift::{Interval, shift},
};

const FEWEST: usize = 3;
/// Most controls: with ten results of the suspect the rank test is exact, with or without ties. Three against 40 have a p of 0.00008 at
/// best, which the normal approximation would give as 0.002.
const CONTROLS: usize = 40;
const FALSE_ALARM: f64 = 0.001;
/// Share of the suspect's effect that the probes must show, and share of low probes.
const LIKE: (f64, f64) = (1.0 / 3.0, 0.8);

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Judgement {
    Confirmed {
        effect: f64,
        /// `None` for too few probes.
        interval: Option<Interval>,
        n: usize,
    },
    Cleared {
        effect: f64,
        n: usize,
    },
    Open {
        n: usize,
    },
}

/// By the tests of rounds after the screen. Probes through several suspects count for none of them.
pub fn confirm(fabric: &Fabric, tests: &[Test], findings: &Findings, setting: &Setting) -> Vec<Judgement> {
    let doubtful = interest::doubtful(fabric, findings);
    let clear = |test: &Test| test.routes.iter().flatten().all(|&link| !doubtful[link as usize]);
    let controls: Vec<(u32, f64)> =
        tests.iter().filter(|test| test.round > 0 && clear(test)).filter_map(|test| residual(findings, test)).collect();
    let centres = Centres::new(&controls);
    let centred = |(round, value): (u32, f64)| centres.of(round).map(|centre| value - centre);
    let controls: Vec<f64> = controls.into_iter().filter_map(centred).collect();
    // From all rounds alike.
    let used = controls.len().min(CONTROLS);
    let controls: Vec<f64> = (0..used).map(|at| controls[at * controls.len() / used]).collect();
    let doubted = doubted(fabric, tests, setting);
    let judge = |(number, suspect): (usize, &Suspect)| {
        let of = fabric.links_of(&suspect.part);
        // A result that made the part a suspect does not settle it: it was in doubt before the round.
        let before = |test: &&Test| of.iter().any(|&link| doubted.contains(&(test.round, link)));
        let own = own(fabric, tests, findings, number).filter(before).filter_map(|test| residual(findings, test));
        let own: Vec<f64> = own.filter_map(centred).collect();
        decide(suspect, &own, &controls, findings.suspects.len(), setting)
    };
    findings.suspects.iter().enumerate().map(judge).collect()
}

/// By round after the screen: the links in doubt before it.
fn doubted(fabric: &Fabric, tests: &[Test], setting: &Setting) -> HashSet<(u32, u32)> {
    let mut rounds: Vec<u32> = tests.iter().map(|test| test.round).filter(|&round| round > 0).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let mut doubted = HashSet::new();
    for round in rounds {
        let earlier: Vec<Test> = tests.iter().filter(|test| test.round < round).cloned().collect();
        let Ok(findings) = locate(fabric, &earlier, setting) else { continue };
        let links = interest::doubtful(fabric, &findings).into_iter().enumerate().filter(|(_, is)| *is);
        doubted.extend(links.map(|(link, _)| (round, link as u32)));
    }
    doubted
}

fn decide(suspect: &Suspect, own: &[f64], controls: &[f64], suspects: usize, setting: &Setting) -> Judgement {
    let n = own.len();
    let (Ok(test), Ok(shift)) = (mann_whitney(own, controls), shift(controls, own, 0.95)) else {
        return Judgement::Open { n };
    };
    if n < FEWEST || controls.len() < FEWEST {
        return Judgement::Open { n };
    }
    let low = own.iter().filter(|value| **value < suspect.effect / 2.0).count() as f64;
    let enough = (suspect.effect * LIKE.0).min(-setting.least);
    if test.less * suspects as f64 <= FALSE_ALARM && shift.estimate <= enough && low >= LIKE.1 * n as f64 {
        Judgement::Confirmed { effect: shift.estimate, interval: shift.interval, n }
    } else if shift.estimate > enough && low <= (1.0 - LIKE.1) * n as f64 {
        Judgement::Cleared { effect: shift.estimate, n }
    } else {
        Judgement::Open { n }
    }
}

/// Round of a test and the difference of its result from the level of its kind.
fn residual(findings: &Findings, test: &Test) -> Option<(u32, f64)> {
    let level = findings.levels.get(&test.kind)?;
    Some((test.round, test.value.map_or(DEAD, |value| (value - level.centre).max(DEAD))))
}

/// Probes whose routes surely pass the suspect, or most likely by the screen, and no other suspect.
fn own<'a>(
    fabric: &'a Fabric,
    tests: &'a [Test],
    findings: &'a Findings,
    number: usize,
) -> impl Iterator<Item = &'a Test> {
    let mark = |links: Vec<u32>| {
        let mut is = vec![false; fabric.links().len()];
        links.into_iter().for_each(|link| is[link as usize] = true);
        is
    };
    let suspects = &findings.suspects;
    let part = mark(fabric.links_of(&suspects[number].part));
    let others = suspects.iter().enumerate().filter(move |(at, _)| *at != number);
    let others = mark(others.flat_map(|(_, other)| fabric.links_of(&other.part)).collect());
    let screened = |&&at: &&usize| tests[at].round == 0;
    let mut flows: Vec<(u32, u32, u32)> = findings.low[number]
        .iter()
        .filter(screened)
        .map(|&at| (tests[at].from, tests[at].to, tests[at].flow))
        .collect();
    flows.sort_unstable();
    tests.iter().filter(move |test| {
        let passes = |is: &[bool], route: &Vec<u32>| route.iter().any(|&link| is[link as usize]);
        let sure = test.routes.iter().all(|route| passes(&part, route));
        let again = test.routes.len() > 1 && flows.binary_search(&(test.from, test.to, test.flow)).is_ok();
        let elsewhere = if again {
            test.routes.iter().all(|route| passes(&others, route))
        } else {
            test.routes.iter().any(|route| passes(&others, route))
        };
        test.round > 0 && (sure || again) && !elsewhere
    })
}

struct Centres(Vec<(u32, f64)>);

impl Centres {
    fn new(controls: &[(u32, f64)]) -> Self {
        let mut sorted = controls.to_vec();
        sorted.sort_by_key(|(round, _)| *round);
        let centre = |of: &[(u32, f64)]| {
            (of[0].0, median_in_place(&mut of.iter().map(|(_, value)| *value).collect::<Vec<f64>>()))
        };
        Self(sorted.chunk_by(|a, b| a.0 == b.0).map(centre).collect())
    }

    /// `None` for a round without controls: everything may have been slow.
    fn of(&self, round: u32) -> Option<f64> {
        self.0.iter().find(|(of, _)| *of == round).map(|(_, centre)| *centre)
    }
}
