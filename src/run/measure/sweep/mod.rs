//! All cases of one flow that share a link. Both ends get them in advance, perform each by themselves (see `wire/src/case.rs`), and report
//! the results. However many sizes there are, the link of a flow by itself costs two round trips to the hosts: one to open it, one to join
//! it, with the cases right after. Flows of one round move from cell to cell together, a round trip each.
//!
//! | file | holds |
//! | --- | --- |
//! | [`pace`] | when the flows of a round move to the next cell |
//! | `flight` | a case announced to both ends, and their answers |
//! | `account` | both answers as one sample |
//! | `offset` | the difference of both ends' clocks |

mod account;
mod flight;
mod offset;
pub(crate) mod pace;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use railgauge_model::{
    journal::event::{Case, Sample, Started},
    plan::{Plan, model::Test},
    schedule::Cell,
};
use railgauge_wire::{
    Ask, BitsPerSecond, Bytes, CaseSpec, Failure, GigabitsPerSecond, Kind, LinkId, Nanoseconds, Stage, Timing,
    case::COUNTERS_LIMIT,
};
use tokio::time::Instant;

use self::{flight::Flight, offset::Offset, pace::Place};
use super::{
    super::{
        links::{self, Held, Link, Wanted},
        spine::{ago, now},
    },
    case::{HostAgent, Tried},
    steps::{MARGIN, attribute, limit as limit_of_pass},
    traffic::{self, Traffic},
};
use crate::cluster::Agent;

const PULSE: Duration = Duration::from_secs(5);

pub(crate) struct Sweep {
    pub plan: Arc<Plan>,
    pub index: usize,
    /// Each with the number of its cell in the round; all of one flow and number of queue pairs.
    pub cases: VecDeque<(usize, Case)>,
    pub repeat: u32,
    pub from: HostAgent,
    pub to: HostAgent,
    pub warm: Option<Link>,
    pub id: LinkId,
    /// In bytes.
    pub max_size: Bytes,
    pub traffic: Traffic,
    pub place: Place,
}

pub(crate) struct Left {
    pub cases: VecDeque<(usize, Case)>,
    pub place: Place,
    pub opening: Duration,
}

/// Runs the cases in sequence. `done` gets each result as soon as it is known; the last one includes the link. Ends with the first failure,
/// once both ends have closed the link. Dropping it asks both to close it.
pub(crate) async fn run(mut sweep: Sweep, done: impl Fn(Tried<Link>) + Send + Sync) -> Left {
    let (started_at, begun) = (Started::from(now()), Instant::now());
    let joining = match sweep.warm.take() {
        Some(link) => Way::Open(link),
        None => match sweep.begin().await {
            Ok(joining) => Way::Joining(Box::new(joining)),
            Err(failure) => {
                sweep.fail(started_at, failure, &done);
                return sweep.left(begun.elapsed());
            }
        },
    };
    let rate = match traffic::of_each(sweep.traffic.rate_limit.or(sweep.test().rate_limit), joining.rate(), sweep.qps())
    {
        Ok(rate) => rate,
        Err(failure) => {
            joining.held().close().await;
            sweep.fail(started_at, failure, &done);
            return sweep.left(begun.elapsed());
        }
    };
    let mut course = Course::new(sweep, &joining, rate);
    if !joining.waits() {
        course.tell();
    }
    let link = match joining {
        Way::Open(link) => link,
        Way::Joining(joining) => match joining.finish().await {
            Ok(link) => link,
            Err(failure) => {
                course.settle();
                let mut sweep = course.back();
                sweep.fail(started_at, failure, &done);
                return sweep.left(begun.elapsed());
            }
        },
    };
    let opening = begun.elapsed();
    course.all(&link, &done).await;
    course.back().left(opening)
}

enum Way {
    Open(Link),
    Joining(Box<links::Joining>),
}

impl Way {
    fn rate(&self) -> Option<GigabitsPerSecond> {
        match self {
            Self::Open(link) => link.record.rate_gbps,
            Self::Joining(joining) => joining.rate,
        }
    }

    fn waits(&self) -> bool {
        matches!(self, Self::Joining(joining) if joining.by_manager)
    }

    fn held(&self) -> Held {
        match self {
            Self::Open(Link { from, to, id, .. }) => Held::new(from, to, *id),
            Self::Joining(joining) => Held::new(&joining.from, &joining.to, joining.id),
        }
    }
}

impl Sweep {
    fn qps(&self) -> u32 {
        self.cases.front().map_or(1, |(_, case)| case.cell.qps)
    }

    fn test(&self) -> &Test {
        &self.plan.tests[self.index]
    }

    fn left(self, opening: Duration) -> Left {
        Left { cases: self.cases, place: self.place, opening }
    }

    async fn begin(&self) -> Result<links::Joining, Failure> {
        let Self { plan, from, to, id, max_size, .. } = self;
        let Some((_, case)) = self.cases.front() else {
            return Err(Failure::new(Stage::Open, Kind::Internal, "a link for no case"));
        };
        let (flow, qps) = (&case.flow, case.cell.qps);
        let (token, rides_out) = (links::token()?, self.traffic.rides_out);
        let wanted =
            Wanted { hosts: &plan.hosts, test: self.test(), flow, qps, max_size: *max_size, id: *id, token, rides_out };
        links::begin(wanted, (&from.0, &from.1), (&to.0, &to.1)).await
    }

    fn fail(&mut self, started_at: Started, failure: Failure, done: &(impl Fn(Tried<Link>) + Send + Sync)) {
        let Some((_, case)) = self.cases.pop_front() else { return };
        done(Tried::new(case, self.repeat, started_at, None, Err(failure)));
    }

    fn spec(&self, cell: &Cell, pace: Option<BitsPerSecond>) -> CaseSpec {
        let test = self.test();
        CaseSpec {
            timing: Timing {
                op: cell.op,
                metric: cell.metric,
                size: cell.size,
                window: test.window,
                warm_up: test.warm_up.into(),
                start_at: None,
                bidirectional: test.bidirectional,
                only: cell.only,
                pace,
            },
            verify: test.verify.then_some(self.plan.seed),
            deadline_ms: u64::try_from(test.deadline.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Time after which an unanswered case is given up. The ends give up by themselves before that, step by step.
    fn limit(&self) -> Duration {
        let test = self.test();
        let verify = if test.verify { 8 * test.deadline } else { Duration::ZERO };
        limit_of_pass(test) + verify + 2 * test.deadline + 2 * COUNTERS_LIMIT + MARGIN
    }
}

struct Course {
    sweep: Sweep,
    ends: (Agent, Agent),
    id: LinkId,
    /// Announced cases, in order. Those of the sweep are not announced yet.
    flights: VecDeque<(usize, Flight)>,
    /// When a case was announced while none was running, and how much of the time since then the ends have reported.
    since: Instant,
    accounted: Nanoseconds,
    offset: Option<Offset>,
    /// Until nothing is running: both ends stop when the flow is dropped.
    held: Option<Held>,
    over: Option<Instant>,
    pace: Option<BitsPerSecond>,
}

impl Course {
    fn new(sweep: Sweep, way: &Way, pace: Option<BitsPerSecond>) -> Self {
        let (from, to, id) = match way {
            Way::Open(Link { from, to, id, .. }) => (from, to, *id),
            Way::Joining(joining) => (&joining.from, &joining.to, joining.id),
        };
        let ends = (from.clone(), to.clone());
        let offset = sweep.test().bidirectional.then(|| Offset::new(&ends));
        let (flights, since, accounted) = (VecDeque::new(), Instant::now(), Nanoseconds::ZERO);
        let held = Some(Held::new(&ends.0, &ends.1, id));
        Self { sweep, ends, id, flights, since, accounted, offset, held, over: None, pace }
    }

    fn back(mut self) -> Sweep {
        for (cell, flight) in self.flights.into_iter().rev() {
            self.sweep.cases.push_front((cell, flight.case));
        }
        self.sweep
    }

    fn settle(&mut self) {
        if let Some(held) = self.held.take() {
            held.keep();
        }
    }

    fn tell(&mut self) {
        while self.sweep.cases.front().is_some_and(|(cell, _)| self.sweep.place.may_begin(*cell)) {
            let Some((cell, case)) = self.sweep.cases.pop_front() else { return };
            if self.flights.is_empty() {
                (self.since, self.accounted, self.over) = (Instant::now(), Nanoseconds::ZERO, None);
                self.sweep.place.at(cell);
            }
            let spec = self.sweep.spec(&case.cell, self.pace);
            self.flights.push_back((cell, Flight::new(case, (&self.ends.0, &self.ends.1), self.id, &spec)));
        }
    }

    async fn all(&mut self, link: &Link, done: &(impl Fn(Tried<Link>) + Send + Sync)) {
        let (limit, patience) = (self.sweep.limit(), self.sweep.test().deadline.max(COUNTERS_LIMIT) + MARGIN);
        let pass = limit_of_pass(self.sweep.test());
        let beat = pass + PULSE;
        let (mut begun, mut overdue) = (Instant::now(), Instant::now() + beat);
        loop {
            self.tell();
            let Some((_, first)) = self.flights.front_mut() else {
                if self.sweep.cases.is_empty() {
                    self.settle();
                    return;
                }
                self.sweep.place.changed().await;
                continue;
            };
            tokio::select! {
                () = first.answered((link.from.host(), link.to.host()), limit, pass, patience) => {}
                () = self.sweep.place.changed(), if !self.sweep.cases.is_empty() => continue,
                () = tokio::time::sleep_until(overdue) => {
                    if !self.has_pulse().await
                        && let Some((_, first)) = self.flights.front_mut()
                    {
                        first.give_up(begun.elapsed());
                    }
                    overdue = Instant::now() + beat;
                    continue;
                }
            }
            (begun, overdue) = (Instant::now(), Instant::now() + beat);
            let Some((_, flight)) = self.flights.pop_front() else { return };
            let (started, over) = flight.times(self.over);
            let started_at = ago(started.elapsed()).into();
            self.over = Some(over);
            let (case, accounts) = flight.accounts();
            let progress = account::progress(&accounts.0);
            let result = self.result(link, case.cell.op.pulls(), accounts).await;
            let is_bad = result.is_err();
            let is_over = is_bad || self.flights.is_empty() && self.sweep.cases.is_empty();
            let tried = Tried::new(case, self.sweep.repeat, started_at, Some(link.record.clone()), result);
            if is_over && !is_bad {
                self.settle();
            }
            done(Tried { open: (is_over && !is_bad).then(|| link.clone()), progress, ..tried });
            if is_bad && let Some(held) = self.held.take() {
                held.close().await;
            }
            let next = self.flights.front().map(|(cell, _)| *cell).or(self.sweep.cases.front().map(|(cell, _)| *cell));
            if let Some(next) = next {
                self.sweep.place.at(next);
            }
            if is_over {
                return;
            }
        }
    }

    async fn has_pulse(&self) -> bool {
        let ask = |agent: &Agent| {
            let agent = agent.clone();
            async move { agent.ask(Ask::Clock, PULSE).await }
        };
        let (from, to) = tokio::join!(ask(&self.ends.0), ask(&self.ends.1));
        from.is_ok() && to.is_ok()
    }

    /// The result of a case. A lost host is named before the host that noticed.
    async fn result(&mut self, link: &Link, pulls: bool, accounts: flight::Accounts) -> Result<Sample, Failure> {
        // Answers may arrive late and together: the time reported by the ends since they were idle limits how long this case can have
        // taken.
        let waited = Nanoseconds::from(self.since.elapsed()).saturating_sub(self.accounted);
        let sample = match account::sample(link, pulls, accounts, waited) {
            Ok(sample) => sample,
            Err(failure) => return Err(attribute(failure, link).await),
        };
        let spent =
            sample.spent.as_ref().map_or(Nanoseconds::ZERO, |spent| spent.total()).max(sample.initiator.elapsed);
        // Clocks differ, and that of a sleeping controller stops: an end that reports more than passed here gains and loses nothing by it
        // in the next case.
        self.accounted = self.accounted.saturating_add(spent).min(self.since.elapsed().into());
        let Some(offset) = &mut self.offset else { return Ok(sample) };
        let offset = Some(Box::new(offset.now(&self.ends).await?));
        Ok(Sample { offset, ..sample })
    }
}
