//! How long a run will still take, and what that is reckoned from.

use std::time::Duration;

use jiff::Timestamp;
use railgauge_model::schedule::{Cost, PerByte, Time};
use railgauge_stats::robust::median_in_place;

use super::{Current, TestRounds, Underway};

/// Where a time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The median of so many rounds of the same test that came to their end.
    Rounds(usize),
    /// Windows and warm-ups of the plan: no round of the test has come to its end.
    Plan,
}

/// The time that a test still takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// Rounds that are not over, with the one that runs.
    pub rounds: u64,
    /// One round that has not begun.
    pub round: Option<Time>,
    /// What is left of the round that runs; `None` where none of this test runs.
    pub current: Option<Time>,
    /// All of them.
    pub all: Time,
    /// What that is reckoned from.
    pub basis: Basis,
}

/// The time that a run still takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeLeft {
    /// By test, in the order of the plan; `None` where all its rounds are over.
    pub tests: Vec<Option<Left>>,
    /// The soak; zero where there is none.
    pub soak: Duration,
    /// All of it.
    pub all: Time,
    /// Whether suspects may be measured again after the tests; what was asked for by now is in `all`.
    pub confirms: bool,
}

/// The middle of times, of which there is one at least.
fn median(times: &[Duration]) -> Option<Duration> {
    let mut times: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    (!times.is_empty()).then(|| Duration::from_secs_f64(median_in_place(&mut times)))
}

fn of_test(test: &TestRounds, current: Option<&Current>, pace: PerByte, now: Timestamp) -> Option<Left> {
    let typical = median(&test.took).map(|time| Time { at_least: time, at_most: Some(time) });
    let basis = typical.map_or(Basis::Plan, |_| Basis::Rounds(test.took.len()));
    let elapsed = current.map(|current| Duration::try_from(now.duration_since(current.began)).unwrap_or_default());
    let mut left = Left { rounds: 0, round: None, current: None, all: Time::default(), basis };
    for (runs, planned) in test.open(current.map(|current| (current.round, current.repeat))) {
        let whole = typical.unwrap_or_else(|| planned.at(pace));
        left.rounds += 1;
        left.all += match (runs, elapsed) {
            (true, Some(elapsed)) => *left.current.insert(whole.less(elapsed)),
            _ => *left.round.insert(whole),
        };
    }
    (left.rounds > 0).then_some(left)
}

impl Underway {
    /// The time that the run still takes; `None` as long as nothing is planned, and once it is over.
    pub fn left(&self, now: Timestamp) -> Option<TimeLeft> {
        let plan = self.plan.as_ref().filter(|_| !self.cases.is_empty() && !self.is_over())?;
        let current = |index: usize| self.current.as_ref().filter(|current| current.test == index);
        let over = matches!(self.doing(), super::Doing::Confirming | super::Doing::Soak);
        let pace = self.seen.pace().or_else(|| PerByte::of(plan, None)).unwrap_or_default();
        let tests = self.tests.iter().enumerate();
        let of_test = |(index, test)| of_test(test, current(index), pace, now).filter(|_| !over);
        let tests: Vec<_> = tests.map(of_test).collect();
        let lasts = plan.soak.as_ref().map_or(Duration::ZERO, |soak| soak.lasts);
        let soak = lasts.saturating_sub(Duration::from_nanos(self.soaked));
        let mut all = Time { at_least: soak, at_most: Some(soak) };
        // A process that takes the run up again has all the time of the plan.
        let ran = self.began.filter(|_| self.resumed == 0);
        let ran = ran.and_then(|began| Duration::try_from(now.duration_since(began)).ok());
        all += plan.within(tests.iter().flatten().map(|left| left.all).sum(), ran.unwrap_or_default());
        if self.doing() == super::Doing::Confirming {
            let elapsed =
                self.current.as_ref().and_then(|current| Duration::try_from(now.duration_since(current.began)).ok());
            let again: Cost = self.further_rounds.values().copied().sum();
            all += again.at(pace).less(elapsed.unwrap_or_default());
        }
        Some(TimeLeft { tests, soak, all, confirms: plan.localise.confirm && self.doing() != super::Doing::Soak })
    }
}
