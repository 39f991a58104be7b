//! How far a run is that is still going on, told from its journal line by line, as the lines come.
//!
//! Nothing is judged here: what was demanded is answered when the run is over. Each line is read once; of a case only its place is
//! kept, so that a long run takes little memory beside its own.

mod failures;
mod left;
mod rates;
mod rounds;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::Timestamp;
use railgauge_model::{
    journal::{
        event::{Case, Event, Outcome, Soaked},
        line::{self, LineError},
    },
    plan::Plan,
    schedule::{Cell, Cost, Seen},
};

pub use failures::{Failed, Failures};
pub use left::{Basis, Left, TimeLeft};
pub use rates::Rates;
pub use rounds::{Current, TestRounds};

/// What a run does right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Hosts are contacted and the cases planned.
    Preparing,
    /// The rounds of the tests.
    Tests,
    /// What the tests left open is measured again.
    Confirming,
    /// The soak.
    Soak,
    /// It came to its end.
    Finished,
    /// It was interrupted.
    Interrupted,
    /// The cluster or the disk did not let it go on.
    Prevented,
}

/// A run as far as its journal tells.
#[derive(Debug, Default)]
pub struct Underway {
    /// What the lines call the run.
    run: Option<String>,
    /// The plan, once the first line is read.
    pub plan: Option<Box<Plan>>,
    /// Identity of the run.
    pub run_id: String,
    /// When it began; `None` before its first line.
    pub began: Option<Timestamp>,
    doing: Option<Doing>,
    /// Hosts that answer.
    pub up: BTreeSet<String>,
    /// Hosts that were lost and did not come back, and why.
    pub lost: BTreeMap<String, String>,
    /// Hosts that were lost and came back.
    pub came_back: BTreeSet<String>,
    /// The tests, in the order of the plan.
    pub tests: Vec<TestRounds>,
    /// The round that runs.
    pub current: Option<Current>,
    /// What was measured so far, by test.
    pub rates: Vec<Rates>,
    /// What failed so far.
    pub failures: Failures,
    /// Further cases that were asked for, and those that were tried.
    pub further: (u64, u64),
    /// Further cases that were tried and have no measurement.
    further_failed: u64,
    /// Rounds of further cases, by the position of their test, and what those take that are not over.
    further_rounds: BTreeMap<(usize, u32), Cost>,
    /// The pace of links, by the rounds that are over.
    seen: Seen,
    /// Whether the process that runs has asked for further cases: the rounds of the tests are over then.
    again: bool,
    /// How long the soak has lasted, in nanoseconds.
    pub soaked: u64,
    /// How often the run was taken up again.
    pub resumed: u32,
    /// Lines that could not be read.
    pub unread: u64,
    cases: Vec<Place>,
    /// Cells of the largest size of each test.
    cells: Vec<Cell>,
}

/// Where a case belongs, and its ends.
#[derive(Debug, Clone, Copy)]
struct Place {
    test: u32,
    round: u32,
    /// Where it is of the test's largest size and most queue pairs, of which rates are told: its cell, in [`Underway::cells`].
    cell: Option<u32>,
    /// Ends or ranks.
    ranks: u32,
}

impl Underway {
    /// What it does right now.
    pub fn doing(&self) -> Doing {
        self.doing.unwrap_or(Doing::Preparing)
    }

    /// Whether no further line is to come from the process that wrote the last one.
    pub fn is_over(&self) -> bool {
        matches!(self.doing(), Doing::Finished | Doing::Interrupted | Doing::Prevented)
    }

    /// Takes the next whole line of the file. One that cannot be read is counted, and what it said is missing.
    pub fn line(&mut self, bytes: &[u8]) {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match line::decode(bytes, self.run.as_deref()) {
            Ok(read) => {
                self.run.get_or_insert(read.run);
                match read.line.at.parse() {
                    Ok(at) => self.event(at, read.line.event),
                    Err(_) => self.unread += 1,
                }
            }
            Err(LineError::Damaged(_) | LineError::Version(_) | LineError::Unknown(_)) => self.unread += 1,
        }
    }

    /// Takes the next event.
    pub fn event(&mut self, at: Timestamp, event: Event) {
        self.began.get_or_insert(at);
        match event {
            Event::Started { run_id, resolved, .. } => {
                self.run_id = run_id;
                self.tests = resolved.tests.iter().map(TestRounds::of).collect();
                self.rates = resolved.tests.iter().map(Rates::of).collect();
                self.plan = Some(resolved);
            }
            Event::HostUp { host, .. } => {
                if self.lost.remove(&host).is_some() {
                    self.came_back.insert(host.clone());
                }
                self.up.insert(host);
            }
            Event::HostLost { host, failure } => {
                self.up.remove(&host);
                self.lost.insert(host, failure.unnamed().to_string());
            }
            Event::Planned { cases } => self.planned(&cases),
            Event::Round { test, round, repeat } => {
                self.end_of_round(at);
                let test = self.test(&test);
                let further = test.is_some_and(|test| self.is_further(test, round, repeat));
                self.doing = Some(if further { Doing::Confirming } else { Doing::Tests });
                self.current = test.map(|test| Current { test, round, repeat, began: at, further });
            }
            Event::Outcome(outcome) => self.outcome(&outcome),
            Event::Confirming { cases, .. } => {
                self.end_of_round(at);
                self.further.0 += cases.len() as u64;
                let mut seen = HashSet::new();
                for case in &cases {
                    let Some(test) = self.test(&case.test) else { continue };
                    let round = self.further_rounds.entry((test, case.round)).or_default();
                    if let (true, Some(plan)) = (seen.insert((test, case.round, &*case.cell)), &self.plan) {
                        *round += Cost::of(&plan.tests[test], [&*case.cell]);
                    }
                }
                self.again = true;
                self.doing = Some(Doing::Confirming);
            }
            Event::Soaked(part) => self.soak(at, &part),
            Event::Stages(_) => self.end_of_round(at),
            Event::Resumed { .. } => self.taken_up(),
            Event::Interrupted => self.ended(Doing::Interrupted),
            Event::Prevented { .. } => self.ended(Doing::Prevented),
            Event::Finished => self.ended(Doing::Finished),
            // What another tool measured is never under way.
            Event::Imported(_)
            | Event::Routes { .. }
            | Event::Link(_)
            | Event::Copies { .. }
            | Event::Configuring { .. }
            | Event::Configured { .. }
            | Event::Watched { .. }
            | Event::Note { .. } => {}
        }
    }

    fn test(&self, name: &str) -> Option<usize> {
        self.plan.as_ref()?.tests.iter().position(|test| test.name == name)
    }

    /// Whether a round is one of further cases. A run that is resumed goes on with those that were asked for before, without asking
    /// anew, once the rounds of its tests are over.
    fn is_further(&self, test: usize, round: u32, repeat: u32) -> bool {
        let open = || self.tests.get(test).is_some_and(|test| test.is_open(round, repeat));
        self.again || (self.further_rounds.contains_key(&(test, round)) && !open())
    }

    fn planned(&mut self, cases: &[Case]) {
        let Some(plan) = &self.plan else { return };
        let position: BTreeMap<&str, usize> = plan.tests.iter().map(|test| test.name.as_str()).zip(0..).collect();
        let mut most = vec![None; plan.tests.len()];
        for case in cases {
            if let Some(&test) = position.get(&*case.test) {
                most[test] = most[test].max(Some((case.cell.size, case.cell.qps)));
            }
        }
        let mut cells: Vec<Cell> = Vec::new();
        let mut place = |case: &Case| {
            let test = *position.get(&*case.test)?;
            let is_largest = most[test] == Some((case.cell.size, case.cell.qps));
            let cell = is_largest.then(|| {
                cells.iter().position(|cell| *cell == *case.cell).unwrap_or_else(|| {
                    cells.push(Cell::clone(&case.cell));
                    cells.len() - 1
                })
            });
            let cell = cell.and_then(|cell| u32::try_from(cell).ok());
            Some(Place { test: u32::try_from(test).ok()?, round: case.round, cell, ranks: case.flow.ranks() })
        };
        // A case of a test that the plan does not have has no place; those behind it must keep theirs.
        let nowhere = Place { test: u32::MAX, round: 0, cell: None, ranks: 0 };
        self.cases = cases.iter().map(|case| place(case).unwrap_or(nowhere)).collect();
        self.cells = cells;
        self.tests = plan.tests.iter().map(TestRounds::of).collect();
        for (case, place) in cases.iter().zip(&self.cases) {
            if let Some(test) = self.tests.get_mut(place.test as usize) {
                test.plan(&plan.tests[place.test as usize], case);
            }
        }
    }

    /// The round that ran is over: the next step has begun.
    fn end_of_round(&mut self, at: Timestamp) {
        let Some(current) = self.current.take() else { return };
        // A round of further cases is none of the test's.
        match (current.further, self.tests.get_mut(current.test)) {
            (true, _) => drop(self.further_rounds.insert((current.test, current.round), Cost::default())),
            (false, Some(test)) => test.over(&current, at, &mut self.seen),
            (false, None) => {}
        }
    }

    fn outcome(&mut self, outcome: &Outcome) {
        let place = usize::try_from(outcome.case).ok().and_then(|case| self.cases.get(case).copied());
        let failed = self.failures.take(outcome);
        let Some(place) = place else {
            self.further.1 += 1;
            self.further_failed += u64::from(failed);
            return;
        };
        let index = place.test as usize;
        if let Some(test) = self.tests.get_mut(index) {
            test.outcome(place.round, outcome.repeat, failed);
        }
        let cell = place.cell.and_then(|cell| self.cells.get(cell as usize));
        if let (Some(rates), Some(cell), Ok(sample)) = (self.rates.get_mut(index), cell, &outcome.result) {
            rates.take(sample, cell, place.ranks);
        }
    }

    fn soak(&mut self, at: Timestamp, part: &Soaked) {
        self.end_of_round(at);
        self.doing = Some(Doing::Soak);
        self.soaked = self.soaked.saturating_add(part.until.saturating_sub(part.from).0);
        self.failures.windows += part.flows.iter().map(|flow| flow.failed).sum::<u64>();
    }

    /// A later process measures again what failed or is missing.
    fn taken_up(&mut self) {
        self.resumed += 1;
        self.again = false;
        self.further.1 = self.further.1.saturating_sub(std::mem::take(&mut self.further_failed));
        self.current = None;
        self.doing = Some(Doing::Preparing);
        // Who was lost is lost until it answers again.
        self.up.clear();
        self.failures.forget_cases();
        self.tests.iter_mut().for_each(TestRounds::open_again);
    }

    fn ended(&mut self, how: Doing) {
        self.current = None;
        self.doing = Some(how);
    }
}

#[cfg(test)]
mod tests;
