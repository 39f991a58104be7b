//! The next tests: one round that shares no port and no link, and separates the suspects.

use std::collections::HashSet;

use super::{Fabric, Findings, Route, Test, interest};

/// Good paths per round, for comparison with suspects.
const CONTROLS: usize = 16;
/// Most low flows of a suspect that a round repeats with hashed routes.
const REPEATS: usize = 6;
const MOST: usize = 32;
/// Cost of another doubtful link on a path, relative to a link that no good test passed.
const DOUBT: usize = 16;

pub struct Ports<'a> {
    pub ports: &'a [u32],
    /// Candidate routes from the first port to the second; none to exclude the pair. Routes with unknown links are skipped.
    pub routes: &'a dyn Fn(u32, u32) -> Vec<Route>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    pub from: u32,
    pub to: u32,
    pub flow: u32,
    pub routes: Vec<Route>,
    /// As [`Test::kind`].
    pub kind: u32,
    /// Index among the findings; `None` for a control.
    pub suspect: Option<usize>,
}

/// Tests of the next round. Every doubtful link is passed once, with good links where such a path exists, else with as few doubtful ones
/// as possible; so is the other direction of its cable. With hashed routes, low flows are repeated, which take the same route again.
/// Partners change from round to round. Empty without suspects.
///
/// `kind` returns the [`Test::kind`] of two ports. `round` counts from 1.
pub fn probes(
    fabric: &Fabric,
    tests: &[Test],
    findings: &Findings,
    ports: &Ports<'_>,
    kind: &dyn Fn(u32, u32) -> u32,
    round: u32,
) -> Vec<Probe> {
    if findings.suspects.is_empty() {
        return Vec::new();
    }
    let mut plan = Plan::new(fabric, tests, findings, ports, kind, round);
    // The first links of every suspect before the second ones of any.
    for (number, low) in findings.low.iter().enumerate().take(MOST) {
        plan.repeat(number, low);
    }
    let of = |suspect| interest::links(fabric, suspect, round as usize);
    let wanted: Vec<Vec<u32>> = findings.suspects.iter().take(MOST).map(of).collect();
    for place in 0..wanted.iter().map(Vec::len).max().unwrap_or(0) {
        // Controls are required, so a few precede the less important links.
        if place == 1 {
            plan.controls(CONTROLS / 2);
        }
        for (number, links) in wanted.iter().enumerate() {
            if let Some(&link) = links.get(place) {
                plan.pass(number, link);
            }
        }
    }
    plan.controls(CONTROLS);
    plan.probes
}

struct Plan<'a> {
    tests: &'a [Test],
    findings: &'a Findings,
    ports: &'a Ports<'a>,
    kind: &'a dyn Fn(u32, u32) -> u32,
    round: u32,
    doubtful: Vec<bool>,
    passing: Vec<Vec<usize>>,
    sends: HashSet<u32>,
    receives: HashSet<u32>,
    used: Vec<bool>,
    next_flow: u32,
    probes: Vec<Probe>,
}

impl<'a> Plan<'a> {
    fn new(
        fabric: &Fabric,
        tests: &'a [Test],
        findings: &'a Findings,
        ports: &'a Ports<'a>,
        kind: &'a dyn Fn(u32, u32) -> u32,
        round: u32,
    ) -> Self {
        let links = fabric.links().len();
        let mut passing = vec![Vec::new(); links];
        for (at, test) in tests.iter().enumerate() {
            test.routes.iter().flatten().for_each(|&link| passing[link as usize].push(at));
        }
        passing.iter_mut().for_each(Vec::dedup);
        Self {
            tests,
            findings,
            ports,
            kind,
            round,
            doubtful: interest::doubtful(fabric, findings),
            passing,
            sends: HashSet::new(),
            receives: HashSet::new(),
            used: vec![false; links],
            next_flow: tests.iter().map(|test| test.flow).max().map_or(0, |flow| flow.saturating_add(1)),
            probes: Vec::new(),
        }
    }

    /// Hashed routes are unknown, so only ports and sure links count for conflicts.
    fn free(&self, from: u32, to: u32, routes: &[Route]) -> bool {
        let links = || routes.iter().take(1).flatten().filter(|link| routes.iter().all(|route| route.contains(link)));
        from != to
            && !self.sends.contains(&from)
            && !self.receives.contains(&to)
            && links().all(|&link| !self.used[link as usize])
    }

    fn add(&mut self, from: u32, to: u32, flow: u32, routes: Vec<Route>, suspect: Option<usize>) {
        self.sends.insert(from);
        self.receives.insert(to);
        if let [route] = &routes[..] {
            route.iter().for_each(|&link| self.used[link as usize] = true);
        } else if let Some(first) = routes.first() {
            let sure = first.iter().filter(|link| routes.iter().all(|route| route.contains(link)));
            sure.for_each(|&link| self.used[link as usize] = true);
        }
        self.probes.push(Probe { from, to, flow, routes, kind: (self.kind)(from, to), suspect });
    }

    fn repeat(&mut self, suspect: usize, low: &[usize]) {
        let (tests, mut left) = (self.tests, REPEATS);
        for &at in low {
            let test = &tests[at];
            if left > 0 && test.routes.len() > 1 && self.free(test.from, test.to, &test.routes) {
                self.add(test.from, test.to, test.flow, test.routes.clone(), Some(suspect));
                left -= 1;
            }
        }
    }

    /// Tests a link on the best path between a port that has used it and any other.
    fn pass(&mut self, suspect: usize, link: u32) {
        let of = &self.passing[link as usize];
        let mut ends: [Vec<u32>; 2] =
            [of.iter().map(|&at| self.tests[at].from).collect(), of.iter().map(|&at| self.tests[at].to).collect()];
        ends.iter_mut().for_each(|ends| {
            ends.sort_unstable();
            ends.dedup();
        });
        // If no route surely passes the link, the first possible path is as good as another.
        let hashed = !of.iter().any(|&at| self.tests[at].routes.iter().all(|route| route.contains(&link)));
        let ports = self.ports.ports;
        let turn = (self.round as usize * 7 + link as usize * 3) % ports.len().max(1);
        let others = || ports.iter().cycle().skip(turn).take(ports.len()).copied();
        let pairs = ends[0].iter().flat_map(|&from| others().map(move |to| (from, to)));
        let pairs = pairs.chain(ends[1].iter().flat_map(|&to| others().map(move |from| (from, to))));
        let mut best: Option<(usize, u32, u32, Vec<Route>)> = None;
        for (from, to) in pairs {
            if from == to || self.sends.contains(&from) || self.receives.contains(&to) {
                continue;
            }
            let routes = (self.ports.routes)(from, to);
            let passes = routes.iter().filter(|route| route.contains(&link)).count();
            let known = routes.iter().flatten().all(|&other| (other as usize) < self.used.len());
            if passes == 0 || !known || !self.free(from, to, &routes) {
                continue;
            }
            let missing = routes.len() / passes - 1;
            let cost = missing + self.cost(link, &routes) + self.known(link, from, to);
            if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                best = Some((cost, from, to, routes));
                if cost == if hashed { missing } else { 0 } {
                    break;
                }
            }
        }
        if let Some((_, from, to, routes)) = best {
            let flow = if routes.len() > 1 { self.next_flow } else { 0 };
            self.next_flow = self.next_flow.saturating_add(1);
            self.add(from, to, flow, routes, Some(suspect));
        }
    }

    /// Cost of routes: other doubtful links, and links that no good test passed.
    fn cost(&self, link: u32, routes: &[Route]) -> usize {
        let sure = |other: &&u32| **other != link && routes.iter().all(|route| route.contains(other));
        let cost = |other: &u32| match (self.doubtful[*other as usize], self.findings.shown_good[*other as usize]) {
            (true, _) => DOUBT,
            (false, true) => 0,
            (false, false) => 2,
        };
        routes.iter().take(1).flatten().filter(sure).map(cost).sum()
    }

    /// 1 for measured ends: another partner gives more information.
    fn known(&self, link: u32, from: u32, to: u32) -> usize {
        let same = |at: &usize| self.tests[*at].from == from && self.tests[*at].to == to;
        usize::from(self.passing[link as usize].iter().any(same))
    }

    fn controls(&mut self, most: usize) {
        let (tests, n) = (self.tests, self.tests.len());
        let there = self.probes.iter().filter(|probe| probe.suspect.is_none()).count();
        let (mut left, first) = (most.saturating_sub(there), self.round as usize * n / 7);
        for at in (0..n).map(|at| (at + first) % n) {
            let test = &tests[at];
            let good = |route: &Vec<u32>| route.iter().all(|&link| !self.doubtful[link as usize]);
            if left > 0
                && test.value.is_some()
                && test.routes.iter().all(good)
                && self.free(test.from, test.to, &test.routes)
            {
                self.add(test.from, test.to, test.flow, test.routes.clone(), None);
                left -= 1;
            }
        }
    }
}
