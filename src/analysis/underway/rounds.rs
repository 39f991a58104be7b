//! The rounds of a test: which are over, which have cases left, how long they took.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use jiff::Timestamp;
use railgauge_model::{
    journal::event::Case,
    plan::model::Test,
    schedule::{Cost, Flow, PerByte, Seen},
};

/// The round that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current {
    /// Position of its test in the plan.
    pub test: usize,
    /// Number of the round in its test, from 0.
    pub round: u32,
    /// Repeat, counted from 0.
    pub repeat: u32,
    /// When it began.
    pub began: Timestamp,
    /// Whether it measures suspects again: it is none of the rounds of its test then.
    pub further: bool,
}

/// The rounds of a test.
#[derive(Debug, Clone)]
pub struct TestRounds {
    /// Name of the test.
    pub name: String,
    repeats: u32,
    rounds: BTreeMap<u32, Planned>,
    tried: HashMap<(u32, u32), Tried>,
    /// How long rounds took that came to their end, in the order in which they ended.
    pub took: Vec<Duration>,
    /// What each flow of the round takes that is being planned.
    counting: Option<(u32, HashMap<Flow, Cost>)>,
}

/// A round as planned.
#[derive(Debug, Clone, Copy, Default)]
struct Planned {
    /// Its cases.
    cases: u32,
    /// What the flow takes that has most to do: its cases follow one another, while flows run side by side.
    cost: Cost,
}

/// What became of a round in one repeat.
#[derive(Debug, Clone, Copy, Default)]
struct Tried {
    had: u32,
    failed: u32,
    over: bool,
}

impl TestRounds {
    pub(super) fn of(test: &Test) -> Self {
        Self {
            name: test.name.clone(),
            repeats: test.repeats,
            rounds: BTreeMap::new(),
            tried: HashMap::new(),
            took: Vec::new(),
            counting: None,
        }
    }

    /// Takes a planned case. Those of a round stand together.
    pub(super) fn plan(&mut self, test: &Test, case: &Case) {
        if self.counting.as_ref().is_none_or(|(round, _)| *round != case.round) {
            self.counting = Some((case.round, HashMap::new()));
        }
        let Some((_, flows)) = &mut self.counting else { return };
        let of_flow = flows.entry(case.flow.clone()).or_default();
        *of_flow += Cost::of(test, [&*case.cell]);
        let round = self.rounds.entry(case.round).or_default();
        round.cases += 1;
        if of_flow.at(PerByte::default()).at_least > round.cost.at(PerByte::default()).at_least {
            round.cost = *of_flow;
        }
    }

    pub(super) fn outcome(&mut self, round: u32, repeat: u32, failed: bool) {
        let tried = self.tried.entry((round, repeat)).or_default();
        tried.had += 1;
        tried.failed += u32::from(failed);
    }

    /// The next step has begun: what has no outcome by now will have none.
    pub(super) fn over(&mut self, round: &Current, at: Timestamp, seen: &mut Seen) {
        self.tried.entry((round.round, round.repeat)).or_default().over = true;
        if let Ok(took) = Duration::try_from(at.duration_since(round.began)) {
            self.took.push(took);
            seen.add(self.rounds.get(&round.round).map(|planned| planned.cost).unwrap_or_default(), took);
        }
    }

    /// What failed or is missing is measured again.
    pub(super) fn open_again(&mut self) {
        for tried in self.tried.values_mut() {
            tried.had -= tried.failed.min(tried.had);
            tried.failed = 0;
            tried.over = false;
        }
    }

    fn is_over(&self, round: u32, planned: Planned, repeat: u32) -> bool {
        self.tried.get(&(round, repeat)).is_some_and(|tried| tried.over || tried.had >= planned.cases)
    }

    /// Whether a round was planned and is not over.
    pub(super) fn is_open(&self, round: u32, repeat: u32) -> bool {
        self.rounds.get(&round).is_some_and(|&planned| !self.is_over(round, planned, repeat))
    }

    /// Rounds that are over, and all of them; each repeat counts.
    pub fn done(&self) -> (u64, u64) {
        let all = self.each().count() as u64;
        (self.each().filter(|&(round, planned, repeat)| self.is_over(round, planned, repeat)).count() as u64, all)
    }

    /// Rounds of one repeat.
    pub fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// How often each round is run.
    pub fn repeats(&self) -> u32 {
        self.repeats
    }

    /// Outcomes that are there, and all that were planned.
    pub fn cases(&self) -> (u64, u64) {
        let had = self.each().map(|(round, planned, repeat)| {
            self.tried.get(&(round, repeat)).map_or(0, |tried| u64::from(tried.had.min(planned.cases)))
        });
        let all: u64 = self.each().map(|(_, planned, _)| u64::from(planned.cases)).sum();
        (had.sum(), all)
    }

    /// Outcomes that say why there is no measurement.
    pub fn failed(&self) -> u64 {
        self.tried.values().map(|tried| u64::from(tried.failed)).sum()
    }

    /// What each round takes that is not over; with whether it is the one that runs.
    pub(super) fn open(&self, current: Option<(u32, u32)>) -> impl Iterator<Item = (bool, Cost)> {
        self.each().filter_map(move |(round, planned, repeat)| {
            let runs = current == Some((round, repeat));
            let open = runs || !self.is_over(round, planned, repeat);
            open.then_some((runs, planned.cost))
        })
    }

    fn each(&self) -> impl Iterator<Item = (u32, Planned, u32)> {
        (0..self.repeats).flat_map(|repeat| self.rounds.iter().map(move |(&round, &planned)| (round, planned, repeat)))
    }
}
