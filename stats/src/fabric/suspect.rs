use std::collections::BTreeMap;

use super::{
    Fabric, Part, Route, Setting, Test,
    candidates::Candidates,
    search::{Found, Search, search},
    state::State,
    table::{Table, counted},
};
use crate::{refusal::Refusal, robust::Level, shift::Interval, student::t_quantile};

/// Log odds that exclude another part: a thousand to one.
const RULED_OUT: f64 = 6.907_755_278_982_137;
const LEVEL: f64 = 0.95;
/// A link passed with a lower probability counts as not tested.
const TESTED: f64 = 0.99;
/// A result is good within this many standard deviations.
const GOOD: f64 = 3.0;

#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    pub part: Part,
    /// Parts that explain the same results about as well.
    pub alternatives: Vec<Part>,
    pub effect: f64,
    /// From the flows that surely or most likely passed it.
    pub interval: Interval,
    pub dead: bool,
    /// Low flows that most likely passed it.
    pub low: usize,
    pub good: usize,
    pub gain: f64,
}

impl Suspect {
    /// Cables of the part or an alternative; empty if a device may be bad.
    pub fn cables(&self, fabric: &Fabric) -> Vec<Part> {
        let all = || [self.part].into_iter().chain(self.alternatives.iter().copied());
        if all().any(|part| matches!(part, Part::Device(_))) {
            return Vec::new();
        }
        fabric.cables(&all().flat_map(|part| fabric.links_of(&part)).collect::<Vec<u32>>())
    }

    /// Of the part and every alternative, without duplicates.
    pub(super) fn links(&self, fabric: &Fabric) -> Vec<u32> {
        let all = [self.part].into_iter().chain(self.alternatives.iter().copied());
        let mut links: Vec<u32> = all.flat_map(|part| fabric.links_of(&part)).collect();
        links.sort_unstable();
        links.dedup();
        links
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    pub suspects: Vec<Suspect>,
    /// By link: probability that a judged test passed it; 1 for a known route, less for hashed routes.
    pub passed: Vec<f64>,
    /// By link: whether a good test surely passed it.
    pub shown_good: Vec<bool>,
    /// By kind. Kinds without a level had too few tests and were not judged.
    pub levels: BTreeMap<u32, Level>,
    /// Indices of low tests without a suspect: good results on all their links mark them as strays.
    pub unexplained: Vec<usize>,
    pub looks: usize,
    /// By suspect: indices of the low tests that most likely passed it.
    pub(super) low: Vec<Vec<usize>>,
}

impl Findings {
    /// Links that possibly no test passed: neither good nor bad.
    pub fn untested(&self) -> Vec<u32> {
        (0..self.passed.len() as u32).filter(|&link| self.passed[link as usize] < TESTED).collect()
    }
}

/// Finds the suspects among all links, cables and devices that the tests pass.
///
/// A part is a suspect if its likelihood ratio exceeds what chance reaches once in a hundred healthy fabrics (Student's t for the spread,
/// Bonferroni over the parts that the tests separate).
///
/// # Errors
/// No kind with [`FEWEST`](super::FEWEST) flows, a value that is not finite, a route without links or with a link that the fabric does not have, or a
/// least effect or noise that is negative.
pub fn locate(fabric: &Fabric, tests: &[Test], setting: &Setting) -> Result<Findings, Refusal> {
    check(fabric, tests, setting)?;
    let first = Table::new(fabric, tests, setting)?;
    let candidates = Candidates::new(fabric, &first);
    let found = search(fabric, &first, &candidates, setting);
    // If most paths are low, the better cluster is good: no fault makes a path better.
    if let Some(second) = first.above() {
        let other = search(fabric, &second, &candidates, setting);
        if other.cost < found.cost {
            return Ok(findings(fabric, tests, &second, &candidates, other));
        }
    }
    Ok(findings(fabric, tests, &first, &candidates, found))
}

fn check(fabric: &Fabric, tests: &[Test], setting: &Setting) -> Result<(), Refusal> {
    if let Some(at) = tests.iter().position(|test| test.value.is_some_and(|value| !value.is_finite())) {
        return Err(Refusal::NotFinite { at });
    }
    if !(setting.least >= 0.0 && setting.least.is_finite() && setting.noise >= 0.0 && setting.noise.is_finite()) {
        return Err(Refusal::Parameter("the least effect and the noise are not negative"));
    }
    let links = fabric.links().len() as u32;
    let known = |test: &Test| {
        let all = |route: &Route| !route.is_empty() && route.iter().all(|&link| link < links);
        !test.routes.is_empty() && test.routes.len() <= usize::from(u16::MAX) && test.routes.iter().all(all)
    };
    if tests.iter().all(known) { Ok(()) } else { Err(Refusal::Parameter("a route has no links, or an unknown one")) }
}

fn findings(fabric: &Fabric, tests: &[Test], table: &Table, candidates: &Candidates, found: Found<'_>) -> Findings {
    let price = found.price;
    let mut search = Search { fabric, table, candidates, state: found.state };
    let unexplained = unexplained(&search.state, table, price);
    let mut described = Vec::new();
    for at in 0..search.state.found.len() {
        let (part, effect) = search.state.remove(at);
        let rivals = search.best(&search.rivals(&part), price);
        let touches = table.touching(&fabric.links_of(&part));
        let gain = search.state.gain(&touches, effect);
        let near = rivals.iter().filter(|(_, _, of)| *of > gain - RULED_OUT).map(|(other, ..)| *other);
        let taken = |other: &Part| *other == part || search.state.found.iter().any(|(found, _)| found == other);
        let mut alternatives: Vec<Part> =
            near.chain([part]).flat_map(|other| candidates.members(&other)).filter(|other| !taken(other)).collect();
        alternatives.sort_unstable();
        alternatives.dedup();
        described.push(describe(&search, tests, part, alternatives, effect, gain));
        search.state.insert(at, part, effect);
    }
    described.sort_by(|(a, _), (b, _)| a.effect.total_cmp(&b.effect).then_with(|| a.part.cmp(&b.part)));
    let (suspects, low) = described.into_iter().unzip();
    let (passed, shown_good) = passed(table);
    Findings {
        suspects,
        passed,
        shown_good,
        levels: table.levels.clone(),
        unexplained,
        looks: candidates.classes.len(),
        low,
    }
}

fn describe(
    search: &Search<'_, '_>,
    tests: &[Test],
    part: Part,
    alternatives: Vec<Part>,
    effect: f64,
    gain: f64,
) -> (Suspect, Vec<usize>) {
    let table = search.table;
    let touches = table.touching(&search.fabric.links_of(&part));
    let (mut low, mut good, mut precision) = (Vec::new(), 0, 0.0);
    for of in touches.chunk_by(|a, b| a.0 == b.0) {
        let cell = &table.cells[of[0].0 as usize];
        // Flows that another suspect makes at least as low say nothing of this one.
        if search.state.expected(of[0].0) <= effect {
            continue;
        }
        if cell.residual >= effect / 2.0 {
            good += usize::from(of.len() == cell.routes);
        } else if search.state.responsible(of, effect) > 0.5 {
            low.extend(cell.tests.iter().copied());
            precision += 1.0 / (cell.error * cell.error);
        }
    }
    let freedom = table.levels.values().map(|level| level.n).max().unwrap_or(2).saturating_sub(1).max(1) as f64;
    let half =
        if precision > 0.0 { t_quantile((1.0 - LEVEL) / 2.0, freedom) / precision.sqrt() } else { f64::INFINITY };
    let dead = !low.is_empty() && low.iter().all(|&at| tests[at].value.is_none());
    let interval = Interval { low: effect - half, high: effect + half, level: LEVEL };
    let suspect = Suspect { part, alternatives, effect, interval, dead, low: low.len(), good, gain };
    (suspect, low)
}

fn unexplained(state: &State<'_>, table: &Table, price: f64) -> Vec<usize> {
    let open = |at: &usize| table.cells[*at].residual < 0.0 && state.cost(*at as u32) > price;
    let mut tests: Vec<usize> =
        (0..table.cells.len()).filter(open).flat_map(|at| table.cells[at].tests.clone()).collect();
    tests.sort_unstable();
    tests
}

/// By link: probability that a flow passed it, and whether a good one surely did.
fn passed(table: &Table) -> (Vec<f64>, Vec<bool>) {
    let of = |touches: &Vec<(u32, u16)>| {
        let (mut missed, mut good) = (1.0, false);
        for (at, routes) in counted(touches) {
            let cell = &table.cells[at as usize];
            missed *= 1.0 - f64::from(routes) / cell.routes as f64;
            good |= usize::from(routes) == cell.routes && cell.residual > -GOOD * cell.error;
        }
        (1.0 - missed, good)
    };
    table.passing.iter().map(of).unzip()
}
